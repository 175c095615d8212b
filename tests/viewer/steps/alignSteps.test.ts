// Steps are laid beside each other by what they do, not by their words.
import { describe, expect, test } from 'vitest';
import {
  type AlignedSteps,
  alignSteps,
  likeness,
  partingOf,
  rowOfSide,
  sideName,
} from '../../../src/viewer/steps/alignedAttempts.ts';
import { stepFacts } from '../../../src/viewer/steps/stepFacts.ts';
import { cpuMs } from '../../support/cpuTime.ts';

const steps = (...commands: string[]) => commands.map((text) => stepFacts([{ name: 'bash', text }]));
const shown = (rows: readonly AlignedSteps[]) =>
  rows.map(({ a, b, how }) => `${a ?? '-'} ${b ?? '-'} ${how}`);

describe('alignSteps', () => {
  test('the same commands meet, what one did alone stands alone, and the first such row is where they part', () => {
    const a = steps('ls', 'cat a.py', 'grep -rn x .', "sed -i 's/1/2/' a.py", 'pytest tests/test_a.py');
    const b = steps(
      'ls',
      'cat a.py',
      "sed -i 's/1/3/' a.py",
      'python -m pytest tests/test_a.py -q',
      'cat b.py',
    );
    const rows = alignSteps(a, b);
    expect(shown(rows)).toEqual(['0 0 same', '1 1 same', '2 - alone', '3 2 alike', '4 3 alike', '- 4 alone']);
    expect(partingOf(rows)).toBe(2);
  });

  test('the same file read by another command is alike; another file is not', () => {
    const [cat, sed, other, edit] = steps(
      'cat pkg/a.py',
      "sed -n '1,9p' /testbed/pkg/a.py",
      'cat pkg/b.py',
      'sed -i s/a/b/ pkg/a.py',
    );
    expect(likeness(cat!, sed!)).toBeGreaterThan(0);
    expect(likeness(cat!, other!)).toBe(0);
    expect(likeness(cat!, edit!)).toBe(0);
    expect(likeness(cat!, cat!)).toBeGreaterThan(likeness(cat!, sed!));
  });

  test('a step about a file is not alike to one that names none, though both call the same program', () => {
    const [everywhere, inFile, script, inline] = steps(
      'grep -rn inlines django',
      'grep -n x pkg/a.py',
      'python3 reproduce.py',
      "python3 -c 'import pkg'",
    );
    expect(likeness(everywhere!, inFile!)).toBe(0);
    expect(likeness(script!, inline!)).toBe(0);
    expect(likeness(everywhere!, steps('grep -rn get_inlines django')[0]!)).toBeGreaterThan(0);
  });

  test('two equal trajectories never part; nothing against something is all alone', () => {
    const a = steps('ls', 'cat a.py', 'pytest');
    expect(partingOf(alignSteps(a, a))).toBeNull();
    expect(alignSteps(a, a).every((row) => row.how === 'same')).toBe(true);
    expect(alignSteps([], [])).toEqual([]);
    expect(shown(alignSteps([], a))).toEqual(['- 0 alone', '- 1 alone', '- 2 alone']);
  });

  test('every step stands exactly once, in its order, whatever the two did', () => {
    let seed = 7;
    const next = (n: number) => {
      seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
      return (seed >>> 8) % n;
    };
    const COMMANDS = [
      'ls',
      'cat a.py',
      'cat b.py',
      'sed -i s/a/b/ a.py',
      'pytest',
      'python x.py',
      'git diff',
    ];
    for (let round = 0; round < 60; round += 1) {
      const some = () => steps(...Array.from({ length: next(25) }, () => COMMANDS[next(COMMANDS.length)]!));
      const [a, b] = [some(), some()];
      const rows = alignSteps(a, b);
      expect(rows.flatMap((row) => row.a ?? [])).toEqual(a.map((_step, i) => i));
      expect(rows.flatMap((row) => row.b ?? [])).toEqual(b.map((_step, i) => i));
      const back = alignSteps(b, a);
      expect(back.filter((row) => row.how === 'same').length).toBe(
        rows.filter((row) => row.how === 'same').length,
      );
    }
  });

  test('ten thousand steps against ten thousand are aligned in bounded time, each of them once', () => {
    const a = steps(...Array.from({ length: 10_000 }, (_, i) => `cat dir/file${i % 97}.py`));
    const b = steps(...Array.from({ length: 10_000 }, (_, i) => `cat dir/file${(i + 5) % 97}.py`));
    let rows: readonly AlignedSteps[] = [];
    const took = cpuMs(() => {
      rows = alignSteps(a, b);
    });
    expect(rows.flatMap((row) => row.a ?? []).length).toBe(10_000);
    expect(rows.flatMap((row) => row.b ?? []).length).toBe(10_000);
    expect(rows.filter((row) => row.how === 'same').length).toBeGreaterThan(9_000);
    expect(took).toBeLessThan(20_000);
  });
});

test('a side is named as shortly as it can be, and found again by its name', () => {
  const rows = [
    { run: 'night', arm: 'main', epoch: 1, attempt: 1 },
    { run: 'night', arm: 'main', epoch: 2, attempt: 2 },
    { run: 'arms', arm: 'openai/x', epoch: 1, attempt: 3 },
    { run: 'arms', arm: '__proto__', epoch: 1, attempt: 4 },
    { run: 'one', arm: 'main', epoch: 1, attempt: 5 },
    { run: 'none', arm: 'main', epoch: 1, attempt: null },
  ];
  expect(rows.map((row) => sideName(row, rows))).toEqual([
    'night@1',
    'night@2',
    'arms/openai/x',
    'arms/__proto__',
    'one',
    'none',
  ]);
  for (const row of rows.slice(0, 5)) expect(rowOfSide(sideName(row, rows), rows)).toBe(row);
  expect(rowOfSide('none', rows)).toBeUndefined();
  expect(rowOfSide('constructor', rows)).toBeUndefined();
});
