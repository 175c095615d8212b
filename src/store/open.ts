/**
 * Opens a results database: pragmas, integrity check, schema. SQLite is the truth of a results root; everything else is an export of it.
 */
import { accessSync, constants, existsSync, readFileSync, realpathSync, statfsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { errorText } from '../base/text/errorText.ts';
import { newestBackup } from './backup.ts';
import { sqlarUncompress } from './longText.ts';

/** `using store = …` closes it at the end of its block. */
export type Store = Database.Database & Disposable;

export type StorageCode =
  | 'newer_schema'
  | 'older_schema'
  | 'corrupt'
  | 'network_filesystem'
  | 'missing'
  | 'read_only'
  | 'write_failed'
  | 'busy'
  | 'lost';

/** The record cannot be kept or read: the run stops with exit code 5. */
export class StorageError extends Error {
  override readonly name = 'StorageError';
  readonly code: StorageCode;
  constructor(code: StorageCode, message: string, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

/** The version of schema.sql. A change of the schema raises it. */
export const SCHEMA_VERSION = 20;

interface OpenOptions {
  readonly readonly?: boolean;
  /** The database must exist, for writing too. */
  readonly mustExist?: boolean;
  /** Milliseconds to wait for another process's lock. */
  readonly busyTimeoutMs?: number;
}

type Ending = (db: Store) => void;
const endings = new WeakMap<Store, Set<Ending>>();
/** Work that has begun is ended before the database is closed. Each function is called once, in the order in which they came. */
export function beforeClose(db: Store, end: Ending): void {
  const known = endings.get(db);
  if (known) known.add(end);
  else endings.set(db, new Set([end]));
}

let opened = '';
/** The name for an error that does not name its database. */
export const lastOpened = (): string => opened;

export function openStore(path: string, options: OpenOptions = {}): Store {
  opened = path;
  const inMemory = path === ':memory:';
  if ((options.readonly || options.mustExist) && !inMemory && !existsSync(path))
    throw new StorageError(
      'missing',
      `no results database at ${path}; name the results root with -o, or start a run first`,
    );
  // For a link to a database on another disk, that disk counts.
  if (!inMemory) refuseNetworkFilesystem(dirname(existsSync(path) ? realpathSync(path) : path));
  if (!options.readonly && !inMemory && existsSync(path)) refuseOtherVersion(path);
  let db: Store;
  try {
    const { readonly = false, busyTimeoutMs: timeout = 15_000 } = options;
    const opened = new Database(path, { readonly, timeout });
    db = Object.assign(opened, {
      [Symbol.dispose]: () => {
        try {
          for (const end of endings.get(db) ?? []) end(db);
        } finally {
          opened.close();
        }
      },
    });
  } catch (error) {
    if (isSqlite(error) && error.code === 'SQLITE_IOERR_SHORT_READ') throw cutShort(path, error);
    const code = existsSync(dirname(path)) ? 'write_failed' : 'missing';
    throw new StorageError(code, `cannot open ${path}: ${errorText(error)}${readOnlyHint(path)}`, error);
  }
  try {
    if (options.readonly) {
      checkVersion(db, path);
      // A process that was killed at its start leaves an empty file.
      if (versionOf(db) === 0) throw new StorageError('missing', `no runs in ${path} yet`);
    } else prepareForWriting(db, path);
    db.function('sqlar_uncompress', { deterministic: true }, sqlarUncompress);
    db.exec(ATTEMPT_COSTS);
    return db;
  } catch (error) {
    db.close();
    if (options.readonly && READ_ONLY === readOnlyHint(path)) throw unreadable(path, error);
    throw error instanceof StorageError ? error : asStorageError(error, path);
  }
}

function prepareForWriting(db: Store, path: string): void {
  // Only a database without a page can be told so: what is deleted can be given back to the disk.
  if (db.pragma('page_count', { simple: true }) === 0) db.pragma('auto_vacuum = INCREMENTAL');
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = NORMAL');
  db.pragma('foreign_keys = ON');
  const check = damageIn(db, path);
  if (check !== undefined) throw corrupt(path, check);
  const make = db.transaction(() => {
    // Asked again inside the transaction: another process may have made it while we waited for its lock.
    if (versionOf(db) !== 0) return;
    db.exec(readFileSync(join(import.meta.dirname, 'schema.sql'), 'utf8'));
    db.pragma(`user_version = ${SCHEMA_VERSION}`);
  });
  if (versionOf(db) === 0) make.immediate();
  checkVersion(db, path);
}

/** To read all of a larger database takes minutes, in which a run would not begin. */
const CHECKED_WHOLE_BYTES = 2 ** 30;
/** Tables that decide which trials run. Other pages are checked when they are read; `swebatch verify` reads all. */
const DECIDING = ['runs', 'arms', 'trials'];

function damageIn(db: Store, path: string): string | undefined {
  const small = (statSync(path, { throwIfNoEntry: false })?.size ?? 0) <= CHECKED_WHOLE_BYTES;
  const checks = small || versionOf(db) === 0 ? ['1'] : DECIDING;
  return checks
    .map((which) => String(db.pragma(`quick_check(${which})`, { simple: true })))
    .find((answer) => answer !== 'ok');
}

const versionOf = (db: Database.Database): number => db.pragma('user_version', { simple: true }) as number;

/** Read-only: who only opens such a database for writing and closes it again has moved its log into it. */
function refuseOtherVersion(path: string): void {
  let db: Database.Database | undefined;
  try {
    db = new Database(path, { readonly: true });
    checkVersion(db, path);
  } catch (error) {
    // Other damage is told when it is opened for writing.
    if (error instanceof StorageError) throw error;
  } finally {
    db?.close();
  }
}

function checkVersion(db: Database.Database, path: string): void {
  const found = versionOf(db);
  if (found > SCHEMA_VERSION)
    throw new StorageError(
      'newer_schema',
      `${path} was created by ${creatorOf(db)} (schema ${found}; this swebatch knows ${SCHEMA_VERSION}), please upgrade`,
    );
  if (found > 0 && found < SCHEMA_VERSION)
    throw new StorageError(
      'older_schema',
      `${path} was created by an earlier swebatch that was never released (schema ${found}; this one knows ${SCHEMA_VERSION}), and is left as it is: keep it for that version, and name another results root with -o`,
    );
}

/** The version that planned the newest run, if it is stored where this version stores it. */
function creatorOf(db: Database.Database): string {
  try {
    const version = db
      .prepare(`SELECT json_extract(manifest, '$.program.version') FROM runs ORDER BY id DESC LIMIT 1`)
      .pluck()
      .get();
    if (typeof version === 'string') return `version ${version}`;
  } catch {
    // Said without a number.
  }
  return 'a newer version';
}

export const networkFilesystem = (type: number): string | undefined => NETWORK_FILESYSTEMS[type >>> 0];

function refuseNetworkFilesystem(folder: string): void {
  const kind = existsSync(folder) ? networkFilesystem(statfsSync(folder).type) : undefined;
  if (kind)
    throw new StorageError(
      'network_filesystem',
      `${folder} is on ${kind}, where SQLite can lose data; choose a results root on a local disk (-o DIR)`,
    );
}

function corrupt(path: string, detail: string): StorageError {
  const backup = newestBackup(path);
  const way = backup
    ? `The last backup is ${backup}: put it in place with "rm -f ${path}-wal ${path}-shm && cp ${backup} ${path}"`
    : `There is no backup of it; "sqlite3 ${path} .recover" shows what is readable`;
  return new StorageError('corrupt', `${path} is damaged (${detail}); nothing more was written. ${way}`);
}

export function isSqlite(error: unknown): error is Error & { code: string } {
  const code = (error as { code?: unknown })?.code;
  return typeof code === 'string' && code.startsWith('SQLITE');
}

/** Turns SQLite's own errors into ours; anything else is returned as it is. */
export function asStorageError(error: unknown, path: string): Error {
  if (!isSqlite(error)) return error as Error;
  const { code } = error;
  if (code.startsWith('SQLITE_CORRUPT') || code === 'SQLITE_NOTADB') return corrupt(path, code);
  if (FULL.has(code)) {
    const there = existsSync(dirname(path)) ? statfsSync(dirname(path)) : undefined;
    const free = there && ` (${Math.round((there.bavail * there.bsize) / 1e6)} MB free)`;
    return new StorageError(
      'write_failed',
      `cannot write ${path}: the disk is full${free ?? ''}; free some space there. What was recorded is safe, and the run can be resumed`,
      error,
    );
  }
  if (code === 'SQLITE_IOERR_SHORT_READ') return cutShort(path, error);
  if (code.startsWith('SQLITE_BUSY'))
    return new StorageError('busy', `cannot write ${path}: ${code}: another process holds it`, error);
  return new StorageError(
    'write_failed',
    `cannot ${code === 'SQLITE_ERROR' ? 'use' : 'write'} ${path}: ${code}: ${errorText(error)}${readOnlyHint(path)}`,
    error,
  );
}

/** SQLite keeps an index of its log beside a database, also to read it. */
const unreadable = (path: string, cause: unknown): StorageError =>
  new StorageError(
    'read_only',
    `the record in ${dirname(path)} cannot be opened: the file system is read-only\n  copy the folder to a place that can be written, and name the copy with -o`,
    cause,
  );

const READ_ONLY = ' (the file system is read-only)';

/** SQLite says only "unable to open". */
function readOnlyHint(path: string): string {
  try {
    accessSync(dirname(path), constants.W_OK);
    return '';
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'EROFS' ? READ_ONLY : ` (${dirname(path)}: ${code})`;
  }
}

const FULL = new Set<unknown>(['SQLITE_FULL', 'SQLITE_IOERR_SHMSIZE']);
export const isFull = (error: unknown): boolean =>
  FULL.has((error as { code?: unknown })?.code) ||
  FULL.has((error as { cause?: { code?: unknown } })?.cause?.code);

export const cutShort = (path: string, cause?: unknown): StorageError =>
  new StorageError(
    'lost',
    `${path} or ${path}-wal is shorter than what was written: something cut it while it was in use, and what was recorded last may be missing. The run stops here; resume it, and it goes on from what is there`,
    cause,
  );

const statements = new WeakMap<Store, Map<string, Database.Statement>>();

/** Prepared once for each database. */
export function statement(db: Store, sql: string): Database.Statement {
  const known = statements.get(db)?.get(sql);
  if (known) return known;
  const prepared = db.prepare(sql);
  statements.set(db, (statements.get(db) ?? new Map()).set(sql, prepared));
  return prepared;
}

/** f_type values of file systems on which SQLite's locks and shared memory cannot be trusted (linux/magic.h, statfs(2)). */
const NETWORK_FILESYSTEMS: Readonly<Record<number, string>> = {
  26985: 'NFS',
  4283649346: 'CIFS',
  4266872130: 'SMB2',
  20859: 'SMB',
  1702057286: 'FUSE',
  16914839: '9P',
  1397113167: 'AFS',
  12805120: 'Ceph',
  1196443219: 'GPFS',
  198183888: 'Lustre',
  428016422: 'BeeGFS',
  2866260714: 'PanFS',
  18225520: 'GFS2',
  1952539503: 'OCFS2',
  1937076805: 'Coda',
  2020557398: 'a folder shared by VirtualBox',
};

/**
 * Sums numbers of a provider or a file. A sum of integers fails once it passes 2^63, so one absurd row would break the whole query. A sum of
 * reals is as exact as a JavaScript number.
 */
export const safeSum = (expression: string): string => `sum(CAST(${expression} AS REAL))`;

export const TOKENS = ['input', 'cache_read', 'cache_write', 'output', 'reasoning'].map(
  (kind) => `${kind}_tokens`,
);

/** Hides the view of the same name, which sums integers. */
const ATTEMPT_COSTS = `CREATE TEMP VIEW attempt_costs AS
  SELECT attempt_id, count(*) AS calls, ${safeSum('cost_nano')} AS cost_nano,
    sum(state <> 'in_flight' AND cost_nano IS NULL) AS unknown_calls,
    ${TOKENS.map((column) => `${safeSum(column)} AS ${column}`).join(', ')}
  FROM main.model_calls GROUP BY attempt_id`;
