/**
 * How the record is written: what belongs together is one transaction, an error names the database, and a full disk is relieved once.
 *
 * The steps of an attempt leave a dozen small writes (`inTurn`). The writes of all slots that come in one turn of the event loop are one
 * transaction, which ends with that turn: a process that is killed loses what it learned in its last milliseconds, as if it had been killed before
 * them. Code that sends something because of a row waits for its transaction (`written`) or for the disk (onDisk.ts).
 */
import { existsSync, statSync } from 'node:fs';
import {
  asStorageError,
  beforeClose,
  cutShort,
  isFull,
  StorageError,
  type Store,
  statement,
} from './open.ts';

const reliefs = new WeakMap<Store, () => boolean>();

/** `relieve` is called when the disk is full; if it returns true, the write is tried again. */
export function onFullDisk(db: Store, relieve: () => boolean): void {
  reliefs.set(db, relieve);
}

const relieved = (db: Store, error: unknown): boolean => isFull(error) && reliefs.get(db)?.() === true;

/** Runs a write; its errors name the database. */
export function guarded<T>(db: Store, work: () => T): T {
  const inside = turns.get(db)?.working === true;
  if (!inside) endTurn(db);
  // Inside a transaction only its outermost caller may repeat the whole.
  const whole = !inside && !db.inTransaction;
  try {
    return work();
  } catch (error) {
    if (!whole || !relieved(db, error)) throw asStorageError(error, db.name);
  }
  try {
    return work();
  } catch (error) {
    throw asStorageError(error, db.name);
  }
}

/** Does all of the work or nothing, and no other writer in between. */
export const together = <T>(db: Store, work: () => T): T =>
  guarded(db, () => db.transaction(work).immediate());

/** A write that survives a power cut, together with all writes before it. */
export function durably<T>(db: Store, work: () => T): T {
  endTurn(db);
  // The pragma cannot change inside a larger transaction (an import), whose own commit counts.
  if (db.inTransaction) return guarded(db, work);
  db.pragma('synchronous = FULL');
  try {
    return guarded(db, work);
  } finally {
    db.pragma('synchronous = NORMAL');
  }
}

/** Pages of deleted rows go back to the disk. Another process that reads may hold up the last step, which it then does itself later. */
export function giveBackSpace(db: Store): void {
  guarded(db, () => {
    db.pragma('incremental_vacuum');
    db.pragma('wal_checkpoint(TRUNCATE)');
  });
}

interface Turn {
  /** The writes of the turn, with the values that they returned: an id that others know by now. */
  readonly done: { readonly work: () => number; readonly result: number }[];
  readonly end: PromiseWithResolvers<void>;
  working: boolean;
}

const turns = new WeakMap<Store, Turn>();
/** A turn could not be written: the record has a hole from there on, so nothing more is written behind it. */
const torn = new WeakMap<Store, Error>();

/** A write that becomes part of the transaction of this turn. Returns what it does: an id, or how many rows it changed. */
export function inTurn(db: Store, work: () => number): number {
  const open = turns.get(db);
  // In a larger transaction, or in another write of the turn.
  if (open?.working || (!open && db.inTransaction)) return guarded(db, work);
  const turn = open ?? beginTurn(db);
  turn.working = true;
  try {
    const result = tried(db, turn, work);
    turn.done.push({ work, result });
    return result;
  } finally {
    turn.working = false;
  }
}

/** A write that breaks a rule of the schema is taken back alone; a full disk takes the whole turn back. */
function tried(db: Store, turn: Turn, work: () => number): number {
  try {
    return work();
  } catch (error) {
    if (!relieved(db, error)) {
      if (!db.inTransaction) tear(db, turn, error);
      throw error;
    }
    try {
      if (!db.inTransaction) again(db, turn);
      return work();
    } catch (second) {
      if (!db.inTransaction) tear(db, turn, second);
      throw second;
    }
  }
}

function beginTurn(db: Store): Turn {
  failIfTorn(db);
  guarded(db, () => statement(db, 'BEGIN IMMEDIATE').run());
  const turn: Turn = { done: [], end: Promise.withResolvers(), working: false };
  // Most turns have nobody who waits for them.
  turn.end.promise.catch(() => undefined);
  turns.set(db, turn);
  beforeClose(db, endTurn);
  setImmediate(() => {
    try {
      if (turns.get(db) === turn) endTurn(db);
    } catch {
      // The waiters hear of it, and the next write tells it.
    }
  });
  return turn;
}

/** Commits what this turn has written so far. */
export function endTurn(db: Store): void {
  failIfTorn(db);
  const turn = turns.get(db);
  if (!turn) return;
  const commit = () => statement(db, 'COMMIT').run();
  try {
    try {
      commit();
    } catch (error) {
      if (!relieved(db, error)) throw error;
      if (!db.inTransaction) again(db, turn);
      commit();
    }
  } catch (error) {
    tear(db, turn, error);
    failIfTorn(db);
  }
  turns.delete(db);
  turn.end.resolve();
}

/** Resolves when all that was written so far survives the end of this process. */
export const written = (db: Store): Promise<void> => turns.get(db)?.end.promise ?? Promise.resolve();

/** SQLite took the turn back, so it is written once more. Others hold its ids by now: they must come out the same. */
function again(db: Store, turn: Turn): void {
  statement(db, 'BEGIN IMMEDIATE').run();
  const { working } = turn;
  turn.working = true;
  try {
    for (const { work, result } of turn.done)
      if (work() !== result) throw new Error(`${db.name}: another process has written in between`);
  } catch (error) {
    if (db.inTransaction) statement(db, 'ROLLBACK').run();
    throw error;
  } finally {
    turn.working = working;
  }
}

function tear(db: Store, turn: Turn, error: unknown): void {
  if (db.inTransaction) statement(db, 'ROLLBACK').run();
  const told = asStorageError(error, db.name);
  torn.set(db, told);
  turns.delete(db);
  turn.end.reject(told);
}

function failIfTorn(db: Store): void {
  const error = torn.get(db);
  if (error) throw error;
}

const files = new WeakMap<Store, number>();

/** Throws when the database files were removed or replaced, because everything written from then on would be lost. */
export function assertInPlace(db: Store): void {
  if (db.name === ':memory:') return;
  // SQLite answers for its log only between transactions.
  endTurn(db);
  const there = statSync(db.name, { throwIfNoEntry: false })?.ino;
  const opened = files.get(db) ?? there;
  if (opened !== undefined) files.set(db, opened);
  if (there === undefined || there !== opened)
    throw new StorageError(
      'lost',
      `${db.name} was removed or replaced while it was in use; put it back and resume`,
    );
  if (!existsSync(`${db.name}-wal`))
    throw new StorageError(
      'lost',
      `${db.name}-wal was deleted while it was in use: it holds what is not yet in ${db.name}. The run stops here; resume it`,
    );
  // SQLite has its last pages in memory, and would go on writing behind the cut.
  if (statSync(`${db.name}-wal`).size < loggedBytes(db)) throw cutShort(db.name);
}

/** How long the log is by SQLite's own index of it (https://www.sqlite.org/walformat.html, section 1). The pragma moves nothing. */
function loggedBytes(db: Store): number {
  const [{ log }] = db.pragma('wal_checkpoint(NOOP)') as [{ log: number }];
  const pageBytes = db.pragma('page_size', { simple: true }) as number;
  return log <= 0 ? 0 : 32 + log * (24 + pageBytes);
}
