// Requests in the record: any program can write there, any process can die between a request and its answer, and each is carried out once.
import { describe, expect, test } from 'vitest';
import { ControlRefusal, REQUEST_HOLDS_MS } from '../../../src/run/control/controlRequest.ts';
import { createControlInbox } from '../../../src/run/control/liveControls.ts';
import { createEvents, type RunEvent } from '../../../src/run/events.ts';
import {
  controlById,
  insertControl,
  takeControl,
  withdrawControl,
} from '../../../src/store/live/controls.ts';
import type { Store } from '../../../src/store/open.ts';
import { removeRun } from '../../../src/store/records/runs.ts';
import { freshStore, planted } from '../../store/storeFixtures.ts';

const NOW = new Date('2026-01-01T00:00:00.000Z');
const turns = async () => {
  for (let i = 0; i < 5; i++) await new Promise((turn) => setImmediate(turn));
};

function bench(store: Store = freshStore(), name = 'r1') {
  const run = planted(store, { name });
  const seen: RunEvent[] = [];
  const errors: unknown[] = [];
  const open = () => {
    const events = createEvents();
    events.on((event) => seen.push(event));
    const onError = (error: unknown) => void errors.push(error);
    return createControlInbox({ store, runId: run.id, events, now: () => NOW, onError });
  };
  const ask = (command: string, argument: string | null = null, asked_at = NOW.toISOString()) =>
    insertControl(store, { run_id: run.id, asked_at, asked_by: 'me@here', command, argument });
  const answer = (id: number) => {
    const { state, answer } = controlById(store, id)!;
    return [state, answer];
  };
  return { store, run, open, ask, answer, seen, errors };
}

describe('requests to a live run', () => {
  test('are carried out in their order, once, and are events with who asked', async () => {
    const { open, ask, answer, seen } = bench();
    const done: string[] = [];
    const inbox = open();
    inbox.serve({
      workers: (count) => {
        done.push(`workers ${count}`);
        return `${count} slots`;
      },
      pause: () => {
        throw new ControlRefusal('the run is stopping');
      },
    });
    const ids = [ask('workers', '3'), ask('workers', '5'), ask('pause')];
    inbox.look();
    inbox.look();
    await turns();
    inbox.look();
    expect(done).toEqual(['workers 3', 'workers 5']);
    expect(ids.map(answer)).toEqual([
      ['done', '3 slots'],
      ['done', '5 slots'],
      ['refused', 'the run is stopping'],
    ]);
    expect(seen[0]).toEqual({
      type: 'control',
      command: 'workers',
      argument: '3',
      by: 'me@here',
      done: true,
      answer: '3 slots',
    });
    expect(seen.map((event) => event.type === 'control' && event.done)).toEqual([true, true, false]);
  });

  test('one that takes long does not hold up the next, and is refused when the run ends first', async () => {
    const { open, ask, answer } = bench();
    const inbox = open();
    inbox.serve({ cancel: () => new Promise<string>(() => {}), resume: () => 'going on' });
    const slow = ask('cancel', 'a__a-1');
    const quick = ask('resume');
    inbox.look();
    await turns();
    expect(answer(quick)).toEqual(['done', 'going on']);
    expect(answer(slow)).toEqual(['taken', null]);
    inbox.close();
    expect(answer(slow)).toEqual(['refused', 'the run is ending; nothing was done']);
  });

  test('rows of any program are refused and change nothing', async () => {
    const { open, ask, answer, errors, seen } = bench();
    const inbox = open();
    inbox.serve({ pause: () => 'paused' });
    const garbage = [
      ask('format c:'),
      ask('__proto__', '{}'),
      ask('workers', '\u001b[2J9e99'),
      ask('pause', 'x'.repeat(1_000_000)),
      ask('\u001b]0;owned\u0007', '\u202e'),
      ask('drain', 'big'),
      ask('pause', null, 'not a time'),
      ask('pause', null, '1999-01-01T00:00:00Z'),
      ask('pause', null, new Date(NOW.getTime() - REQUEST_HOLDS_MS).toISOString()),
    ];
    inbox.look();
    await turns();
    for (const id of garbage) expect(answer(id)[0]).toBe('refused');
    expect(errors).toEqual([]);
    const told = JSON.stringify(seen);
    expect(told.length).toBeLessThan(10_000);
    expect(told).not.toMatch(/\\u001b|\\u0007|\u202e/);
    expect(answer(garbage[0]!)[1]).toContain('it knows pause, resume, workers');
  });

  test('what a killed process had taken is answered by the next, which does not do it again', async () => {
    const { store, open, ask, answer } = bench();
    const taken = ask('pause');
    takeControl(store, taken);
    const old = ask('pause', null, new Date(NOW.getTime() - 3_600_000).toISOString());
    const withdrawn = ask('pause');
    withdrawControl(store, withdrawn, NOW.toISOString());
    const fresh = ask('pause');
    let paused = 0;
    const inbox = open();
    inbox.serve({ pause: () => `paused ${++paused}` });
    inbox.look();
    await turns();
    expect(answer(taken)).toEqual(['refused', expect.stringContaining('ended before it answered')]);
    expect(answer(old)).toEqual(['refused', expect.stringContaining('too long ago')]);
    expect(answer(withdrawn)).toEqual(['withdrawn', null]);
    expect(answer(fresh)).toEqual(['done', 'paused 1']);
  });

  test('one for another run is left to that run, and goes with a run that is deleted', async () => {
    const one = bench();
    const other = bench(one.store, 'r2');
    const inbox = one.open();
    inbox.serve({ pause: () => 'paused' });
    const id = other.ask('pause');
    const mine = one.ask('pause');
    inbox.look();
    await turns();
    inbox.close();
    expect(one.answer(mine)[0]).toBe('done');
    expect(one.answer(id)).toEqual(['open', null]);
    removeRun(one.store, other.run.id);
    expect(controlById(one.store, id)).toBeUndefined();
  });
});
