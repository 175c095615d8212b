/**
 * Waits until what was written survives a power cut. A commit with `synchronous = NORMAL` is in the log, and not yet on the disk; with FULL,
 * SQLite would sync the log after each commit, on the thread that all slots share. Here the same log is synced beside other work, and one sync
 * serves everybody who waits for it.
 *
 * Closing the log's own descriptor is safe: SQLite locks the database and its -shm file, and never the log
 * (https://www.sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_).
 */
import { closeSync, fdatasync, openSync, realpathSync } from 'node:fs';
import { promisify } from 'node:util';
import { errorText } from '../base/text/errorText.ts';
import { beforeClose, StorageError, type Store } from './open.ts';
import { endTurn } from './writing.ts';

/** The sync that has not begun yet: it will cover every commit until then. */
const next = new WeakMap<Store, Promise<void>>();
const running = new WeakMap<Store, Promise<void>>();

/** Resolves when all that this connection has written is on the disk. */
export function onDisk(db: Store): Promise<void> {
  if (db.memory) return Promise.resolve();
  const waiting = next.get(db);
  if (waiting !== undefined) return waiting;
  const before = running.get(db) ?? Promise.resolve();
  const sync = before
    .catch(() => {})
    // Other writes in this turn of the event loop go with it.
    .then(() => new Promise((turned) => setImmediate(turned)))
    .then(() => {
      next.delete(db);
      running.set(db, sync);
      endTurn(db);
      return syncLog(db);
    });
  next.set(db, sync);
  return sync;
}

const fdatasyncLater = promisify(fdatasync);
const logs = new WeakMap<Store, number>();

/** The log stays the same file as long as the database is open. For a link, it lies beside the database itself. */
function logOf(db: Store): number {
  const known = logs.get(db);
  if (known !== undefined) return known;
  const log = openSync(`${realpathSync(db.name)}-wal`, 'r');
  logs.set(db, log);
  beforeClose(db, closeLog);
  return log;
}

/** A sync that runs or waits still needs it. */
function closeLog(db: Store): void {
  void Promise.allSettled([running.get(db), next.get(db)]).then(() => {
    const log = logs.get(db);
    logs.delete(db);
    if (log !== undefined) closeSync(log);
  });
}

async function syncLog(db: Store): Promise<void> {
  try {
    await fdatasyncLater(logOf(db));
  } catch (error) {
    throw new StorageError('write_failed', `cannot write ${db.name}-wal: ${errorText(error)}`, error);
  }
}
