// A file that someone else wrote may be read for a long time: what is no configuration is refused first.
import { expect, test } from 'vitest';
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
