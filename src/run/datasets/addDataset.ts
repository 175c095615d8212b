/** Adds a dataset under a name: a folder or a file where it lies, a hub id from the cache, a git repository as a clone at one commit. */
import { execFile } from 'node:child_process';
import { existsSync, renameSync, rmSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { makeFolder } from '../../base/files/makeFolder.ts';
import { errorText } from '../../base/text/errorText.ts';
import { imagesProblem } from '../../dataset/imageNames.ts';
import { addedFolder, nameProblem, rememberDataset } from '../../dataset/read/addedDatasets.ts';
import type { HubEnv } from '../../dataset/read/locate.ts';
import { UserError } from '../userError.ts';
import { type CheckedDataset, checkDataset, requireDataset } from './checkDataset.ts';

const run = promisify(execFile);

export interface AddOptions {
  readonly source: string;
  readonly split?: string | undefined;
  /** Branch, tag or commit. */
  readonly revision?: string | undefined;
  readonly dataDir?: string | undefined;
  /** Names of images in the place of those that rows name: a builder of imageNames.ts, or a pattern with {id}. */
  readonly images?: string | undefined;
  readonly env: HubEnv;
}

export interface Added extends CheckedDataset {
  /** What `--subset` takes from now on. */
  readonly name: string;
}

const isRepository = (source: string): boolean =>
  /^(?:https?|ssh|git|file):\/\//.test(source) || /^[\w.-]+@[\w.-]+:/.test(source);

/** The last part of a path or an address, without its ending. */
const nameOf = (source: string): string =>
  basename(isRepository(source) ? source : resolve(source)).replace(
    /\.(?:git|jsonl|ndjson|json|parquet)$/,
    '',
  );

/** A commit, a branch or a tag that cannot be taken for an option. */
const REVISION = /^[A-Za-z0-9_][A-Za-z0-9_./-]{0,254}$/;

async function git(given: HubEnv, args: readonly string[]): Promise<string> {
  const env = { ...given, GIT_TERMINAL_PROMPT: '0' };
  const { stdout } = await run('git', [...args], { env, maxBuffer: 2 ** 24 });
  return stdout.trim();
}

/** One folder a commit: what a name stood for stays there when it is added again. */
async function cloned(source: string, name: string, { revision, env }: AddOptions) {
  if (revision !== undefined && !REVISION.test(revision))
    throw new UserError(`${JSON.stringify(revision)} is not a branch, a tag or a commit`);
  const root = addedFolder(env);
  makeFolder(root);
  const fresh = join(root, `.${name}.${process.pid}`);
  try {
    await git(env, ['init', '-q', fresh]);
    const at = ['-C', fresh, '-c', 'protocol.ext.allow=never'];
    await git(env, [...at, 'fetch', '-q', '--depth', '1', '--', source, revision ?? 'HEAD']);
    const commit = await git(env, [...at, 'rev-parse', 'FETCH_HEAD']);
    const path = join(root, `${name}-${commit.slice(0, 12)}`);
    if (!existsSync(path)) {
      await git(env, [...at, '-c', 'core.hooksPath=/dev/null', 'checkout', '-q', '--detach', 'FETCH_HEAD']);
      renameSync(fresh, path);
    }
    return { path, commit };
  } catch (error) {
    throw new UserError(`${source} cannot be cloned: ${gitText(error).slice(0, 1000)}`, {
      hint: 'it must be the address of a git repository; a file is downloaded first, then named as a path',
    });
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

/** What git said, without the command that it was called with. */
const gitText = (error: unknown): string =>
  errorText(error)
    .replace(/^Command failed: .*\n/, '')
    .trim();

export async function addDataset(options: AddOptions): Promise<Added> {
  const { source, split, dataDir, images, env } = options;
  const name = nameOf(source);
  const problem = nameProblem(name);
  if (problem !== null)
    throw new UserError(`${JSON.stringify(name)} ${problem}, so nothing can be added by it`);
  const wrong = images === undefined ? null : imagesProblem(images);
  if (wrong !== null) throw new UserError(`the choice of images ${JSON.stringify(images)} ${wrong}`);
  const clone = isRepository(source) ? await cloned(source, name, options) : undefined;
  const place = clone?.path ?? (existsSync(source) ? resolve(source) : source);
  const revision = clone ? undefined : options.revision;
  const dataset = await requireDataset(place, { split, revision, dataDir, images, env });
  const found = clone?.commit ?? dataset.revision;
  await rememberDataset(
    name,
    {
      ...{ source, path: place, split: dataset.split, revision: found, fileHash: dataset.fileHash },
      ...(images !== undefined && { images }),
      addedAt: new Date().toISOString(),
    },
    env,
  );
  return { name, ...checkDataset(dataset), revision: found };
}
