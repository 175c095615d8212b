/** Reads a whole dataset and checks every row: either all rows are good, or all problems are listed. */

import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { extname, resolve } from 'node:path';
import { isRecord } from '../base/isRecord.ts';
import { sha256 } from '../base/sha256.ts';
import { fileErrorText, kindOf } from '../base/text/errorText.ts';
import type { Dataset, LoadedRow } from '../dataset/dataset.ts';
import { BUILT, imageNameOf } from '../dataset/imageNames.ts';
import type { Instance } from '../dataset/instance.ts';
import { addedDataset } from '../dataset/read/addedDatasets.ts';
import { DATASET_ALIASES, type LocateOptions, locateDataset, noSplits } from '../dataset/read/locate.ts';
import {
  jsonLines,
  leaveInFile,
  piecesOf,
  type RawRows,
  type RowReading,
  readJson,
  readParquet,
} from '../dataset/read/readRows.ts';
import { type NormalisedRow, normaliseColumns, rowHashOf } from '../dataset/read/row.ts';
import { foreignRow } from '../grading/specs/foreignRows.ts';
import type { FolderTask } from './suite.ts';
import { loadSuite, SWE_BENCH, suiteOf, suiteOfFolder, suiteOfRow } from './suites.ts';

interface DatasetProblem {
  readonly line?: number;
  readonly instanceId?: string;
  /** A sentence that names the place: "data.jsonl line 3 (django__django-1): base_commit is missing". */
  readonly message: string;
}

type LoadResult =
  | { readonly ok: true; readonly dataset: Dataset }
  | { readonly ok: false; readonly problems: readonly DatasetProblem[] };

/** A smaller file is held in memory. */
const HELD_BYTES = 64 * 2 ** 20;

/** A raw row of a suite that is loaded becomes an Instance: the suite brings its columns under the names of SWE-bench. */
export function normaliseRow(given: unknown): NormalisedRow {
  if (!isRecord(given)) return { ok: false, messages: [`the row is ${kindOf(given)}, not an object`] };
  const kind = suiteOfRow(given);
  if (kind === SWE_BENCH) return normaliseColumns(given);
  const { rows } = suiteOf({ kind });
  return normaliseColumns(rows?.columns(given) ?? given, kind, rows?.headIsBase);
}

/**
 * The image of an instance where somebody chose other images for its whole dataset. As it is, where it cannot have what was chosen, which
 * `imageRefusal` tells.
 */
function withChosenImage(instance: Instance, images: string | undefined): Instance {
  if (images === undefined) return instance;
  const image =
    images === BUILT ? suiteOf(instance).builtImage?.(instance) : imageNameOf(images, instance.instance_id);
  return image === undefined ? instance : { ...instance, image };
}

/** The reason why it cannot run with these images, as a clause; undefined when it can. */
const imageRefusal = (instance: Instance, images: string | undefined): string | undefined =>
  images === BUILT && suiteOf(instance).builtImage?.(instance) === undefined
    ? 'its image cannot be built, for no Dockerfile comes with it'
    : undefined;

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

export interface LoadOptions extends LocateOptions {
  /** Rows of a larger file of JSON Lines stay there. */
  readonly heldBytes?: number;
  /** Names of images in the place of those that rows name, as imageNames.ts reads them. */
  readonly images?: string | undefined;
}

/** A file error of the system is a problem of the dataset (observed: tests/dataset/load.test.ts). */
export async function loadDataset(source: string, options: LoadOptions = {}): Promise<LoadResult> {
  try {
    return await loadNamed(source, options);
  } catch (error) {
    if (typeof (error as NodeJS.ErrnoException).syscall !== 'string') throw error;
    return { ok: false, problems: [{ message: `${source} cannot be read: ${fileErrorText(error)}` }] };
  }
}

async function loadNamed(source: string, options: LoadOptions): Promise<LoadResult> {
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
  const { images, heldBytes = HELD_BYTES } = options;
  const folder = await folderDataset(source, images, options.split);
  if (folder) return 'message' in folder ? { ok: false, problems: [folder] } : { ok: true, dataset: folder };
  const location = locateDataset(source, options);
  if (!location.ok) return { ok: false, problems: [{ message: location.message }] };
  const { files, revision, split } = location.found;
  const hash = createHash('sha256');
  const seen = (bytes: Uint8Array) => void hash.update(bytes);
  const reading: RowReading = {
    normalise: normaliseRow,
    withImage: (instance) => withChosenImage(instance, images),
  };
  const rows: LoadedRow[] = [];
  const problems: DatasetProblem[] = [];
  const firstPlace = new Map<string, number>();
  const loaded = new Set<string>();
  const notes: string[] = [];
  const odd = new Map<string, { readonly first: string; rows: number }>();
  for (const path of files) {
    const suffix = extname(path).toLowerCase();
    const unit = ['.parquet', '.csv'].includes(suffix) ? 'row' : 'line';
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
    const lines = !['.parquet', '.csv', '.json'].includes(suffix) && statSync(path).size > heldBytes;
    const inFile = lines && !startsAsArray(path) ? leaveInFile(path, reading) : undefined;
    for (const entry of inFile ? jsonLines(piecesOf(path, seen)) : await heldRows(path, suffix, seen)) {
      if ('message' in entry) {
        report(entry.line, entry.message);
        continue;
      }
      if ('note' in entry) {
        notes.push(`${path}: ${entry.note}`);
        continue;
      }
      const { row, contradiction } = withKey(entry.row, entry.key);
      const suite = isRecord(row) ? suiteOfRow(row) : SWE_BENCH;
      // Half a million rows are not waited for one by one.
      if (!loaded.has(suite)) {
        await loadSuite(suite);
        loaded.add(suite);
      }
      const normalised = normaliseRow(row);
      const id = normalised.ok ? normalised.instance.instance_id : normalised.instanceId;
      if (contradiction) report(entry.line, contradiction, id);
      const foreign = normalised.ok || !isRecord(row) ? undefined : foreignRow(row);
      // Once for the file, and not for each column that each of its rows lacks.
      if (foreign !== undefined) {
        problems.push({ message: `${path} cannot be run or graded: ${foreign}` });
        break;
      }
      if (!normalised.ok) for (const message of normalised.messages) report(entry.line, message, id);
      if (id !== undefined) {
        const first = firstPlace.get(id);
        if (first === undefined) firstPlace.set(id, entry.line);
        else report(entry.line, `the same instance_id as ${unit} ${first}`, id);
      }
      if (!normalised.ok) continue;
      const { instance } = normalised;
      for (const text of normalised.odd ?? []) {
        const { first = instance.instance_id, rows: before = 0 } = odd.get(text) ?? {};
        odd.set(text, { first, rows: before + 1 });
      }
      const ours = reading.withImage(instance);
      // The hash is of the row alone: other images are no other task.
      const kept = inFile?.(entry, ours) ?? {
        instance: ours,
        rowHash: rowHashOf(instance),
        line: entry.line,
      };
      const refused = suiteOf(instance).refusal?.(instance) ?? imageRefusal(instance, images);
      rows.push(refused === undefined ? kept : { ...kept, refused });
    }
  }
  if (problems.length === 0 && rows.length === 0)
    problems.push({ message: `${files.join(', ')}: the dataset holds no instances` });
  if (problems.length > 0) return { ok: false, problems };
  const columns = [...odd].map(
    ([text, { first, rows: n }]) =>
      `${n === 1 ? first : `${n} rows, such as ${first}`}: ${text}, not text; it stays with the row's other columns`,
  );
  const warnings = [...notes, ...columns];
  const found = { source, path: files[0]!, files, split, revision, fileHash: hash.digest('hex'), rows };
  return { ok: true, dataset: { ...found, ...(warnings.length > 0 && { warnings }) } };
}

async function heldRows(path: string, suffix: string, seen: (bytes: Uint8Array) => void): Promise<RawRows> {
  const bytes = await readFile(path);
  seen(bytes);
  if (suffix === '.csv') return (await import('../dataset/read/readCsv.ts')).readCsv(bytes);
  return suffix === '.parquet' ? readParquet(bytes) : readJson(bytes, suffix === '.json' ? 'json' : 'jsonl');
}

/** "12 tasks: task.toml has …, for example in fix-tests": one line for each thing, however many tasks have it. */
function collected(tasks: readonly FolderTask[]): string[] {
  const where = new Map<string, string[]>();
  for (const { id, warnings } of tasks)
    for (const text of warnings) where.set(text, [...(where.get(text) ?? []), id]);
  return [...where].map(([text, ids]) =>
    ids.length === 1 ? `${ids[0]}: ${text}` : `${ids.length} tasks, such as ${ids[0]}: ${text}`,
  );
}

/** A folder of task folders: each task is a row. Undefined where the source is no such folder. */
async function folderDataset(
  source: string,
  images: string | undefined,
  asked: string | undefined,
): Promise<Dataset | DatasetProblem | undefined> {
  if ((DATASET_ALIASES as readonly string[]).includes(source)) return undefined;
  if (!statSync(source, { throwIfNoEntry: false })?.isDirectory()) return undefined;
  const suite = await loadSuite(suiteOfFolder(source) ?? SWE_BENCH);
  if (!suite?.folders) return undefined;
  const path = resolve(source);
  const splits = suite.folders.splits?.(path) ?? [];
  if (asked !== undefined && !splits.includes(asked))
    return {
      message:
        splits.length === 0
          ? noSplits(path, asked)
          : `${path} has no split "${asked}"; it has ${splits.join(', ')}`,
    };
  const split = asked ?? splits[0] ?? null;
  const tasks = suite.folders.read(path, split ?? undefined);
  return {
    source,
    path,
    files: [path],
    split,
    revision: null,
    needsFolders: suite.folders.needed ?? false,
    fileHash: sha256(tasks.map(({ id, hash }) => `${id} ${hash}\n`).join('')),
    rows: tasks.map((task, i) => {
      const refused = task.refused ?? imageRefusal(task.instance, images);
      const instance = withChosenImage(task.instance, images);
      return {
        instance,
        rowHash: task.hash,
        line: i + 1,
        ...(refused !== undefined && { refused }),
      };
    }),
    warnings: collected(tasks),
  };
}
