/** Reads a whole dataset and checks every row: either all rows are good, or all problems are listed. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import type { Instance } from '../instance.ts';
import { type LocateOptions, locateDataset } from './locate.ts';
import { type RawRows, readJson } from './readJson.ts';
import { readParquet } from './readParquet.ts';
import { normaliseRow, rowHashOf } from './row.ts';

export interface LoadedRow {
  readonly instance: Instance;
  /** sha256 of the normalised row; the same whatever file form it came in. */
  readonly rowHash: string;
  /** Line of a JSON file, row number of a Parquet file; from 1, counted on over the files of a sharded split. */
  readonly line: number;
}

export interface Dataset {
  /** As the user named it. */
  readonly source: string;
  /** The file, or the first of a sharded split. */
  readonly path: string;
  readonly files: readonly string[];
  readonly split: string | null;
  readonly revision: string | null;
  /** sha256 of the bytes of all files, in order. */
  readonly fileHash: string;
  readonly rows: readonly LoadedRow[];
}

interface DatasetProblem {
  readonly line?: number;
  readonly instanceId?: string;
  /** A sentence that names the place: "data.jsonl line 3 (django__django-1): base_commit is missing". */
  readonly message: string;
}

export type LoadResult =
  | { readonly ok: true; readonly dataset: Dataset }
  | { readonly ok: false; readonly problems: readonly DatasetProblem[] };

async function readRows(path: string, bytes: Uint8Array): Promise<RawRows> {
  const suffix = extname(path).toLowerCase();
  if (suffix === '.parquet') return readParquet(bytes);
  return readJson(bytes, suffix === '.json' ? 'json' : 'jsonl');
}

/** In an object keyed by id, rows may leave the id out but not contradict it. */
function withKey(row: unknown, key: string | undefined): { row: unknown; contradiction?: string } {
  if (key === undefined || typeof row !== 'object' || row === null || Array.isArray(row)) return { row };
  const inner = (row as Record<string, unknown>).instance_id;
  if (inner === undefined) return { row: { instance_id: key, ...row } };
  if (inner === key || typeof inner !== 'string') return { row };
  return { row, contradiction: `has the key "${key}", but its instance_id is "${inner}"` };
}

/** Collects rows and problems over all files of one dataset. */
function collector() {
  const rows: LoadedRow[] = [];
  const problems: DatasetProblem[] = [];
  const firstPlace = new Map<string, string>();

  function add(path: string, raw: RawRows): void {
    const unit = extname(path).toLowerCase() === '.parquet' ? 'row' : 'line';
    const report = (line: number, message: string, instanceId?: string) => {
      const place = line > 0 ? `${path} ${unit} ${line}` : path;
      const who =
        instanceId === undefined ? '' : ` (${JSON.stringify(instanceId).slice(1, -1).slice(0, 140)})`;
      problems.push({
        ...(line > 0 && { line }),
        ...(instanceId !== undefined && { instanceId }),
        message: `${place}${who}: ${message}`,
      });
    };
    const found = [...raw.entries, ...raw.problems].sort((a, b) => a.line - b.line);
    for (const entry of found) {
      if ('message' in entry) {
        report(entry.line, entry.message);
        continue;
      }
      const { row, contradiction } = withKey(entry.row, entry.key);
      const normalised = normaliseRow(row);
      const id = normalised.ok ? normalised.instance.instance_id : normalised.instanceId;
      if (contradiction) report(entry.line, contradiction, id);
      if (!normalised.ok) for (const message of normalised.messages) report(entry.line, message, id);
      if (id !== undefined) {
        const first = firstPlace.get(id);
        if (first === undefined) firstPlace.set(id, `${unit} ${entry.line}`);
        else report(entry.line, `the same instance_id as ${first}`, id);
      }
      if (normalised.ok)
        rows.push({
          instance: normalised.instance,
          rowHash: rowHashOf(normalised.instance),
          line: entry.line,
        });
    }
  }
  return { add, rows, problems };
}

export async function loadDataset(source: string, options: LocateOptions = {}): Promise<LoadResult> {
  const location = locateDataset(source, options);
  if (!location.ok) return { ok: false, problems: [{ message: location.message }] };
  const { files, revision, split } = location.found;
  const { add, rows, problems } = collector();
  const hash = createHash('sha256');
  for (const path of files) {
    const bytes = await readFile(path);
    hash.update(bytes);
    add(path, await readRows(path, bytes));
  }
  if (problems.length === 0 && rows.length === 0)
    problems.push({ message: `${files.join(', ')}: the dataset holds no instances` });
  if (problems.length > 0) return { ok: false, problems };
  const dataset = { source, path: files[0]!, files, split, revision, fileHash: hash.digest('hex'), rows };
  return { ok: true, dataset };
}
