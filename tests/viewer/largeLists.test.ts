// A large record is shown in parts: the list is added up before it is asked for, and a page of trials is read without the others.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Store } from '../../src/store/open.ts';
import { change } from '../../src/store/query.ts';
import { scoreRows } from '../../src/store/records/runData.ts';
import { taskBeginnings, trialsOnPage } from '../../src/store/records/trialPages.ts';
import { createDocuments, type RunList } from '../../src/viewer/documents/resources.ts';
import { addRun, openFixture } from './fixture.ts';

vi.mock('../../src/store/records/runData.ts', async (original) => {
  const module = await original<typeof import('../../src/store/records/runData.ts')>();
  return { ...module, scoreRows: vi.fn(module.scoreRows) };
});

describe('a record of several runs', () => {
  let dir: string;
  let store: Store;
  let first: number;

  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'swebatch-lists-'));
    store = openFixture(dir);
    [first] = [1, 2, 3].map((day) => addRun(store, { name: `night${day}`, instances: 5, steps: 1, day })) as [
      number,
    ];
  });
  afterEach(() => {
    store.close();
    rmSync(dir, { recursive: true, force: true });
  });

  test('the list is read ahead a run at a step, and again where a run has changed', () => {
    const read = () => vi.mocked(scoreRows).mock.calls.map(([, run]) => run);
    const documents = createDocuments(store, { title: '' });
    const steps = documents.prepareList();
    for (const done of [1, 2, 3]) {
      steps.next();
      expect(read()).toHaveLength(done);
    }
    expect(steps.next().done).toBe(true);
    const list = documents.read('runs') as RunList;
    expect(list.runs.map(({ name, planned }) => [name, planned])).toEqual([
      ['night3', 5],
      ['night2', 5],
      ['night1', 5],
    ]);
    expect(read()).toHaveLength(3);
    change(store)`UPDATE trials SET state = 'pending', final_attempt_id = NULL WHERE run_id = ${first}`;
    expect((documents.read('runs') as RunList).runs.map(({ sealed }) => sealed)).toEqual([5, 5, 0]);
    expect(read().slice(3)).toEqual([first]);
  });

  test('pages hold every trial once, in the order of the run, with the task of its own instance', () => {
    change(store)`UPDATE trials SET position = 100 - position WHERE run_id = ${first}`;
    const whole = trialsOnPage(store, first, 100, 0);
    expect(whole.map(({ position }) => position)).toEqual([96, 97, 98, 99, 100]);
    const pages = [0, 2, 4].map((offset) => trialsOnPage(store, first, 2, offset));
    expect(pages.map((page) => page.length)).toEqual([2, 2, 1]);
    expect(pages.flat()).toEqual(whole);
    const tasks = [0, 2, 4].flatMap((offset) => taskBeginnings(store, first, 2, offset));
    const all = new Map(taskBeginnings(store, first, 100, 0).map(({ trial, begins }) => [trial, begins]));
    expect(new Map(tasks.map(({ trial, begins }) => [trial, begins]))).toEqual(all);
    expect([...all.keys()].sort()).toEqual(whole.map(({ trial }) => trial).sort());
  });
});
