// What a program asked and got comes back whole from rows that hold each message once, without secrets.
import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { sha256 } from '../../../src/base/sha256.ts';
import { createRedactor } from '../../../src/base/text/redact.ts';
import {
  createProgramRecord,
  programsSeen,
  requestsOf,
  unpacked,
} from '../../../src/run/record/programRecord.ts';
import type { ProgramCallRow } from '../../../src/store/records/modelCalls.ts';
import { openMemory, recordRun } from '../../report/recordedRun.ts';
import { answeredCall } from '../../support/agents/agentBench.ts';
import { put } from '../../viewer/fixtureRows.ts';

const KEY = 'sk-very-secret-0123456789';

function rowsOf(calls: readonly Parameters<typeof answeredCall>[0][]): ProgramCallRow[] {
  const record = createProgramRecord(createRedactor([{ name: 'KEY', value: KEY }]));
  return calls.map((call, index) => ({
    attempt_id: 1,
    ...record.row({
      ...{ call: answeredCall({ index, ...call }), label: null, firstMessage: 0, replyMessage: null },
    }),
  }));
}

const long = 'x'.repeat(20_000);
const said = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ role: 'user', content: `${n} ${Math.sin(n)} ${long}` }));
const chat = (count: number) => ({ model: 'm-1', tools: [{ name: long }], messages: said(count) });

describe('the calls of a program in the record', () => {
  test('hold what is new, and come back whole', () => {
    const rows = rowsOf([1, 3, 5, 7].map((count) => ({ sent: chat(count) })));
    expect(requestsOf(rows).map(({ body }) => body)).toEqual([1, 3, 5, 7].map(chat));
    const last = JSON.parse(gunzipSync(rows[3]!.request).toString()) as Record<string, unknown>;
    expect(last).toMatchObject({ base: 2, shared: 5, rest: null });
    expect(last.items).toHaveLength(2);
  });

  test('come back whole where a history was rewritten, conversations mix, and a later call ended first', () => {
    const bodies = [
      { thread: 'main', sent: chat(3) },
      { thread: 'title', sent: { model: 'm-1', messages: said(1) } },
      { thread: 'main', sent: { ...chat(2), tools: [] } },
      { thread: 'main', sent: { model: 'm-1', messages: 'no list' } },
    ];
    const rows = rowsOf([bodies[0]!, { ...bodies[1]!, index: 2 }, { ...bodies[2]!, index: 1 }, bodies[3]!]);
    const byCall = rows.toSorted((a, b) => a.call - b.call);
    expect(requestsOf(byCall).map(({ body }) => body)).toEqual(
      [bodies[0]!, bodies[2]!, bodies[1]!, bodies[3]!].map(({ sent }) => sent),
    );
  });

  test.each([
    ['responses', { model: 'm', input: [{ type: 'message', role: 'user', content: 'hi' }] }],
    ['responses', { model: 'm', input: 'hi' }],
    ['messages', { model: 'm', system: 's', messages: [{ role: 'user', content: 'hi' }] }],
    ['gemini', { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] }],
    ['chat', { model: 'm', messages: [] }],
  ] as const)('%s', (dialect, sent) => {
    expect(requestsOf(rowsOf([{ dialect, sent }]))[0]!.body).toEqual(sent);
  });

  test('hold no secret, neither of the request nor of the answer', () => {
    const text = `the key is ${KEY}`;
    const [row] = rowsOf([
      {
        sent: { model: 'm', messages: [{ role: 'user', content: text }], user: KEY },
        got: `data: ${text}\n\n`,
      },
    ]) as [ProgramCallRow];
    const stored = [unpacked(row.request), unpacked(row.response)].map(String).join('\n');
    expect(stored).toContain('the key is ‹redacted:KEY›');
    expect(stored).not.toContain(KEY);
  });

  test('that refer to each other in a circle, or to nothing, are an error and no endless loop', () => {
    const [one, two] = rowsOf([{ sent: chat(1) }, { sent: chat(2) }]) as [ProgramCallRow, ProgramCallRow];
    expect(() => requestsOf([{ ...two, call: 0 }, one])).not.toThrow();
    expect(() => requestsOf([{ ...two, call: 0 }])).toThrow(/goes on from a call that is not there/);
    expect(() => requestsOf([two])).toThrow(/goes on from a call that is not there/);
  });
});

test('what a program says to its model is told for each arm, from the first request of its own turns', async () => {
  const db = openMemory();
  const runId = recordRun(db, {
    ids: ['a__a-1'],
    arms: ['built-in', 'qwen'],
    happened: () => [{ outcome: 'resolved' }],
  });
  const [attempt] = db
    .prepare(
      `SELECT f.id FROM attempts f JOIN trials t ON t.id = f.trial_id JOIN arms m ON m.id = t.arm_id WHERE m.name = 'qwen'`,
    )
    .all() as { id: number }[];
  const tool = {
    type: 'function',
    function: { name: 'run_shell', description: 'd', parameters: { type: 'object' } },
  };
  const sent = {
    ...{ model: 'm-1', temperature: 0.2, tools: [tool] },
    messages: [
      { role: 'system', content: 'You are Qwen.' },
      { role: 'user', content: 'the task' },
    ],
  };
  const aside = { model: 'm-1', messages: [{ role: 'system', content: 'Write a title.' }] };
  const [title, first] = rowsOf([
    { sent: aside, thread: 'title' },
    { sent, thread: 'main' },
  ]);
  for (const row of [{ ...title!, label: 'title' }, first!])
    put(db, 'program_calls', { ...row, attempt_id: attempt!.id });
  expect(await programsSeen(db, runId)).toEqual({
    qwen: {
      ...{ dialect: 'chat', model: 'm-1', tools: ['run_shell'], parameters: { temperature: 0.2 } },
      system: { text: 'You are Qwen.', sha256: sha256('You are Qwen.') },
      first_request_tokens: null,
    },
  });
  db.close();
});
