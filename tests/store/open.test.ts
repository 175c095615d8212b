// Opening: newer and older schemas, damage, full disks and foreign locks are told, never passed over.
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  truncateSync,
  utimesSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { backUp, DamagedCopy, newestBackup } from '../../src/store/backup.ts';
import { networkFilesystem, openStore, SCHEMA_VERSION, StorageError } from '../../src/store/open.ts';
import { insertEvent } from '../../src/store/records/attemptBodies.ts';
import { runByName } from '../../src/store/records/runs.ts';
import { assertInPlace, guarded, onFullDisk } from '../../src/store/writing.ts';
import { planted } from './storeFixtures.ts';

const folder = () => mkdtempSync(join(tmpdir(), 'store-'));

describe('opening a store', () => {
  test('creates the newest schema with WAL and keeps what is there', () => {
    const path = join(folder(), 'swebatch.db');
    const first = openStore(path);
    planted(first);
    expect(first.pragma('journal_mode', { simple: true })).toBe('wal');
    expect(first.pragma('user_version', { simple: true })).toBe(SCHEMA_VERSION);
    first.close();
    const again = openStore(path);
    expect(runByName(again, 'r1')?.dataset_source).toBe('d.jsonl');
    again.close();
  });

  test('a newer schema is refused with what to do', () => {
    const path = join(folder(), 'swebatch.db');
    const db = openStore(path);
    planted(db);
    db.pragma('user_version = 9999');
    expect(() => openStore(path)).toThrow(/created by a newer version \(schema 9999; .*please upgrade/);
    db.exec(`UPDATE runs SET manifest = '{"program":{"version":"7.1.0"}}'`);
    db.close();
    expect(() => openStore(path)).toThrow(/created by version 7\.1\.0 .*please upgrade/);
    expect(() => openStore(path, { readonly: true })).toThrow(StorageError);
  });

  test('a damaged page is refused before anything is written', () => {
    const path = join(folder(), 'swebatch.db');
    const db = openStore(path);
    planted(db, { ids: Array.from({ length: 200 }, (_, i) => `a__a-${i}`) });
    db.close();
    const file = openSync(path, 'r+');
    writeSync(file, Buffer.alloc(8192, 0xab), 0, 8192, 8192);
    const before = readFileSync(path);
    expect(() => openStore(path)).toThrow(/damaged.*backup/s);
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test('a file that is no database is refused', () => {
    const path = join(folder(), 'swebatch.db');
    copyFileSync(import.meta.filename, path);
    expect(() => openStore(path)).toThrow(/damaged/);
  });

  test('a full database stops the write with its name and what to do [S-58]', () => {
    const store = openStore(join(folder(), 'swebatch.db'));
    const run = planted(store);
    const pages = store.pragma('page_count', { simple: true }) as number;
    store.pragma(`max_page_count = ${pages}`);
    const write = () => {
      for (let i = 0; i < 1000; i++) insertEvent(store, run.id, 'now', 'note', { text: 'x'.repeat(500) });
    };
    expect(write).toThrow(/cannot write .*swebatch\.db: the disk is full/);
  });

  test('a lock that another process holds too long is told as busy', () => {
    const path = join(folder(), 'swebatch.db');
    const other = openStore(path);
    const mine = openStore(path, { busyTimeoutMs: 1 });
    planted(other);
    other.exec('BEGIN IMMEDIATE');
    expect(() => planted(mine, { name: 'r2' })).toThrow(/SQLITE_BUSY.*another process/);
    other.exec('ROLLBACK');
  });

  test('a read-only open never creates a file', () => {
    expect(() => openStore(join(folder(), 'swebatch.db'), { readonly: true })).toThrow(/start a run first/);
  });

  test('a backup taken while others write is a whole database, and takes the place of the one before [T-64]', async () => {
    const path = join(folder(), 'swebatch.db');
    const store = openStore(path);
    const run = planted(store);
    const first = await backUp(path, '2026-11-21T01:00:00.000Z');
    const copying = backUp(path, '2026-11-21T02:00:00.000Z');
    insertEvent(store, run.id, 'now', 'note', { text: 'meanwhile' });
    const second = await copying;
    expect(second).toBe(`${path}.backup-2026-11-21T02-00-00-000Z`);
    expect(newestBackup(path)).toBe(second);
    expect(existsSync(first!)).toBe(false);
    const copy = openStore(second!, { readonly: true });
    expect(runByName(copy, 'r1')).toBeDefined();
    expect(copy.pragma('integrity_check', { simple: true })).toBe('ok');
  });

  test('a backup is copied, synced and checked beside the thread that all slots share', async () => {
    const path = join(folder(), 'swebatch.db');
    using store = openStore(path);
    store.exec('CREATE TABLE filler (bytes BLOB)');
    store.prepare('INSERT INTO filler VALUES (zeroblob(100000000))').run();
    const [mine, all] = [process.threadCpuUsage(), process.cpuUsage()];
    await backUp(path, '2026-11-21T01:00:00.000Z');
    const [here, everywhere] = [process.threadCpuUsage(mine), process.cpuUsage(all)];
    expect(here.user + here.system).toBeLessThan((everywhere.user + everywhere.system) / 2);
  });

  test('a copy of a damaged record does not take the place of the whole one before it [T-64]', async () => {
    const path = join(folder(), 'swebatch.db');
    const db = openStore(path);
    planted(db, { ids: Array.from({ length: 200 }, (_, i) => `a__a-${i}`) });
    const whole = await backUp(path, '2026-11-21T01:00:00.000Z');
    db.close();
    const file = openSync(path, 'r+');
    writeSync(file, Buffer.alloc(8192, 0xab), 0, 8192, 8192);
    await expect(backUp(path, '2026-11-21T02:00:00.000Z')).rejects.toThrow(DamagedCopy);
    expect(newestBackup(path)).toBe(whole);
    expect(readdirSync(dirname(path)).filter((name) => name.includes('02-00'))).toEqual([]);
  });

  test('what a process left that was killed while it copied is removed, and not what another one writes', async () => {
    const path = join(folder(), 'swebatch.db');
    const db = openStore(path);
    planted(db);
    const [abandoned, live] = ['1', '2'].map((n) => `${path}.backup-2026-11-20T0${n}-00-00-000Z.part`);
    for (const part of [abandoned!, live!]) copyFileSync(path, part);
    const longAgo = Date.now() / 1000 - 3600;
    utimesSync(abandoned!, longAgo, longAgo);
    await backUp(path, '2026-11-21T02:00:00.000Z');
    expect([existsSync(abandoned!), existsSync(live!)]).toEqual([false, true]);
  });

  test('reading where a process was killed in its first moments: there are no runs yet', () => {
    const path = join(folder(), 'swebatch.db');
    new Database(path).pragma('journal_mode = WAL');
    expect(() => openStore(path, { readonly: true })).toThrow(/no runs in .*swebatch\.db yet/);
  });

  test.each([
    [0x6969, 'NFS'],
    [0xff534d42 | 0, 'CIFS'],
    [0x0bd00bd0, 'Lustre'],
    [0x47504653, 'GPFS'],
    [0x00c36400, 'Ceph'],
    [0xef53, undefined],
    [0x58465342, undefined],
    [0x9123683e | 0, undefined],
    [0x794c7630, undefined],
    [0x01021994, undefined],
  ])('a file system of type %i is %s [T-53]', (type, name) => {
    expect(networkFilesystem(type)).toBe(name);
  });

  test('a damaged database names its last backup and how to put it back', async () => {
    const path = join(folder(), 'swebatch.db');
    const db = openStore(path);
    planted(db, { ids: Array.from({ length: 200 }, (_, i) => `a__a-${i}`) });
    const backup = await backUp(path, '2026-11-21T01:00:00.000Z');
    db.close();
    const file = openSync(path, 'r+');
    writeSync(file, Buffer.alloc(8192, 0xab), 0, 8192, 8192);
    expect(() => openStore(path)).toThrow(`The last backup is ${backup}: put it in place with`);
    copyFileSync(backup!, path);
    expect(runByName(openStore(path), 'r1')).toBeDefined();
  });

  test('a full disk is relieved once, and the whole transaction is written again', () => {
    const store = openStore(join(folder(), 'swebatch.db'));
    const run = planted(store);
    const pages = store.pragma('page_count', { simple: true }) as number;
    store.pragma(`max_page_count = ${pages}`);
    let asked = 0;
    onFullDisk(store, () => {
      asked += 1;
      store.pragma(`max_page_count = ${pages + 200}`);
      return asked === 1;
    });
    const write = store.transaction(() => {
      for (let i = 0; i < 500; i++) insertEvent(store, run.id, 'now', 'note', { text: 'x'.repeat(500) });
    });
    guarded(store, () => write.immediate());
    expect(asked).toBe(1);
    expect(store.prepare('SELECT count(*) AS n FROM events').get()).toEqual({ n: 500 });
    expect(() => {
      for (let i = 0; i < 5000; i++) insertEvent(store, run.id, 'now', 'note', { text: 'x'.repeat(500) });
    }).toThrow(/the disk is full/);
    expect(asked).toBe(2);
  });

  test('a log that is cut under a running process is noticed, though that process still reads what was in it', () => {
    const path = join(folder(), 'swebatch.db');
    const store = openStore(path);
    planted(store);
    const count = () => store.prepare('SELECT count(*) AS n FROM trials').get();
    const before = count();
    assertInPlace(store);
    const { size } = statSync(`${path}-wal`);
    truncateSync(`${path}-wal`, size - 100);
    expect(count()).toEqual(before);
    expect(() => assertInPlace(store)).toThrow(/-wal is shorter than what was written.*resume it/);
    truncateSync(`${path}-wal`, 0);
    expect(() => assertInPlace(store)).toThrow(/-wal is shorter than what was written/);
  });

  test('a log that SQLite itself has moved into the database and begun anew is in place', () => {
    const path = join(folder(), 'swebatch.db');
    const store = openStore(path);
    planted(store);
    for (const mode of ['PASSIVE', 'RESTART', 'TRUNCATE']) {
      store.pragma(`wal_checkpoint(${mode})`);
      assertInPlace(store);
      insertEvent(store, 1, 'now', 'note', { text: 'x'.repeat(9000) });
      assertInPlace(store);
    }
    assertInPlace(store);
  });

  test('files taken away under a running process are noticed', () => {
    const path = join(folder(), 'swebatch.db');
    const store = openStore(path);
    planted(store);
    assertInPlace(store);
    renameSync(`${path}-wal`, `${path}-elsewhere`);
    expect(() => assertInPlace(store)).toThrow(/-wal was deleted while it was in use/);
    renameSync(`${path}-elsewhere`, `${path}-wal`);
    assertInPlace(store);
    copyFileSync(path, `${path}-copy`);
    renameSync(`${path}-copy`, path);
    expect(() => assertInPlace(store)).toThrow(/removed or replaced/);
  });
});
