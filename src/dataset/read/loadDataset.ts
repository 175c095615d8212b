/** Reads a whole dataset and checks every row: either all rows are good, or all problems are listed. */
import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { imageRefusal, withChosenImage } from '../chosenImage.ts';
import type { Instance, InstanceHead } from '../instance.ts';
import { refusalOf } from '../kinds/datasetKinds.ts';
import { addedDataset } from './addedDatasets.ts';
import { jsonLines, type RawEntry, type RawProblem } from './jsonLines.ts';
import { type LocateOptions, locateDataset } from './locate.ts';
import { readJson } from './readJson.ts';
import { readParquet } from './readParquet.ts';
import { normaliseRow } from './row.ts';
import { rowHashOf } from './rowHash.ts';
import { leaveInFile, piecesOf, type WithImage } from './rowInFile.ts';
import { folderDataset } from './taskFolders.ts';

export interface LoadedRow {
  /** Of a large file it is read again each time it is asked for: ask `headOf` for what that knows. */
  readonly instance: Instance;
  readonly head?: InstanceHead;
  /** sha256 of the normalised row; the same whatever file form it came in. */
  readonly rowHash: string;
  /** Line of a JSON file, row number of a Parquet file; from 1, counted on over the files of a sharded split. */
  readonly line: number;
  /** Why it cannot run here; `--skip-unsupported` leaves it out. */
  readonly refused?: string;
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
  /** What was found odd and does not stop a run. */
  readonly warnings?: readonly string[];
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

/** A smaller file is held in memory. */
const HELD_BYTES = 64 * 2 ** 20;

type Found = RawEntry | RawProblem;
type Keep = (entry: RawEntry, instance: Instance, rowHash: string) => LoadedRow;
const hold: Keep = ({ line }, instance, rowHash) => ({ instance, rowHash, line });

interface Rows {
  readonly found: Iterable<Found>;
  readonly keep: Keep;
  readonly withImage: WithImage;
}

async function readRows(
  path: string,
  { heldBytes = HELD_BYTES, images }: LoadOptions,
  seen: (bytes: Uint8Array) => void,
): Promise<Rows> {
  const withImage: WithImage = (instance) => withChosenImage(instance, images);
  const suffix = extname(path).toLowerCase();
  const lines = suffix !== '.parquet' && suffix !== '.json' && statSync(path).size > heldBytes;
  if (lines && !startsAsArray(path))
    return { found: jsonLines(piecesOf(path, seen)), keep: leaveInFile(path, withImage), withImage };
  const bytes = await readFile(path);
  seen(bytes);
  const { entries, problems } =
    suffix === '.parquet' ? await readParquet(bytes) : readJson(bytes, suffix === '.json' ? 'json' : 'jsonl');
  return { found: [...entries, ...problems].sort((a, b) => a.line - b.line), keep: hold, withImage };
}

/** People give JSON and JSON Lines either suffix. */
function startsAsArray(path: string): boolean {
  for (const piece of piecesOf(path, () => {})) {
    const text = new TextDecoder().decode(piece).trimStart();
    if (text !== '') return text.startsWith('[');
  }
  return false;
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
function collector(images: string | undefined) {
  const rows: LoadedRow[] = [];
  const problems: DatasetProblem[] = [];
  const firstPlace = new Map<string, number>();

  function add(path: string, { found, keep, withImage }: Rows): void {
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
        if (first === undefined) firstPlace.set(id, entry.line);
        else report(entry.line, `the same instance_id as ${unit} ${first}`, id);
      }
      if (normalised.ok) {
        // The hash is of the row alone: other images are no other task.
        const row = keep(entry, withImage(normalised.instance), rowHashOf(normalised.instance));
        const { instance } = normalised;
        const refused = refusalOf(instance) ?? imageRefusal(instance, images);
        rows.push(refused === undefined ? row : Object.assign(row, { refused }));
      }
    }
  }
  return { add, rows, problems };
}

export interface LoadOptions extends LocateOptions {
  /** Rows of a larger file of JSON Lines stay there. */
  readonly heldBytes?: number;
  /** Names of images in the place of those that rows name, as imageNames.ts reads them. */
  readonly images?: string | undefined;
}

export async function loadDataset(source: string, options: LoadOptions = {}): Promise<LoadResult> {
  const added = addedDataset(source, options.env);
  if (!added) return loadPlace(source, options);
  const { split = added.split ?? undefined } = options;
  const loaded = await loadPlace(added.path, { ...options, split, images: added.images });
  if (!loaded.ok) return loaded;
  const { dataset } = loaded;
  if (dataset.fileHash !== added.fileHash && dataset.split === added.split)
    return {
      ok: false,
      problems: [
        {
          message: `${source} (${added.path}) has changed since it was added; "datasets add" takes it as it is now`,
        },
      ],
    };
  return { ok: true, dataset: { ...dataset, source, revision: added.revision ?? dataset.revision } };
}

async function loadPlace(source: string, options: LoadOptions): Promise<LoadResult> {
  const folder = folderDataset(source, options.images);
  if (folder) return { ok: true, dataset: folder };
  const location = locateDataset(source, options);
  if (!location.ok) return { ok: false, problems: [{ message: location.message }] };
  const { files, revision, split } = location.found;
  const { add, rows, problems } = collector(options.images);
  const hash = createHash('sha256');
  for (const path of files) add(path, await readRows(path, options, (bytes) => void hash.update(bytes)));
  if (problems.length === 0 && rows.length === 0)
    problems.push({ message: `${files.join(', ')}: the dataset holds no instances` });
  if (problems.length > 0) return { ok: false, problems };
  const dataset = { source, path: files[0]!, files, split, revision, fileHash: hash.digest('hex'), rows };
  return { ok: true, dataset };
}
