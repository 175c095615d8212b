// What the outline of an attempt says of a message, and what it leaves out because nobody knows it.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Store } from '../../../src/store/open.ts';
import type { AttemptDocument } from '../../../src/viewer/documents/attemptDocuments.ts';
import { createDocuments } from '../../../src/viewer/documents/resources.ts';
import { addRun, openFixture } from '../fixture.ts';

let dir: string;
let store: Store;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'swebatch-outline-'));
  store = openFixture(dir);
  addRun(store, { name: 'r', instances: 1, steps: 2 });
});
afterEach(() => {
  store.close();
  rmSync(dir, { recursive: true, force: true });
});
const outline = () => (createDocuments(store, { title: 't' }).read('attempts/1') as AttemptDocument).outline;

test('each message has its time; an import, which gives all the same, shows none', () => {
  expect(new Set(outline().map(({ at }) => at)).size).toBeGreaterThan(2);
  store.exec("UPDATE messages SET created_at = '2026-11-01T00:00:00.000Z'");
  expect(outline().map(({ at }) => at)).toEqual(outline().map(() => null));
});

test('a command that no observation shows belongs to the last answer', () => {
  const last = () => outline().findLast(({ role }) => role === 'assistant')!.does;
  expect(last()?.kind).toBe('test');
  store.exec(
    `UPDATE commands SET message_seq = NULL, command = 'echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT'
     WHERE attempt_id = 1 AND step = (SELECT max(step) FROM commands WHERE attempt_id = 1)`,
  );
  expect(last()).toMatchObject({ kind: 'submit', command: 'echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT' });
});
