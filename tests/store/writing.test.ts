// Small writes of one turn of the event loop are one transaction, and nobody is told that they are there before they are.
import { join } from 'node:path';
import { setImmediate as turned } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { expect, test, vi } from 'vitest';
import { onDisk } from '../../src/store/onDisk.ts';
import { type Store, statement } from '../../src/store/open.ts';
import { insertEvent } from '../../src/store/records/attemptBodies.ts';
import { setRunStatus } from '../../src/store/records/runs.ts';
import { endTurn, inTurn, onFullDisk, together, written } from '../../src/store/writing.ts';
import { tempDir } from '../support/cli.ts';
import { freshStore, planted } from './storeFixtures.ts';

function opened() {
  const path = join(tempDir(), 'swebatch.db');
  const store = freshStore(path);
  const run = planted(store);
  const other = new Database(path, { readonly: true });
  return {
    ...{ store, run, path },
    note: (text = 'x') => insertEvent(store, run.id, 'now', 'note', { text }),
    /** What another process sees. */
    seen: () => other.prepare('SELECT count(*) FROM events').pluck().get() as number,
  };
}

test('what is written in one turn is there as a whole when it ends, and can be read here at once', async () => {
  const { store, note, seen } = opened();
  note();
  note();
  expect(store.prepare('SELECT count(*) FROM events').pluck().get()).toBe(2);
  expect(seen()).toBe(0);
  await turned();
  expect(seen()).toBe(2);
});

test('whoever waits for the record or for the disk finds it written', async () => {
  const { store, note, seen } = opened();
  note();
  await written(store);
  expect(seen()).toBe(1);
  note();
  await onDisk(store);
  expect(seen()).toBe(2);
  await written(store);
});

test('any other write comes behind what was written before it', () => {
  const { store, run, note, seen } = opened();
  note();
  setRunStatus(store, run.id, 'complete', 'now');
  expect(seen()).toBe(1);
  note();
  together(store, () => note());
  expect(seen()).toBe(3);
});

test('closing loses nothing', () => {
  const { store, note, seen } = opened();
  note();
  store[Symbol.dispose]();
  expect(seen()).toBe(1);
});

test('a write that breaks a rule is taken back alone', async () => {
  const { store, run, note, seen } = opened();
  note();
  expect(() => insertEvent(store, run.id + 1, 'now', 'note', {})).toThrow(/FOREIGN KEY/);
  note();
  await turned();
  expect(seen()).toBe(2);
});

/** The rules are looked at when the turn ends, and then it cannot. */
const breakTurn = (store: Store) =>
  inTurn(store, () => {
    store.pragma('defer_foreign_keys = ON');
    return store.prepare(`INSERT INTO events (run_id, at, type) VALUES (99, 'now', 'note')`).run().changes;
  });

test('a turn that cannot be written is told to whoever waits and to the next who writes, and nothing is written behind the hole', async () => {
  const { store, run, note, seen } = opened();
  note();
  breakTurn(store);
  const waiting = written(store);
  await expect(waiting).rejects.toMatchObject({ name: 'StorageError' });
  expect(() => note()).toThrow(/FOREIGN KEY/);
  expect(() => setRunStatus(store, run.id, 'complete', 'now')).toThrow(/FOREIGN KEY/);
  await expect(onDisk(store)).rejects.toMatchObject({ name: 'StorageError' });
  expect(seen()).toBe(0);
});

test('a disk that is full when the turn ends is relieved, and writes of several statements are written once more as a whole', () => {
  const { store, note, seen } = opened();
  note();
  inTurn(store, () => together(store, () => note()));
  let asked = 0;
  onFullDisk(store, () => {
    asked += 1;
    return true;
  });
  // As SQLite ends a transaction whose end finds no room: it is taken back.
  vi.spyOn(statement(store, 'COMMIT'), 'run').mockImplementationOnce(() => {
    store.exec('ROLLBACK');
    throw new Database.SqliteError('database or disk is full', 'SQLITE_FULL');
  });
  endTurn(store);
  expect(asked).toBe(1);
  expect(seen()).toBe(2);
});

test('a disk that is full in the middle of a turn is relieved, and the whole turn is written', () => {
  const { store, note, seen } = opened();
  const pages = store.pragma('page_count', { simple: true }) as number;
  store.pragma(`max_page_count = ${pages + 4}`);
  let asked = 0;
  onFullDisk(store, () => {
    asked += 1;
    store.pragma('max_page_count = 100000');
    return true;
  });
  const ids = Array.from({ length: 200 }, () => note('x'.repeat(500)));
  endTurn(store);
  expect(asked).toBe(1);
  expect(seen()).toBe(200);
  expect(ids).toEqual(Array.from({ length: 200 }, (_, i) => ids[0]! + i));
});
