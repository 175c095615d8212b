/** The three ways in which SQL is asked: for rows, for one row, for a change. Statements are prepared once for each database. */
import { guarded, type Store, statement } from './open.ts';

export const all = <Row>(db: Store, sql: string, ...values: unknown[]): Row[] =>
  statement(db, sql).all(...values) as Row[];

export const first = <Row>(db: Store, sql: string, ...values: unknown[]): Row | undefined =>
  statement(db, sql).get(...values) as Row | undefined;

/** Returns how many rows it changed. */
export const change = (db: Store, sql: string, ...values: unknown[]): number =>
  guarded(db, () => statement(db, sql).run(...values).changes);

/** `a = @a, b = @b` for the keys of a row, which are column names of ours (never of a user). */
export const assignments = (row: object): string =>
  Object.keys(row)
    .map((column) => `${column} = @${column}`)
    .join(', ');

/** Inserts one row whose keys are column names of ours too. Returns its id. */
export function insert(db: Store, table: string, row: object): number {
  const columns = Object.keys(row);
  const sql = `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map((c) => `@${c}`).join(', ')})`;
  return guarded(db, () => Number(statement(db, sql).run(row).lastInsertRowid));
}

/** JSON of a column; undefined where it cannot be read. One such row must not hide all others from whoever reads the record. */
export function storedJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** The items of a stored list that are what they should be. */
export function storedList<T>(text: unknown, isItem: (item: unknown) => item is T): T[] {
  const value = typeof text === 'string' ? storedJson(text) : [];
  return Array.isArray(value) ? value.filter(isItem) : [];
}
