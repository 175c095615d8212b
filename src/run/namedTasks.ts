/**
 * Tasks by an address, fetched once into the cache and pinned: a git repository or a folder in it (`git+https://HOST/REPO#PATH@COMMIT`), a
 * dataset of a suite's registry (`SUITE:NAME@VERSION`), and a repository of task folders on the Hugging Face hub (`hf:ORG/NAME@REVISION`). Nothing
 * that was fetched is run here; readers of the folders follow no link that leads out of a task.
 */
import { execFile } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { makeFolder } from '../base/files/makeFolder.ts';
import { OutsideRootError, pathInside } from '../base/files/pathInside.ts';
import { stripChars } from '../base/python/text.ts';
import { sha256 } from '../base/sha256.ts';
import { errorText } from '../base/text/errorText.ts';
import { inert } from '../base/text/inert.ts';
import { hubAccess, pullDataset } from '../dataset/hub.ts';
import { addedFolder } from '../dataset/read/addedDatasets.ts';
import type { HubEnv } from '../dataset/read/locate.ts';
import type { ReadRegistry, RegisteredTask } from '../suites/suite.ts';
import { registryOf } from '../suites/suites.ts';
import { UserError } from './userError.ts';

/** A folder of tasks in the cache, and what it is a copy of. */
interface Fetched {
  readonly path: string;
  /** A commit, or the version of a registry. */
  readonly revision: string;
}

type Say = (text: string) => void;

export async function fetchTasks(source: string, env: HubEnv, say: Say): Promise<Fetched> {
  say(`fetching ${inert(source)}`);
  try {
    const [prefix, rest] = [source.slice(0, source.indexOf(':')), source.slice(source.indexOf(':') + 1)];
    if (prefix === 'hf') return await fromHub(rest, env, say);
    const registry = await registryOf(prefix);
    if (registry) return await fromRegistry(registry, rest, env, say);
    return await fromRepository(source, env);
  } catch (error) {
    if (error instanceof OutsideRootError) throw new UserError(inert(error.message));
    throw error;
  }
}

// Git.

const execute = promisify(execFile);

async function git(given: HubEnv, args: readonly string[]): Promise<string> {
  const env = { ...given, GIT_TERMINAL_PROMPT: '0' };
  const { stdout } = await execute('git', [...args], { env, maxBuffer: 2 ** 24 });
  return stdout.trim();
}

/** Git's message, without the command line. */
const gitText = (error: unknown): string =>
  errorText(error)
    .replace(/^Command failed: .*\n/, '')
    .trim();

/** A commit, a branch or a tag that cannot be taken for an option. */
const REVISION = /^[A-Za-z0-9_][A-Za-z0-9_./-]{0,254}$/;

interface Checkout {
  readonly url: string;
  /** Branch, tag or commit. */
  readonly revision: string | undefined;
  /** Paths below the repository; absent: all of it. */
  readonly paths?: readonly string[];
}

/** Checks the files of one commit out into a folder that is not there yet, without those of other paths where the server can leave them out. */
async function checkOut({ url, revision, paths }: Checkout, into: string, env: HubEnv): Promise<string> {
  if (revision !== undefined && !REVISION.test(revision))
    throw new UserError(`${JSON.stringify(revision)} is not a branch, a tag or a commit`);
  const at = ['-C', into, '-c', 'protocol.ext.allow=never', '-c', 'core.hooksPath=/dev/null'];
  try {
    await git(env, ['init', '-q', into]);
    await git(env, [...at, 'remote', 'add', 'origin', '--', url]);
    const only = paths ? ['--filter=blob:none'] : [];
    await git(env, [...at, 'fetch', '-q', '--depth', '1', ...only, 'origin', revision ?? 'HEAD']);
    const commit = await git(env, [...at, 'rev-parse', 'FETCH_HEAD']);
    if (paths) await git(env, [...at, '--literal-pathspecs', 'checkout', '-q', commit, '--', ...paths]);
    else await git(env, [...at, 'checkout', '-q', '--detach', commit]);
    await refusePointers(at, into, env);
    return commit;
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw new UserError(`${inert(url)} cannot be cloned: ${inert(gitText(error).slice(0, 1000))}`, {
      hint: 'it must be the address of a git repository; a file is downloaded first, then named as a path',
    });
  }
}

/** Files of Git LFS that were not fetched: a task would run without its data. */
async function refusePointers(at: readonly string[], folder: string, env: HubEnv): Promise<void> {
  const mark = 'version https://git-lfs.github.com/spec/v1';
  // Git exits with 1 where there is none.
  const found = await git(env, [...at, 'grep', '-lF', '-e', mark]).catch(() => '');
  const isPointer = (name: string): boolean =>
    statSync(join(folder, name)).size < 1024 && readFileSync(join(folder, name), 'utf8').startsWith(mark);
  const pointer = found.split('\n').find((name) => name !== '' && isPointer(name));
  if (pointer !== undefined)
    throw new UserError(`${inert(pointer)} lies in Git LFS, which did not bring it`, {
      hint: 'install git-lfs and run "git lfs install"; then fetch the tasks again',
    });
}

/** Works in a folder that is gone when it fails, and else becomes `path`. */
async function intoPlace<T>(
  name: string,
  env: HubEnv,
  work: (fresh: string) => Promise<T & { path: string }>,
) {
  const root = addedFolder(env);
  makeFolder(root);
  const fresh = join(root, `.${name}.${process.pid}`);
  rmSync(fresh, { recursive: true, force: true });
  try {
    const done = await work(fresh);
    if (!existsSync(done.path)) renameSync(fresh, done.path);
    return done;
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

/** One folder a commit: a name's earlier tasks stay there when it is added again. */
export const cloned = (url: string, name: string, revision: string | undefined, env: HubEnv) =>
  intoPlace(name, env, async (fresh) => {
    const commit = await checkOut({ url, revision }, fresh, env);
    return { path: join(addedFolder(env), `${name}-${commit.slice(0, 12)}`), commit };
  });

/** `git+URL`, `git+URL#PATH`, `git+URL#PATH@COMMIT`, `git+URL#@COMMIT`. */
const GIT_ADDRESS = /^git\+((?:https?|ssh|git|file):\/\/[^#]+)(?:#([^@]*)(?:@(.+))?)?$/;

async function fromRepository(source: string, env: HubEnv): Promise<Fetched> {
  const [, url, path = '', revision] = GIT_ADDRESS.exec(source) ?? [];
  if (url === undefined)
    throw new UserError(`${JSON.stringify(source)} is not the address of a repository`, {
      hint: 'git+https://HOST/REPO.git#PATH@COMMIT; path and commit may be left out',
    });
  const name = slug(url);
  const { path: root, commit } = await intoPlace(name, env, async (fresh) => {
    const paths = path === '' ? undefined : [path];
    const commit = await checkOut({ url, revision, ...(paths && { paths }) }, fresh, env);
    const content = sha256(`${url}\n${path}\n${commit}`).slice(0, 12);
    return { path: join(addedFolder(env), `${name}-${content}`), commit };
  });
  return { path: taskFolder(root, path), revision: commit };
}

/** A path in what was fetched: inside of it, and a folder. */
function taskFolder(root: string, path: string): string {
  const folder = pathInside(root, stripChars(path, '/', 'right'));
  if (!lstatSync(folder, { throwIfNoEntry: false })?.isDirectory())
    throw new UserError(`${JSON.stringify(path)} is not a folder of what was fetched`);
  return folder;
}

/** The last part of an address as the name of a folder. */
const slug = (address: string): string =>
  basename(address)
    .replace(/\.git$/, '')
    .replace(/[^A-Za-z0-9_.-]/g, '-')
    .replace(/^[.-]+/, '')
    .slice(0, 60) || 'tasks';

// A registry of a suite says where each task of a dataset lies.

async function fromRegistry(read: ReadRegistry, wanted: string, env: HubEnv, say: Say): Promise<Fetched> {
  const found = await read(wanted, env);
  if (!found.ok)
    throw new UserError(inert(found.message), found.hint === undefined ? {} : { hint: found.hint });
  const { name, version, tasks, folder } = found;
  const folders = namedFolders(tasks);
  const content = sha256(JSON.stringify([name, version, [...folders]])).slice(0, 12);
  const { path } = await intoPlace(slug(name), env, async (fresh) => {
    mkdirSync(join(fresh, 'tasks'), { recursive: true });
    const groups = Map.groupBy([...folders], ([, { url, commit }]) => `${url ?? ''} ${commit ?? ''}`);
    for (const group of groups.values()) {
      const [, { url, commit: revision }] = group[0]!;
      if (url !== undefined) say(`${group.length} of ${folders.size} tasks from ${inert(url)}`);
      const from = url === undefined ? folder : { url: repositoryOf(url, folder), revision };
      await collect(group, from, fresh, env);
    }
    return { path: join(addedFolder(env), `${slug(name)}-${content}`) };
  });
  return { path: join(path, 'tasks'), revision: version };
}

/** The name of a task's folder is the id of its instance. */
function namedFolders(tasks: readonly RegisteredTask[]): Map<string, RegisteredTask> {
  const folders = new Map<string, RegisteredTask>();
  for (const task of tasks) {
    const name = basename(task.name);
    const same = folders.get(name);
    if (same && JSON.stringify(same) !== JSON.stringify(task))
      throw new UserError(`the registry has two tasks of the name ${JSON.stringify(name)} in one dataset`);
    folders.set(name, task);
  }
  return folders;
}

/** A registry is somebody else's text: from the network it leads to the network only. */
function repositoryOf(url: string, folder: string | null): string {
  if (/^https:\/\//.test(url) || (folder !== null && /^file:\/\//.test(url))) return url;
  throw new UserError(`the registry names a repository that is not fetched: ${inert(url)}`, {
    hint: 'addresses that begin with https:// are',
  });
}

/** `from`: a repository at a commit, or a folder of this machine; null where a registry of the network names paths of this machine. */
async function collect(
  group: readonly (readonly [string, RegisteredTask])[],
  from: Omit<Checkout, 'paths'> | string | null,
  fresh: string,
  env: HubEnv,
): Promise<void> {
  if (from === null)
    throw new UserError('the registry names tasks of this machine, and is none of its files');
  if (typeof from === 'string') {
    for (const [name, { path }] of group)
      cpSync(resolve(from, path), pathInside(fresh, 'tasks', name), {
        recursive: true,
        verbatimSymlinks: true,
      });
    return;
  }
  const clone = join(fresh, 'clone');
  try {
    await checkOut({ ...from, paths: group.map(([, { path }]) => path) }, clone, env);
    for (const [name, { path }] of group)
      renameSync(taskFolder(clone, path), pathInside(fresh, 'tasks', name));
  } finally {
    rmSync(clone, { recursive: true, force: true });
  }
}

// The hub: its cache holds links to blobs, which no task may have, so the files are copied out of it.

async function fromHub(wanted: string, env: HubEnv, say: Say): Promise<Fetched> {
  const [, repo = '', revision] = /^([^@]+)(?:@(.+))?$/.exec(wanted) ?? [];
  const pulled = await pullDataset(repo, {
    access: hubAccess(env),
    revision,
    whole: true,
    onWait: (message) => say(inert(message)),
  });
  if (!pulled.ok) throw new UserError(inert(pulled.message));
  const name = slug(pulled.repo);
  const { path } = await intoPlace(name, env, async (fresh) => {
    for (const { path } of pulled.files) {
      const copy = pathInside(fresh, path);
      mkdirSync(dirname(copy), { recursive: true });
      copyFileSync(join(pulled.snapshot, path), copy);
    }
    return { path: join(addedFolder(env), `${name}-${pulled.revision.slice(0, 12)}`) };
  });
  return { path, revision: pulled.revision };
}
