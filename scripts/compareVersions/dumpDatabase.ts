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

const STARTS = `
  SELECT r.name AS run, t.position, i.instance_id, m.name AS arm, t.epoch, a.number, a.exit_reason
  FROM attempts a JOIN trials t ON t.id = a.trial_id JOIN runs r ON r.id = t.run_id
    JOIN instances i ON i.id = t.instance_pk JOIN arms m ON m.id = t.arm_id
  WHERE r.name = ? ORDER BY a.id`;
const STORIES = `
  SELECT run_id, json_extract(data, '$.trial') AS trial, group_concat(type, ' ' ORDER BY seq) AS events
  FROM events WHERE trial IS NOT NULL GROUP BY run_id, trial ORDER BY run_id, json_extract(trial, '$.trialId')`;

/** In which order the attempts of a run began, and what happened to each trial of all runs, one event after the other. */
export function orderOf(run: string, path: string): string {
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    const rows = [...db.prepare(STARTS).all(run), ...db.prepare(STORIES).all()];
    return rows.map((row) => JSON.stringify(row)).join('\n');
  } finally {
    db.close();
  }
}
