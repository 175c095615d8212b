/**
 * Results of another tool, read without a word of the user's results root: imported once into the cache, under a key of what is there, and opened
 * from there the next time.
 */
import {
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { z } from 'zod';
import { makeFolder } from '../../base/files/makeFolder.ts';
import { VERSION } from '../../base/files/packageFile.ts';
import { sha256 } from '../../base/sha256.ts';
import { type Recognised, recogniseSource, whatIsKnown } from '../../formats/formats.ts';
import { type Caller, type Notice, type Variables, variable } from '../../run/caller.ts';
import { databasePath, openForReading } from '../../run/resultsRoot.ts';
import { UserError } from '../../run/userError.ts';
import { findRun } from '../../store/records/runs.ts';
import { importedName, importInto } from './importResults.ts';
import { databaseBeside } from './ownRecord.ts';

interface OpenedSource {
  /** A results root that holds this run alone. */
  readonly root: string;
  readonly run: string;
}

const readSchema = z.object({
  run: z.string(),
  notices: z.array(z.object({ level: z.enum(['info', 'note', 'warning']), text: z.string() })),
});
const READ = 'read.json';

/** Null where nothing of another tool is there. Tells what it was read as, what is missing, and the other tool's own number. */
export async function openSource(
  source: string,
  { env, tell }: Pick<Caller, 'env' | 'tell'>,
): Promise<OpenedSource | null> {
  const found = await recogniseSource(source);
  if (!found?.format) return null;
  const folder = join(cacheFolder(env), keyOf(source, found));
  const opened = readAgain(folder) ?? (await readNow(source, folder, env));
  // The kind it was read as comes first.
  const first = opened.notices.filter(({ level }) => level === 'info');
  const others = opened.notices.filter(({ level }) => level !== 'info');
  for (const { level, text } of [...first, ...others]) tell({ level, text: `${source}: ${text}` });
  return { root: opened.root, run: opened.run };
}

/** The same for a path that is there: null for a results root of ours, an error for what is nothing known. */
export async function openKnown(
  source: string,
  caller: Pick<Caller, 'env' | 'tell'>,
): Promise<OpenedSource | null> {
  const opened = await openSource(source, caller);
  if (!opened && !(await recogniseSource(source))) throw unknownSource(source);
  return opened;
}

export const unknownSource = (source: string): UserError =>
  new UserError(
    `${resolve(source)} is a ${statSync(source).isDirectory() ? 'folder' : 'file'}, and nothing that is known: no results root, and nothing of another runner`,
    { hint: whatIsKnown(source) },
  );

const cacheFolder = (env: Variables): string =>
  join(
    variable(env, 'XDG_CACHE_HOME') ?? join(variable(env, 'HOME') ?? homedir(), '.cache'),
    'swebatch',
    'read',
  );

/**
 * Of all files there, by path, size and times, and of this version: what changed is read again. Contents may be gigabytes. Predictions, patches and
 * reports lie beside a report, and reports below predictions.
 */
function keyOf(source: string, { reads }: Recognised): string {
  const isFolder = statSync(source).isDirectory();
  const folder = isFolder ? source : dirname(resolve(source));
  const names =
    reads === 'itself'
      ? [basename(resolve(source))]
      : readdirSync(folder, { recursive: isFolder || reads === 'below', encoding: 'utf8' })
          .concat(reads === 'above' ? readdirSync(join(folder, '..')).map((name) => join('..', name)) : [])
          .filter((file) => isFolder || /\.(?:jsonl?|diff|log)$/.test(file))
          .sort();
  // A run of a results root is read from its database.
  const database = databaseBeside(source);
  const besides = database === null ? [] : [database, `${database}-wal`];
  const lines = [...names.map((file) => join(folder, file)), ...besides].map((path) => {
    const found = lstatSync(path, { throwIfNoEntry: false });
    return `${relative(folder, path)} ${found?.size} ${found?.mtimeMs} ${found?.ctimeMs}`;
  });
  return sha256([VERSION, resolve(source), ...lines].join('\n'));
}

interface Opened extends OpenedSource {
  readonly notices: readonly Notice[];
}

function readAgain(folder: string): Opened | null {
  try {
    const { run, notices } = readSchema.parse(JSON.parse(readFileSync(join(folder, READ), 'utf8')));
    const now = new Date();
    utimesSync(join(folder, READ), now, now);
    return { root: folder, run, notices };
  } catch {
    // Never read, or by another version: read now (observed: tests/results/import/openSource.test.ts).
    return null;
  }
}

async function readNow(source: string, folder: string, env: Variables): Promise<Opened> {
  const fresh = freshFolder(folder);
  const notices: Notice[] = [];
  try {
    const name = importedName(source);
    const { run } = await importInto(
      { source: resolve(source), results: fresh.path, name },
      { env, tell: (notice) => void notices.push(notice) },
      { files: false },
    );
    writeFileSync(join(fresh.path, READ), JSON.stringify({ run, notices }));
    return { root: fresh.kept ? moved(fresh.path, folder) : fresh.path, run, notices };
  } catch (error) {
    rmSync(fresh.path, { recursive: true, force: true });
    throw error;
  }
}

/** Where no cache can be written, the folder for temporary files has to do (observed: tests/results/import/openSource.test.ts). */
function freshFolder(folder: string): { readonly path: string; readonly kept: boolean } {
  try {
    makeFolder(dirname(folder));
    removeUnused(dirname(folder));
    return { path: mkdtempSync(`${folder}.`), kept: true };
  } catch {
    return { path: mkdtempSync(join(tmpdir(), 'swebatch-read-')), kept: false };
  }
}

/** Another process may have read the same meanwhile. */
function moved(from: string, to: string): string {
  try {
    renameSync(from, to);
  } catch {
    // Whole, or left by one that was stopped.
    if (readAgain(to) === null) {
      rmSync(to, { recursive: true, force: true });
      renameSync(from, to);
    } else rmSync(from, { recursive: true, force: true });
  }
  return to;
}

const UNUSED_MS = 30 * 86_400_000;

function removeUnused(cache: string): void {
  for (const name of readdirSync(cache)) {
    const path = join(cache, name);
    const used =
      statSync(join(path, READ), { throwIfNoEntry: false }) ?? statSync(path, { throwIfNoEntry: false });
    if (used && Date.now() - used.mtimeMs > UNUSED_MS) rmSync(path, { recursive: true, force: true });
  }
}

/** Null for a run of the results root, and where no path is. */
export async function foreignRun(
  selector: string,
  root: string,
  caller: Pick<Caller, 'env' | 'tell'>,
): Promise<OpenedSource | null> {
  return !existsSync(selector) || isRun(selector, root) ? null : await openKnown(selector, caller);
}

/** A record that cannot be opened names no run: the files beside it can be read all the same. */
function isRun(selector: string, root: string): boolean {
  if (!existsSync(databasePath(root))) return false;
  try {
    using store = openForReading(root);
    return 'id' in findRun(store, selector);
  } catch {
    return false;
  }
}
