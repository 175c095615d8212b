// A record of a schema before ours: one sentence says so, and nothing in it changes, whether it was to be read or written.
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openStore, SCHEMA_VERSION, StorageError } from '../../src/store/open.ts';
import { cli } from '../support/cli.ts';
import { planted } from './storeFixtures.ts';

let dir: string;
let older: Database.Database;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'swebatch-older-'));
  older = new Database(join(dir, 'swebatch.db'));
  older.pragma('journal_mode = WAL');
  older.exec("CREATE TABLE runs (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO runs VALUES (1, 'nightly')");
  older.pragma(`user_version = ${SCHEMA_VERSION - 1}`);
  older.pragma('wal_checkpoint(TRUNCATE)');
  older.exec("INSERT INTO runs VALUES (2, 'nightly-2')");
});
afterAll(() => {
  older.close();
  rmSync(dir, { recursive: true, force: true });
});

/** As a killed process leaves it: the last rows are in the log alone. */
function rootOf(): { root: string; bytes(): string[] } {
  const root = mkdtempSync(join(dir, 'root-'));
  const files = ['swebatch.db', 'swebatch.db-wal'].map((name) => join(root, name));
  for (const name of ['swebatch.db', 'swebatch.db-wal']) copyFileSync(join(dir, name), join(root, name));
  return { root, bytes: () => files.map((path) => readFileSync(path).toString('base64')) };
}

test.each([true, false])('opened with readonly %s, it is refused and stays what it is', (readonly) => {
  const { root, bytes } = rootOf();
  const before = bytes();
  const open = () => openStore(join(root, 'swebatch.db'), { readonly });
  expect(open).toThrow(
    `created by an earlier swebatch that was never released (schema ${SCHEMA_VERSION - 1}; this one knows ${SCHEMA_VERSION}), and is left as it is`,
  );
  expect(open).toThrow(StorageError);
  expect(bytes()).toEqual(before);
});

test.each([
  ['ls'],
  ['compare', 'nightly', 'nightly-2'],
  ['verify', 'nightly'],
  ['baseline', 'set', 'nightly'],
  ['resume', 'nightly'],
])('%s ends with 2 and says to keep it and to name another root', async (...words) => {
  const { root, bytes } = rootOf();
  const before = bytes();
  const { code, stderr } = await cli([...words, '-o', root]);
  expect(stderr).toMatch(
    /was never released .* keep it for that version, and name another results root with -o/,
  );
  expect(stderr).not.toContain('SQLITE');
  expect(code).toBe(2);
  expect(bytes()).toEqual(before);
  expect(readdirSync(root).filter((name) => !name.startsWith('swebatch.db'))).toEqual([]);
});

test('a database of this schema is opened without a word', () => {
  const path = join(dir, 'ours.db');
  const store = openStore(path);
  planted(store);
  store.close();
  openStore(path, { readonly: true }).close();
});
