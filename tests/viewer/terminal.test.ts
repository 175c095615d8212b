import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { watchLines } from '../../src/cli/terminal/watchRun.ts';
import { readLiveRun } from '../../src/run/liveRun.ts';
import type { Store } from '../../src/store/open.ts';
import { runById } from '../../src/store/records/runs.ts';
import type { AttemptDocument, MessageChunk } from '../../src/viewer/documents/attemptDocuments.ts';
import { createDocuments, type Documents } from '../../src/viewer/documents/resources.ts';
import { clockTime, trajectoryLines } from '../../src/viewer/trajectoryLines.ts';
import { addRun, openFixture } from './fixture.ts';
import { iso } from './fixtureRows.ts';
import { addHostileRun } from './hostileRun.ts';

let dir: string;
let store: Store;
let documents: Documents;
let evil: number;
let live: number;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'swebatch-term-'));
  store = openFixture(dir);
  addRun(store, { name: 'nightly', instances: 3, steps: 6 });
  live = addRun(store, { name: 'going', instances: 30, steps: 4, doneUntil: 10 });
  evil = addHostileRun(store).attempt;
  documents = createDocuments(store, { title: 't' });
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const lines = (id: number, maxLines?: number): string[] => {
  const doc = documents.read(`attempts/${id}`) as AttemptDocument;
  const messages = (documents.read(`attempts/${id}/messages/0`) as MessageChunk).messages;
  return [...trajectoryLines(doc, messages, maxLines === undefined ? {} : { maxLines })];
};

describe('in a terminal', () => {
  test('a trajectory reads from top to bottom with steps, time and cost', () => {
    const text = lines(1).join('\n');
    expect(text).toMatch(
      /^django__django-10000 {2}run nightly, arm main, epoch 1, attempt 1 of 1\nsubmitted, /,
    );
    expect(text).toMatch(/── assistant · step 1 · 2\.2 s · \$0\.00\d+ ─+\nTHOUGHT: step 1/);
    expect(text).toMatch(/── user · step 3 · 0\.3 s · exit 1 ─/);
    expect(text.indexOf('step 1 ')).toBeLessThan(text.indexOf('step 2 '));
  });

  test('a verdict that could not be had says why, above the conversation', () => {
    const doc = documents.read('attempts/1') as AttemptDocument;
    const evaluations = doc.evaluations.map((one) => ({
      ...one,
      outcome: 'infra',
      error: 'no\u202e reward',
    }));
    const [, , third] = trajectoryLines({ ...doc, evaluations } as AttemptDocument, []);
    expect(third).toMatch(/^grading: no.* reward$/);
    expect(third).not.toContain('\u202e');
    expect(lines(1).some((line) => line.startsWith('grading:'))).toBe(false);
  });

  test('the steps of a task of several begin under their names, and a task of one step has no such lines', () => {
    const doc = documents.read('attempts/1') as AttemptDocument;
    const { messages } = documents.read('attempts/1/messages/0') as MessageChunk;
    const named = messages.map((message, i) => ({ ...message, taskStep: i < 3 ? 'first' : 'sec\u001bond' }));
    const all = [...trajectoryLines(doc, named)];
    expect(all.filter((line) => line.startsWith('══'))).toEqual([
      expect.stringMatching(/^══ step first of the task ═+$/),
      expect.stringMatching(/^══ step sec.*nd of the task ═+$/),
    ]);
    expect(all.join('\n')).not.toContain('\u001b');
    expect(lines(1).some((line) => line.includes('of the task'))).toBe(false);
  });

  test('long observations lose their middle, and say how much', () => {
    expect(lines(1).length).toBeLessThan(lines(1, 0).length);
    expect(lines(1, 20).join('\n')).toMatch(/… 1\d\d lines left out …/);
  });

  test('a hostile trajectory cannot steer the terminal', () => {
    const doc = documents.read(`attempts/${evil}`) as AttemptDocument;
    const watched = watchLines(store, runById(store, doc.run.id)!, 0);
    const all = [...lines(evil, 0), ...watched].join('\n');
    expect(all).toContain('<img src=x onerror');
    expect(all).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
  });

  test('a run that goes on shows slots, phases, cost, rate and what is left', () => {
    const out = watchLines(store, runById(store, live)!, Date.parse(iso(0, 10 * 15_000)) + 64_000);
    expect(out[0]).toMatch(/^run going \(running\) · \d+\/30 sealed · .*\brunning 4\b/);
    expect(out[1]).toMatch(/^\$0\.\d+ of \$300\.00 · \$\S+\/h · \S+ · ETA \S+ · resolved \d+\/\d+$/);
    expect(out[2]).toMatch(/^ {2}0 django__django-10010 +step {3}1 model 1:00 +\$0\.\d+$/);
    expect(out.slice(3).map((line) => / step +\d+ (\w+)/.exec(line)![1])).toEqual([
      'exec',
      'pull',
      'rate_wait',
    ]);
  });

  test('the pace is what the last hour did', () => {
    const pace = () => readLiveRun(store, runById(store, live)!).pace;
    store.prepare('UPDATE runs SET created_at = ? WHERE id = ?').run(iso(0, 0), live);
    const ofRun = 'trial_id IN (SELECT id FROM trials WHERE run_id = ?)';
    const ends = store.prepare(`SELECT id FROM attempts WHERE ended_at IS NOT NULL AND ${ofRun}`).all(live);
    expect(ends.length).toBeGreaterThan(4);
    const setEnd = store.prepare('UPDATE attempts SET ended_at = ? WHERE id = ?');
    for (const [i, { id }] of (ends as { id: number }[]).entries()) setEnd.run(iso(0, i * 30 * 60_000), id);
    store.prepare('UPDATE model_calls SET cost_nano = 0').run();
    expect(pace()).toEqual({ perHour: 2, nanoPerHour: 0 });
    store.prepare(`UPDATE attempts SET ended_at = NULL WHERE ${ofRun}`).run(live);
    expect(pace()).toBeNull();
  });

  test.each([
    [null, '-'],
    [900, '0.9 s'],
    [59_400, '59 s'],
    [61_000, '1 min 1 s'],
    [7_260_000, '2 h 1 min'],
  ])('%s ms is %s', (ms, text) => {
    expect(clockTime(ms)).toBe(text);
  });
});
