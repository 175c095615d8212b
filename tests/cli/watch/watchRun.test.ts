// What `swebatch ctl RUN` shows of a run's slots and limiters: words of the record, without escapes of others.
import { expect, test } from 'vitest';
import { stateLines } from '../../../src/cli/terminal/watchRun.ts';
import type { ArmRuntime } from '../../../src/run/arms.ts';
import { keepLiveState } from '../../../src/run/control/liveControls.ts';
import { readLiveState, writeLiveState } from '../../../src/store/live/controls.ts';
import { openedRun } from '../../run/openedRun.ts';
import { freshStore, planted } from '../../store/storeFixtures.ts';

const MODEL = { arm: 'a', inFlight: 3, waiting: 0, blockedMs: 0, rateLimited: 0, limit: null };

test('slots and limiters are lines; what is nothing is left out', () => {
  const lines = stateLines({
    slots: 8,
    models: [
      MODEL,
      {
        ...MODEL,
        arm: 'b\u001b[2J\u202e',
        waiting: 4,
        blockedMs: 1_500,
        rateLimited: 2,
        limit: 6,
        rpm: 50,
        tpm: 30_000,
      },
    ],
  });
  expect(lines.join('')).not.toMatch(/[\u001b\u202e]/);
  expect(lines).toEqual([
    '8 slots',
    'model of a 3 calls out',
    'model of b‹U+202E› 3 calls out · at most 6 at a time · 4 wait · none starts for 2 s · 2 refused as too many · 50 requests a minute · 30000 tokens a minute',
  ]);
  expect(stateLines(null)).toEqual([]);
});

test('the newest state is read; a row of another program is none', () => {
  const store = freshStore();
  const run = planted(store);
  expect(readLiveState(store, run.id)).toBeNull();
  const state = { slots: 2, models: [MODEL] };
  writeLiveState(store, run.id, 1, { ...state, slots: 1 });
  writeLiveState(store, run.id, 2, state);
  expect(readLiveState(store, run.id)).toEqual(state);
  for (const data of ['', '[]', '{"slots":"many"}', '{"slots":1,"models":{}}']) {
    store.prepare('UPDATE live_states SET data = ?').run(data);
    expect(readLiveState(store, run.id)).toBeNull();
  }
});

test('the last state of a run is that of its end', () => {
  const store = freshStore();
  const run = planted(store);
  const load = { ...MODEL };
  const arm = { row: { name: 'a' }, modelFactory: { load: () => load } } as unknown as ArmRuntime;
  const ends = keepLiveState(openedRun({ store, row: run, arms: new Map([[1, arm]]) }));
  expect(readLiveState(store, run.id)?.models[0]).toMatchObject({ inFlight: 3 });
  load.inFlight = 0;
  ends();
  expect(readLiveState(store, run.id)?.models[0]).toMatchObject({ inFlight: 0 });
});
