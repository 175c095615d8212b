// Long texts are stored compressed and once, come back byte for byte, and plain SQL shows them.
import { execFileSync, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  commandsOf,
  insertCommand,
  insertMessage,
  messagesOf,
} from '../../src/store/records/attemptBodies.ts';
import { fromParts, inOutputParts } from '../../src/store/repeatedOutput.ts';
import { endTurn, giveBackSpace } from '../../src/store/writing.ts';
import { tempDir } from '../support/cli.ts';
import fc from '../support/property.ts';
import { freshStore } from './storeFixtures.ts';

const LONG = 'what the command printed, "line" by line\n'.repeat(800);

function recorded(content: string, extra: object = {}, store = freshStore()) {
  store.pragma('foreign_keys = OFF');
  const message = { role: 'user', content, extra };
  const data = JSON.stringify(message);
  const seq = messagesOf(store, 1).length;
  insertMessage(
    store,
    { attempt_id: 1, seq, role: 'user', content, data, created_at: 'now' },
    JSON.stringify({ ...message, content: 0 }),
  );
  return { store, seq, data };
}

const command = (output: Buffer, step = 0) => ({
  ...{ attempt_id: 1, step, idx: 0, message_seq: null, command: 'cat', output, exit_code: 0, timed_out: 0 },
  ...{ total_bytes: output.length, omitted_bytes: 0, replaced_bytes: 0, oom_killed: 0, transport: 'x' },
  ...{ started_at: 'now', duration_ms: 1 },
});

test.each([
  ['long', LONG, {}],
  ['short', 'ls', {}],
  ['with a number for content below', LONG, { response: { content: 0 } }],
  ['with the mark inside', `"content":0${LONG}`, {}],
])('a message comes back as it was: %s', (_, content, extra) => {
  const { store, data } = recorded(content, extra);
  expect(messagesOf(store, 1)).toMatchObject([{ content, data }]);
});

test('any message comes back as it was', () => {
  const store = freshStore();
  const text = fc.string({ unit: 'binary', maxLength: 30 }).map((part) => part.toWellFormed().repeat(100));
  fc.assert(
    fc.property(text, fc.jsonValue(), (content, extra) => {
      const { seq, data } = recorded(content, { extra }, store);
      expect(messagesOf(store, 1)[seq]).toMatchObject({ content, data });
      store.exec('DELETE FROM messages');
    }),
    { numRuns: 200 },
  );
});

test('output comes back as it was, bytes that are no text too', () => {
  const store = freshStore();
  store.pragma('foreign_keys = OFF');
  const outputs = [Buffer.from(LONG), Buffer.alloc(5000, 0xff), Buffer.from('ok')];
  for (const [step, output] of outputs.entries()) insertCommand(store, command(output, step));
  expect(commandsOf(store, 1).map(({ output }) => output)).toEqual(outputs);
});

const PRINTED = Array.from({ length: 800 }, (_, i) => `line ${i} of what a command printed, ünd é\n`).join(
  '',
);
const LOSSY = Buffer.concat([Buffer.from('broken: \xff', 'latin1'), Buffer.from(PRINTED)]);
const observation = (shown: string) => `<returncode>0</returncode>\n<output>\n${shown}</output>`;

test.each([
  ['all of it', Buffer.from(PRINTED), observation(PRINTED), true],
  [
    'its beginning and its end, cut in characters',
    Buffer.from(PRINTED),
    observation(`${PRINTED.slice(0, 5033)}\n(10 characters elided)\n${PRINTED.slice(-5012)}`),
    true,
  ],
  ['it without what the template trims', Buffer.from(`\n${PRINTED}\n`), observation(PRINTED), true],
  ['what is no text of it', LOSSY, observation(LOSSY.toString()), true],
  ['a zero byte of it', Buffer.from(`\0${PRINTED}`), observation(`\0${PRINTED}`), true],
  ['little of it', Buffer.from(PRINTED), observation(PRINTED.slice(0, 500)), false],
  ['another text', Buffer.from(PRINTED), observation(LONG), false],
])('an observation shows %s', (_, output, content, inParts) => {
  const path = join(tempDir(), 'swebatch.db');
  const store = freshStore(path);
  store.pragma('foreign_keys = OFF');
  const id = insertCommand(store, command(output));
  const data = JSON.stringify({ role: 'user', content });
  const row = { attempt_id: 1, seq: 0, role: 'user', content, data, created_at: 'now' };
  insertMessage(store, row, JSON.stringify({ role: 'user', content: 0 }), { id, output });
  expect(messagesOf(store, 1)).toEqual([row]);
  const stored = store.prepare('SELECT output_id, length(content) AS length FROM messages').get();
  expect(stored).toEqual({ output_id: inParts ? id : null, length: expect.any(Number) });
  if (inParts) expect((stored as { length: number }).length).toBeLessThan(200);
  const shown = (sql: string) => `SELECT hex(${sql}) FROM message_texts`;
  const expected = Buffer.from(content).toString('hex').toUpperCase();
  expect(store.prepare(shown('content')).pluck().get()).toBe(expected);
  expect(store.prepare('SELECT data FROM message_texts').pluck().get()).toBe(data);
  endTurn(store);
  if (spawnSync('sqlite3', ['-version']).error === undefined)
    expect(execFileSync('sqlite3', [path, shown('content')], { encoding: 'utf8' })).toBe(`${expected}\n`);
});

test('any text comes back from its parts', () => {
  const text = fc.string({ unit: 'binary', maxLength: 40 }).map((part) => part.repeat(120));
  fc.assert(
    fc.property(text, text, fc.nat(9000), fc.nat(9000), (printed, other, from, to) => {
      const output = Buffer.from(printed);
      const content = observation(`${printed.slice(0, from)}${other}${printed.slice(-to)}`);
      const parts = inOutputParts(content, output);
      if (parts !== undefined) expect(fromParts(parts, output)).toBe(content);
    }),
    { numRuns: 500 },
  );
});

test('views show the texts, to this program and to sqlite3', () => {
  const path = join(tempDir(), 'swebatch.db');
  const { store, data } = recorded(LONG, {}, freshStore(path));
  insertCommand(store, command(Buffer.from(LONG)));
  const sql = `SELECT m.content = c.output AND json_extract(m.data, '$.content') = m.content AS same, length(m.data) AS chars
    FROM message_texts m JOIN command_texts c USING (attempt_id)`;
  expect(store.prepare(sql).get()).toEqual({ same: 1, chars: data.length });
  const stored = store.prepare('SELECT length(content) + length(data) AS n FROM messages').pluck().get();
  expect(stored).toBeLessThan(LONG.length / 10);
  endTurn(store);
  // Not on every machine.
  if (spawnSync('sqlite3', ['-version']).error === undefined)
    expect(execFileSync('sqlite3', [path, sql], { encoding: 'utf8' })).toBe(`1|${data.length}\n`);
});

test('messages of some kilobytes leave little of their pages empty', () => {
  const store = freshStore();
  store.pragma('foreign_keys = OFF');
  const row = { attempt_id: 1, role: 'user', data: '{}', created_at: 'now' };
  // As a reply and an observation lie there once they are compressed.
  for (let seq = 0; seq < 1000; seq++)
    insertMessage(store, { ...row, seq, content: randomBytes(seq % 2 ? 1600 : 600).toString('hex') });
  const [{ used, all }] = store
    .prepare(`SELECT sum(pgsize - unused) AS used, sum(pgsize) AS "all" FROM dbstat WHERE name = 'messages'`)
    .all() as [{ used: number; all: number }];
  expect(used / all).toBeGreaterThan(0.8);
});

test('what is deleted goes back to the disk', () => {
  const path = join(tempDir(), 'swebatch.db');
  const store = freshStore(path);
  store.pragma('foreign_keys = OFF');
  for (let step = 0; step < 400; step++) insertCommand(store, command(randomBytes(20_000), step));
  giveBackSpace(store);
  const before = statSync(path).size;
  store.exec('DELETE FROM commands');
  giveBackSpace(store);
  expect(statSync(path).size).toBeLessThan(before / 2);
});
