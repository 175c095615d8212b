// A database as text: the statements that made it, its version, and every row.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { gunzipSync, inflateSync } from 'node:zlib';

/** Bytes as text where they are text, packed or not; else their hash. */
function shown(value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  if (!(value instanceof Uint8Array)) return value;
  const bytes = value[0] === 0x1f && value[1] === 0x8b ? gunzipSync(value) : Buffer.from(value);
  const text = bytes.toString('utf8');
  return Buffer.from(text).equals(bytes) ? text : createHash('sha256').update(bytes).digest('hex');
}

/** Only where a text is packed: its length. */
const LENGTHS = new Set(['content_bytes', 'data_bytes', 'output_bytes']);

/** A row as it was before texts were packed, and when the content of a message stood in its data too. */
function plainRow(row: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const columns = Object.entries(row).filter(([name]) => !LENGTHS.has(name));
  const plain: Record<string, unknown> = Object.fromEntries(
    columns.map(([name, value]) => {
      const packed = value instanceof Uint8Array && typeof row[`${name}_bytes`] === 'number';
      return [name, shown(packed ? inflateSync(value) : value)];
    }),
  );
  if (typeof plain.data !== 'string' || !plain.data.includes('"content":0')) return plain;
  const message = JSON.parse(plain.data) as Record<string, unknown>;
  return message.content === 0
    ? { ...plain, data: JSON.stringify({ ...message, content: plain.content }) }
    : plain;
}

export function dumpDatabase(path: string): string {
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    const made = db.prepare('SELECT type, name, sql FROM sqlite_master ORDER BY type, name').all();
    // What autoincrement counts follows from the rows.
    const tables = made
      .filter((row) => row.type === 'table')
      .map((row) => String(row.name))
      .filter((name) => name !== 'sqlite_sequence');
    const rows = tables.flatMap((table) =>
      db
        .prepare(`SELECT * FROM "${table}"`)
        .all()
        .map((row) => `${table} ${JSON.stringify(plainRow(row))}`),
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

/** Columns that have another name since, by table, and keys of the configurations that runs and arms keep. */
const RENAMED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  evaluations: { harness: 'dialect' },
};
export const RENAMED_KEYS: readonly (readonly [old: RegExp, now: string])[] = [
  [/(?<=\b)dialect(?=\\*"?: ?\\*"?v(?:5|4\.1)\b)/g, 'harness'],
  [/(?<=\b)attempts(?=\\*"?: ?\d+,?\s*\\*"?retry_seconds\b)/g, 'tries'],
];

/** Puts a record into the schema of `checkout`: what tables and columns both have, those that were renamed, and an engine by its name. */
export function toSchemaOf(checkout: string, path: string): void {
  const schema = join(checkout, 'src', 'store', 'schema.sql');
  if (!existsSync(schema)) return;
  const source = readFileSync(join(checkout, 'src', 'store', 'open.ts'), 'utf8');
  const wanted = Number(/SCHEMA_VERSION = (\d+)/.exec(source)?.[1]);
  const made = `${path}.made`;
  rmSync(made, { force: true });
  const db = new DatabaseSync(made, { enableForeignKeyConstraints: false });
  db.exec(`ATTACH '${path}' AS old`);
  if (db.prepare('PRAGMA old.user_version').get()?.user_version === wanted) {
    db.close();
    rmSync(made);
    return;
  }
  db.exec(readFileSync(schema, 'utf8'));
  const columns = (table: string, of: 'main' | 'old') =>
    db
      .prepare(`SELECT name FROM pragma_table_info('${table}', '${of}')`)
      .all()
      .map((row) => String(row.name));
  for (const { name } of db
    .prepare(`SELECT name FROM main.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'`)
    .all()) {
    const [has, had] = [columns(String(name), 'main'), columns(String(name), 'old')];
    const both = has.filter((column) => had.includes(column));
    const engine = had.includes('engine_id') && has.includes('engine');
    const renamed = Object.entries(RENAMED[String(name)] ?? {}).filter(([, old]) => had.includes(old));
    const into = [...both, ...renamed.map(([now]) => now), ...(engine ? ['engine'] : [])].join(', ');
    const from = [
      ...[...both, ...renamed.map(([, old]) => old)],
      ...(engine ? ['(SELECT name FROM old.engines WHERE id = engine_id)'] : []),
    ].join(', ');
    if (both.length > 0) db.exec(`INSERT INTO main."${name}" (${into}) SELECT ${from} FROM old."${name}"`);
  }
  for (const table of ['runs', 'arms'])
    for (const { id, config } of db.prepare(`SELECT id, config FROM main.${table}`).all()) {
      const now = RENAMED_KEYS.reduce((text, [from, to]) => text.replace(from, to), String(config));
      db.prepare(`UPDATE main.${table} SET config = ? WHERE id = ?`).run(now, id ?? null);
    }
  db.exec(`PRAGMA main.user_version = ${wanted}`);
  db.exec('DETACH old');
  db.close();
  for (const end of ['', '-wal', '-shm']) rmSync(`${path}${end}`, { force: true });
  renameSync(made, path);
}
