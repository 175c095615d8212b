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
