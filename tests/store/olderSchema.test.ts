// A record of an earlier version is read as it is: nothing in it changes, and what it lacks is unknown.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sha256 } from '../../src/base/sha256.ts';
import { migrationFiles, openStore } from '../../src/store/open.ts';
import { viewerQueries } from '../../src/store/records/viewerQueries.ts';
import type { RunDocument, RunList } from '../../src/viewer/documents/documents.ts';
import { createDocuments } from '../../src/viewer/documents/resources.ts';
import { cli } from '../support/cli.ts';
import { addRun, openFixture } from '../viewer/fixture.ts';

const newest = migrationFiles().at(-1)!.version;
const earlier = migrationFiles()
  .map(({ version }) => version)
  .filter((version) => version < newest);
let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'swebatch-older-'));
  const store = openFixture(dir);
  addRun(store, { name: 'nightly', instances: 6, steps: 3 });
  addRun(store, { name: 'nightly-2', instances: 6, steps: 3, seed: 2, day: 1 });
  store.close();
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** The same rows as that version would hold them. */
function rootOf(version: number): string {
  const root = mkdtempSync(join(dir, `v${version}-`));
  const db = new Database(join(root, 'swebatch.db'));
  for (const migration of migrationFiles().filter((one) => one.version <= version)) db.exec(migration.sql);
  db.pragma(`user_version = ${version}`);
  db.prepare('ATTACH ? AS full').run(join(dir, 'swebatch.db'));
  const list = (sql: string, ...values: string[]) =>
    db
      .prepare(sql)
      .pluck()
      .all(...values) as string[];
  db.pragma('foreign_keys = OFF');
  for (const table of list(
    "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
  )) {
    const columns = list("SELECT name FROM pragma_table_info(?, 'main')", table).join(', ');
    db.exec(
      `DELETE FROM main.${table}; INSERT INTO main.${table} (${columns}) SELECT ${columns} FROM full.${table}`,
    );
  }
  db.exec("UPDATE main.runs SET status = 'running' WHERE name = 'nightly-2'");
  db.close();
  return root;
}

describe.each(earlier)('a record of schema %i', (version) => {
  test('has all pages of the viewer, and stays what it is', () => {
    const root = rootOf(version);
    const before = sha256(readFileSync(join(root, 'swebatch.db')).toString('latin1'));
    const store = openStore(join(root, 'swebatch.db'), { readonly: true });
    const documents = createDocuments(viewerQueries(store), { title: 't' });
    expect((documents.read('runs') as RunList).runs.map(({ name }) => name).toSorted()).toEqual([
      'nightly',
      'nightly-2',
    ]);
    const { summary } = documents.read('runs/1') as RunDocument;
    expect(summary.tally.graded).toBeGreaterThan(0);
    for (const path of [
      'runs/2',
      'runs/1/map/0',
      'runs/1/trials/0',
      'attempts/1',
      'attempts/1/messages/0',
      'history/django__django-10000',
    ])
      expect(documents.read(path), path).toBeDefined();
    store.close();
    expect(sha256(readFileSync(join(root, 'swebatch.db')).toString('latin1'))).toBe(before);
  });
});

test.each([
  ['report', 'nightly'],
  ['ls'],
  ['show', 'nightly'],
  ['compare', 'nightly', 'nightly-2'],
  ['engines', 'ls', 'nightly'],
])('%s reads the first of all schemas', async (...words) => {
  const { code, stderr } = await cli([...words, '-o', rootOf(1)]);
  expect(stderr).not.toContain('SQLITE');
  expect(code).toBe(0);
});
