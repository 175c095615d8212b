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
