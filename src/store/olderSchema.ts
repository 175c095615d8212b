/**
 * A database of an earlier version that is only read stays as it is: a process of that version may work on it, and its disk may be read-only.
 * What it lacks is put beside it for the time of the connection: tables without rows, columns without values.
 */
import Database from 'better-sqlite3';

interface Migration {
  readonly version: number;
  readonly sql: string;
}

const tablesOf = (db: Database.Database): string[] =>
  db
    .prepare("SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    .pluck()
    .all() as string[];
const columnsOf = (db: Database.Database, table: string): string[] =>
  db.prepare("SELECT name FROM pragma_table_info(?, 'main')").pluck().all(table) as string[];

function standIn(table: string, wanted: readonly string[], found: readonly string[]): string {
  if (found.length === 0) return `CREATE TEMP TABLE ${table} (${wanted.join(', ')})`;
  const missing = wanted.filter((column) => !found.includes(column));
  if (missing.length === 0) return '';
  // A name without its schema means the temporary one first.
  return `CREATE TEMP VIEW ${table} AS SELECT *, ${missing.map((column) => `NULL AS ${column}`).join(', ')} FROM main.${table}`;
}

/** Afterwards every query of this version can be asked. Migrations only ever add tables and columns that may be empty. */
export function standInsFor(db: Database.Database, migrations: readonly Migration[]): void {
  const newest = new Database(':memory:');
  try {
    for (const { sql } of migrations) newest.exec(sql);
    for (const table of tablesOf(newest))
      db.exec(standIn(table, columnsOf(newest, table), columnsOf(db, table)));
  } finally {
    newest.close();
  }
}
