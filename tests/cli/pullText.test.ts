// What the display says about pulls.
import { expect, test } from 'vitest';
import { type Pulls, pullLines } from '../../src/cli/terminal/progressState.ts';

const now = Date.UTC(2026, 0, 1, 12, 0, 0);
const pulls = (more: Partial<Pulls>): Pulls => ({
  type: 'pulls',
  active: [],
  waiting: 0,
  paused: [],
  ...more,
});
const active = (image: string, downloadedBytes: number, totalBytes: number) => ({
  image,
  downloadedBytes,
  totalBytes,
});

test('bytes with a bar, the end of the name, and how many wait', () => {
  const lines = pullLines(
    pulls({
      active: [
        active('r.example/swebench/sweb.eval.x86_64.django_1776_django-1:latest', 120_340_000, 480_000_000),
        active('r.example/swebench/b:1', 0, 0),
      ],
      waiting: 3,
    }),
    now,
    2,
  );
  expect(lines).toEqual([
    'pull ████░░░░░░░░░░░░ 120 of 480 MB swebench/sweb.eval.x86_64.django_1776_django-1:latest',
    'pull ░░░░░░░░░░░░░░░░ asking swebench/b:1 · 3 waiting',
  ]);
});

test('a refusal shows the moment of the reset and how long it is until then', () => {
  const paused = [{ reason: 'rate_limited', until: now + 252_000 }];
  expect(pullLines(pulls({ paused, waiting: 5 }), now, 2)).toEqual([
    'pulls pause, the registry refuses more: until 12:04:12Z, in 4 min 12 s · 5 waiting',
  ]);
  const budget = [{ reason: 'budget', until: now + 3 * 3600_000 + 60_000 }];
  expect(pullLines(pulls({ paused: budget }), now, 2)).toEqual([
    'pulls pause, the budget of the window is used up: until 15:01:00Z, in 3 h 1 min',
  ]);
});

test('no more lines than there is room for', () => {
  const four = ['a', 'b', 'c', 'd'].map((name) => active(`x/${name}:1`, 1, 2));
  const lines = pullLines(pulls({ active: four }), now, 2);
  expect(lines).toHaveLength(2);
  expect(lines[1]).toMatch(/ x\/b:1 · 2 more$/);
});

test('silent when nothing is pulled', () => {
  expect(pullLines(undefined, now, 2)).toEqual([]);
  expect(pullLines(pulls({}), now, 2)).toEqual([]);
  expect(pullLines(pulls({ waiting: 2 }), now, 2)).toEqual(['pulls: 2 waiting']);
});
