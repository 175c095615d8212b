// An attempt of an agent that is a program: its own conversation first, then those beside it with what they cost, and how it ended.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Store } from '../../src/store/open.ts';
import type { AttemptDocument, MessageChunk } from '../../src/viewer/documents/attemptDocuments.ts';
import { createDocuments } from '../../src/viewer/documents/resources.ts';
import { failureOf } from '../../src/viewer/steps/alignedAttempts.ts';
import { byThread, programLines, trajectoryLines } from '../../src/viewer/trajectoryLines.ts';
import { addRun, openFixture } from './fixture.ts';
import { put } from './fixtureRows.ts';
import { HOSTILE } from './hostileRun.ts';

let dir: string;
let store: Store;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'swebatch-program-'));
  store = openFixture(dir);
  addRun(store, { name: 'r', instances: 1, steps: 2 });
});
afterEach(() => {
  store.close();
  rmSync(dir, { recursive: true, force: true });
});

const read = () => {
  const documents = createDocuments(store, { title: 't' });
  const doc = documents.read('attempts/1') as AttemptDocument;
  const { messages } = documents.read('attempts/1/messages/0') as MessageChunk;
  return { doc, text: [...trajectoryLines(doc, byThread(doc, messages)), ...programLines(doc)].join('\n') };
};

/** The messages of the fixture: system, user, and two turns. The second turn becomes a title's. */
function asProgram({ title = 'title', output = 'last words' } = {}): void {
  const call = (at: number, thread: string, label: string | null, first: number, reply: number | null) =>
    put(store, 'program_calls', {
      ...{
        attempt_id: 1,
        call: at,
        step: 1,
        label,
        thread,
        dialect: 'chat',
        operation: 'generate',
        model: 'm',
      },
      ...{ first_message: first, reply_message: reply, answer: 'whole', status: 200, headers: '{}' },
      ...{ request: Buffer.alloc(0), response: Buffer.alloc(0), failure: null },
    });
  call(0, 'main', null, 0, 2);
  call(1, title, 'title', 3, 4);
  call(2, 'main', null, 5, null);
  const ids = store.prepare('SELECT id FROM model_calls WHERE attempt_id = 1 ORDER BY id').pluck().all();
  for (const [at, id] of ids.entries())
    store
      .prepare('UPDATE model_calls SET call = ?, cost_nano = ? WHERE id = ?')
      .run(at, 1_000_000 * (at + 1), id);
  store
    .prepare('UPDATE attempts SET error_evidence = ? WHERE id = 1')
    .run(JSON.stringify({ exit_code: 3, output_bytes: 10, output_end: output }));
}

test('the built-in agent has one conversation and no program', () => {
  const { doc, text } = read();
  expect(doc.threads).toEqual([]);
  expect(doc.attempt.program).toBeNull();
  expect(text).not.toContain('══');
});

test('conversations are apart, each with its calls and its cost, and the end of the program is there', () => {
  asProgram();
  const { doc, text } = read();
  expect(doc.threads).toEqual([
    { name: 'main', label: null, calls: 2, messages: 5, costNano: 1_000_000, unknownCalls: 0 },
    { name: 'title', label: 'title', calls: 1, messages: 2, costNano: 2_000_000, unknownCalls: 0 },
  ]);
  expect(doc.outline.map(({ thread }) => thread)).toEqual([
    'main',
    'main',
    'main',
    'title',
    'title',
    'main',
    'main',
  ]);
  expect(doc.outline[4]!.call).toMatchObject({ cost_nano: 2_000_000 });
  expect(text).toContain('conversations: main · 2 calls · $0.0010; title · 1 call · $0.0020');
  expect(text).toMatch(/══ title · 1 call · \$0\.0020 ═+\n\n── user/);
  expect(text.indexOf('── exit')).toBeLessThan(text.indexOf('══ title'));
  expect(text).toMatch(/── program · exit 3 ─+\nlast words$/);
});

test('names and output of a program cannot steer the terminal', () => {
  asProgram({ title: Object.values(HOSTILE).join(' '), output: Object.values(HOSTILE).join(' ') });
  expect(read().text).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
});

test('a program and its commands without an exit code failed nowhere', () => {
  asProgram();
  store.prepare('UPDATE commands SET exit_code = NULL').run();
  store
    .prepare(
      "UPDATE messages SET content = 'a b', content_bytes = NULL, output_id = NULL WHERE role = 'user'",
    )
    .run();
  store
    .prepare('UPDATE attempts SET error_evidence = ? WHERE id = 1')
    .run(JSON.stringify({ exit_code: null, output_bytes: 5, output_end: 'so far' }));
  const { doc, text } = read();
  expect(doc.outline.filter((row) => failureOf(row) !== '')).toEqual([]);
  expect(doc.outline.every(({ exitCode }) => exitCode === null)).toBe(true);
  expect(text).not.toMatch(/exit -?\d/);
  expect(text).toMatch(/── program · killed ─+\nso far$/);
});

test('an evidence of another form is no program', () => {
  for (const evidence of ['{"stack":"x"}', '[]', 'no JSON', '{"exit_code":"0"}']) {
    store.prepare('UPDATE attempts SET error_evidence = ? WHERE id = 1').run(evidence);
    expect(read().doc.attempt.program).toBeNull();
  }
});

test('a program that the memory limit killed says so', () => {
  asProgram();
  store
    .prepare('UPDATE attempts SET error_evidence = ? WHERE id = 1')
    .run(JSON.stringify({ exit_code: 137, output_bytes: 0, output_end: '', oom_killed: true }));
  const { doc, text } = read();
  expect(doc.attempt.program).toEqual({ exitCode: 137, outputEnd: '', oomKilled: true });
  expect(text).toContain('program · exit 137 · the memory limit killed a process of it');
  expect(text).not.toContain('memory: the limit');
  store.prepare('UPDATE attempts SET oom_kills = 2 WHERE id = 1').run();
  expect(read().text.split('\n').slice(0, 5)).toContain(
    'memory: the limit (environment.memory) killed 2 processes',
  );
});

test('what its containers reached is one line for each host and outcome', () => {
  const row = (host: string, outcome: string, more: Record<string, unknown> = {}) =>
    put(store, 'connections', {
      ...{ attempt_id: 1, phase: 'agent', via: 'connect', host, port: 443, outcome, reason: null },
      ...{ bytes_in: 10, bytes_out: 2, started_at: '2026-01-01T00:00:00.000Z', duration_ms: 3 },
      ...more,
    });
  expect(read().doc.attempt.connections).toBeUndefined();
  row('pypi.org', 'allowed');
  row(Object.values(HOSTILE).join(' '), 'refused', { reason: 'it is not on the list of hosts' });
  row('pypi.org', 'allowed', { reason: 'closed as the phase "verifier" began' });
  row('pypi.org', 'allowed', { phase: 'verifier' });
  expect(read().doc.attempt.connections).toMatchObject([
    {
      phase: 'agent',
      host: 'pypi.org',
      outcome: 'allowed',
      reason: null,
      count: 2,
      bytesIn: 20,
      bytesOut: 4,
    },
    { outcome: 'refused', reason: 'it is not on the list of hosts', count: 1 },
    { phase: 'verifier', host: 'pypi.org', count: 1 },
  ]);
});
