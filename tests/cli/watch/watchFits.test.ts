// `ls --watch` and `top` on a small terminal, and of a run that has ended.
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { watchRun } from '../../../src/cli/terminal/watchRun.ts';
import type { Store } from '../../../src/store/open.ts';
import { runById } from '../../../src/store/records/runs.ts';
import { addRun, openFixture } from '../../viewer/fixture.ts';

const NAMES = ['rows', 'columns'] as const;
const before = NAMES.map((name) => Object.getOwnPropertyDescriptor(process.stdout, name));
let store: Store;

beforeEach(() => {
  store = openFixture(mkdtempSync(join(tmpdir(), 'swebatch-watch-')));
  for (const [i, value] of [6, 60].entries())
    Object.defineProperty(process.stdout, NAMES[i]!, { value, configurable: true });
});
afterEach(() => {
  store.close();
  for (const [i, name] of NAMES.entries())
    if (before[i]) Object.defineProperty(process.stdout, name, before[i]);
    else delete process.stdout[name as never];
});

/** One picture, as a terminal gets it. */
async function picture(id: number, redraw: boolean): Promise<string[]> {
  let text = '';
  const run = runById(store, id)!;
  await watchRun({
    ...{ store, run, redraw, everyMs: 1, signal: AbortSignal.abort() },
    write: (more) => {
      text += more;
    },
  });
  return text.trimEnd().split('\n');
}

test('slots that do not fit the terminal are counted, and the first lines stay on it', async () => {
  const id = addRun(store, { name: 'going', instances: 30, steps: 4, doneUntil: 10 });
  const drawn = await picture(id, true);
  expect(drawn[0]).toMatch(/^run going \(running\)/);
  expect(drawn).toHaveLength(5);
  expect(drawn[4]).toBe('    2 more slots at work');
  expect(Math.max(...drawn.map((line) => line.length))).toBeLessThan(60);
  // A log has no edge.
  expect(await picture(id, false)).toHaveLength(6);
});

test('of a run that has ended nothing is left, and its clock stands still', async () => {
  const id = addRun(store, { name: 'over', instances: 3, steps: 2 });
  const created = Date.parse(runById(store, id)!.created_at);
  store.prepare('UPDATE runs SET finished_at = ?').run(new Date(created + 90_000).toISOString());
  const [, spent] = await picture(id, true);
  expect(spent).toMatch(/ · 1:30 · resolved/);
});
