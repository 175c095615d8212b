// A file that someone else wrote may be read for a long time: what is no configuration is refused first.
import { expect, test } from 'vitest';
import { loadConfig } from '../../src/config/loadConfig.ts';
import { readYaml } from '../../src/config/readConfig.ts';

test('brackets inside brackets without an end are refused before they are read', () => {
  for (const deep of ['['.repeat(5_000_000), 'a: {b: '.repeat(1000), '[a, '.repeat(600)])
    expect(() => readYaml(deep, 'mine.yaml')).toThrow(
      /mine\.yaml: (longer than|brackets are open more than 500)/,
    );
});
test('as many brackets as one likes stand beside each other, and merge keys are followed', () => {
  const text = `base: &base {a: [1, 2]}\nall:\n${'  - {<<: *base, t: "{{ task }}"}\n'.repeat(50)}${'  - [[1], {b: 2}]\n'.repeat(2000)}`;
  expect(readYaml(text, 'x')).toMatchObject({
    all: expect.arrayContaining([{ a: [1, 2], t: '{{ task }}' }]),
  });
});

test('of thousands of mistakes the first are told, each with its place', () => {
  const tell = (): string => {
    try {
      return String(readYaml('"'.repeat(5000), 'mine.yaml'));
    } catch (error) {
      return (error as Error).message;
    }
  };
  expect(tell()).toContain('mine.yaml: Unexpected double-quoted-scalar at node end at line 1, column 3');
  expect(tell()).toContain('and 2479 more');
  expect(tell().length).toBeLessThan(3000);
});

test('values are read as PyYAML reads them, and keys stay as they are written', () => {
  const text = `a: 1_000
b: yes
c: Off
d: 010
e: 0x1F
f: 1:30
g: 1_0.5
h: "1_000"
i: y
j: 1e3
k: 08
l: 12e
m: 2026-01-01
env: {NO: on, 1_0: x, on: y}
`;
  expect(readYaml(text, 'x')).toEqual({
    ...{
      a: 1000,
      b: true,
      c: false,
      d: 8,
      e: 31,
      f: 90,
      g: 10.5,
      h: '1_000',
      i: 'y',
      j: 1000,
      k: 8,
      l: '12e',
    },
    ...{ m: '2026-01-01', env: { NO: 'on', '1_0': 'x', on: 'y' } },
  });
});

test.each([
  ['agent:\n  "step\\blimit": 1\n', 'agent.step‹U+0008›limit'],
  ['agent:\n  step_limit: 1\n  "step_limit\ufe0f": 2\n', 'agent.step_limit‹U+FE0F›'],
  ['model:\n  model_kwargs: {xy: 1, "x\\u200by": 2}\n', 'model.model_kwargs.x‹U+200B›y'],
  ['arms: [{name: a, "mod\\tel": {}}]\n', 'arms.0.mod‹U+0009›el'],
  ['"r\\u00adun": {}\n', 'r‹U+00AD›un'],
])('a key with a character that nobody sees is refused, and shown with it: %j', (text, shown) => {
  const load = () => loadConfig({ specs: ['x.yaml'], cwd: '/w', readFile: () => text });
  expect(load).toThrow(`/w/x.yaml: ${shown}: this key has a character that nobody sees; write it without`);
});

test('values may have them, and so may keys that are words of any language', () => {
  const text = 'model:\n  model_name: "m"\n  model_kwargs: {größe: "a\\u200bb", 模型: 1}\n';
  expect(() => loadConfig({ specs: ['x.yaml'], cwd: '/w', readFile: () => text })).not.toThrow();
});

test.each([
  ['x-a: &a\n  b: *a\n', '/w/x.yaml: *a stands inside of what it names at line 2, column 6'],
  ['x-a: &a {<<: *a}\n', '/w/x.yaml: *a stands inside of what it names at line 1, column 14'],
  ['model: {model_name: !ENV M}\n', '/w/x.yaml: nobody here reads the tag !ENV at line 1, column 21'],
  [
    'agent: {system_template: !!python/str hi}\n',
    '/w/x.yaml: nobody here reads the tag !!python/str at line 1, column 26',
  ],
  [
    'run: {}\n---\nrun: {}\n',
    '/w/x.yaml: a second document begins here (---), and one is read: give each a file of its own at line 2, column 1',
  ],
  ['? [a]\n: b\n', '/w/x.yaml: a key must be a text at line 1, column 3'],
])('what PyYAML would not read is refused with its place: %j', (text, problem) => {
  const load = () => loadConfig({ specs: ['x.yaml'], cwd: '/w', readFile: () => text });
  expect(load).toThrow(problem);
});
