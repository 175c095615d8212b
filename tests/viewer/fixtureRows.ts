/** Rows of a made-up record: what every part of the viewer's fixtures puts into it. */
import { createHash } from 'node:crypto';
import { type Store, statement } from '../../src/store/open.ts';

export const iso = (day: number, ms: number): string =>
  new Date(Date.UTC(2026, 9, 1 + day, 22) + ms).toISOString();

export const sha = (text: string): string => createHash('sha256').update(text).digest('hex');

export const put = (store: Store, table: string, row: Record<string, unknown>): number => {
  const names = Object.keys(row);
  const sql = `INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map((name) => `@${name}`).join(', ')})`;
  return Number(statement(store, sql).run(row).lastInsertRowid);
};
