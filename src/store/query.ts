/**
 * SQL as tagged templates: `first(db)`SELECT * FROM runs WHERE id = ${id}``. The value in `${}` is bound and never read as SQL.
 * Statements are prepared once for each database.
 */
import type { Statement } from 'better-sqlite3';
import { type Store, statement } from './open.ts';
import { guarded } from './writing.ts';

/** SQL inside of SQL, with the values of its question marks. The text is ours and never a user's. */
class Sql {
  readonly text: string;
  readonly values: readonly unknown[];
  constructor(text: string, values: readonly unknown[]) {
    this.text = text;
    this.values = values;
  }
}

export const raw = (text: string, ...values: unknown[]): Sql => new Sql(text, values);

/** `a = ?, b = ?` for the keys of a row, which are names of columns. */
export const assignments = (row: object): Sql =>
  raw(
    Object.keys(row)
      .map((column) => `${column} = ?`)
      .join(', '),
    ...Object.values(row),
  );

/** Texts of templates that hold values alone: they are the same each time. */
const texts = new WeakMap<TemplateStringsArray, string>();

function ask<Result>(
  db: Store,
  parts: TemplateStringsArray,
  given: readonly unknown[],
  how: (asked: Statement, values: readonly unknown[]) => Result,
): Result {
  const known = texts.get(parts);
  if (known !== undefined) return how(statement(db, known), given);
  if (!given.some((value) => value instanceof Sql)) {
    texts.set(parts, parts.join('?'));
    return how(statement(db, texts.get(parts)!), given);
  }
  let text = parts[0]!;
  const values: unknown[] = [];
  for (const [i, value] of given.entries()) {
    const sql = value instanceof Sql ? value : raw('?', value);
    text += sql.text + parts[i + 1]!;
    values.push(...sql.values);
  }
  return how(statement(db, text), values);
}

type Template = [parts: TemplateStringsArray, ...values: unknown[]];

export const all =
  (db: Store) =>
  <Row>(...[parts, ...values]: Template): Row[] =>
    ask(db, parts, values, (asked, bound) => asked.all(...bound) as Row[]);

/** One at a time, where there are many or large ones. */
export const each =
  (db: Store) =>
  <Row>(...[parts, ...values]: Template): Iterable<Row> =>
    ask(db, parts, values, (asked, bound) => asked.iterate(...bound) as Iterable<Row>);

export const first =
  (db: Store) =>
  <Row>(...[parts, ...values]: Template): Row | undefined =>
    ask(db, parts, values, (asked, bound) => asked.get(...bound) as Row | undefined);

/** The only column of the first row, which there is. */
export const cell =
  (db: Store) =>
  <Value>(...[parts, ...values]: Template): Value =>
    ask(db, parts, values, (asked, bound) => Object.values(asked.get(...bound) as object)[0] as Value);

/** The only column of every row. */
export const column =
  (db: Store) =>
  <Value>(...[parts, ...values]: Template): Value[] =>
    ask(db, parts, values, (asked, bound) =>
      asked.all(...bound).map((row) => Object.values(row as object)[0] as Value),
    );

/** Returns how many rows it changed. */
export const change =
  (db: Store) =>
  (...[parts, ...values]: Template): number =>
    guarded(db, () => ask(db, parts, values, (asked, bound) => asked.run(...bound).changes));

/** Inserts one row whose keys are names of columns. Returns its id. */
export function insert(db: Store, table: string, row: object): number {
  const sql = insertInto(table, Object.keys(row));
  return guarded(db, () => Number(statement(db, sql).run(Object.values(row)).lastInsertRowid));
}

/** Rows of a table mostly have the same columns as the one before: to write the statement anew takes as long as the insert. */
const inserts = new Map<string, { readonly columns: readonly string[]; readonly sql: string }>();

function insertInto(table: string, columns: readonly string[]): string {
  const last = inserts.get(table);
  if (last?.columns.length === columns.length && columns.every((column, at) => column === last.columns[at]))
    return last.sql;
  const sql = `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`;
  inserts.set(table, { columns, sql });
  return sql;
}

/** The same for a table whose rows have no id of their own. */
export function put(db: Store, table: string, row: object): number {
  insert(db, table, row);
  return 1;
}

/** JSON of a column; undefined where it cannot be read. One such row must not hide all others from a reader of the record. */
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

/** Changes whenever another connection commits: what live updates poll. */
export const dataVersion = (db: Store): number => db.pragma('data_version', { simple: true }) as number;

/** Changes with this connection's own writes too. */
export const version = (db: Store): string => `${dataVersion(db)} ${cell(db)`SELECT total_changes()`}`;
