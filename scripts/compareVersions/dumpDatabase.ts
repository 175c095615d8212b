// A database as text: the statements that made it, its version, and every row.
import { createHash } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { gunzipSync } from 'node:zlib';

/** Bytes as text where they are text, packed or not; else their hash. */
function shown(value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  if (!(value instanceof Uint8Array)) return value;
  const bytes = value[0] === 0x1f && value[1] === 0x8b ? gunzipSync(value) : Buffer.from(value);
  const text = bytes.toString('utf8');
  return Buffer.from(text).equals(bytes) ? text : createHash('sha256').update(bytes).digest('hex');
}

export function dumpDatabase(path: string): string {
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    const made = db.prepare('SELECT type, name, sql FROM sqlite_master ORDER BY type, name').all();
    const tables = made.filter((row) => row.type === 'table').map((row) => String(row.name));
    const rows = tables.flatMap((table) =>
      db
        .prepare(`SELECT * FROM "${table}"`)
        .all()
        .map((row) => `${table} ${JSON.stringify(row, (_, value) => shown(value), 0)}`),
    );
    const version = db.prepare('PRAGMA user_version').get();
    return [...made.map((row) => String(row.sql)), JSON.stringify(version), ...rows].join('\n');
  } finally {
    db.close();
  }
}
