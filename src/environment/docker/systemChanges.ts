/**
 * An agent's changes to the programs and libraries that its image brought, by the diff of its container's own layer, which nothing inside
 * can forge; and how the image's own are put back before anything runs.
 */
import { posix } from 'node:path';
import type Docker from 'dockerode';
import pLimit from 'p-limit';
import tar from 'tar-stream';
import { z } from 'zod';
import { TEST_RUNNERS } from '../../base/python/testRunners.ts';
import { archiveOf, wholeOf } from '../container/container.ts';
import type { SystemChanges } from '../environment.ts';
import { daemonAnswer, readFault } from '../places/dockerFault.ts';
import { entryOf } from './imageEntry.ts';

const PROGRAM =
  /^(?:\/usr(?:\/local)?)?\/s?bin\/[^/]+$|^\/(?:root|home\/[^/]+)\/\.(?:local|cargo)\/bin\/[^/]+$/;
const LIBRARY = /^(?:\/usr(?:\/local)?)?\/lib(?:32|64|x32|exec)?\/|^\/opt\/.*\/(?:bin|lib)\//;
/** Folders of a user's installations: /root/.pyenv/versions/3.12/lib/. */
const OF_USER = /^\/(?:root|home\/[^/]+)\/\.[^/]+\//;
const isLibrary = (path: string): boolean =>
  LIBRARY.test(path) || (OF_USER.test(path) && /\/(?:bin|lib)\//.test(path));
/** Files that the loader, shells and Python read unasked. */
const STARTUP_FILES = [
  ...['/etc/ld.so.preload', '/etc/ld.so.conf', '/etc/profile', '/etc/bash.bashrc', '/etc/environment'],
];
const HOME_STARTUP = /^\/(?:root|home\/[^/]+)\/\.(?:bashrc|bash_profile|bash_login|profile)$/;
/** Pytest looks for them in every folder above the tests. */
const ROOT_SETUP = /^\/(?:\.?pytest\.ini|pyproject\.toml|tox\.ini|setup\.cfg|conftest\.py)$/;
const isReadUnasked = (path: string): boolean =>
  STARTUP_FILES.includes(path) ||
  HOME_STARTUP.test(path) ||
  ['/etc/ld.so.conf.d/', '/etc/profile.d/'].some((folder) => path.startsWith(folder)) ||
  path.endsWith('.pth');
/** Variables of the image that name files which a program reads before anything else. */
const NAMES_STARTUP = /^(?:BASH_ENV|LD_PRELOAD|LD_AUDIT|NODE_OPTIONS|PERL5OPT|RUBYOPT|JAVA_TOOL_OPTIONS)=/;
const startupOf = (env: readonly string[]): string[] =>
  env.filter((one) => NAMES_STARTUP.test(one)).flatMap((one) => one.match(/\/[^\s:,=]+/g) ?? []);
/** Python loads the first two at every start. */
const CUSTOM: ReadonlySet<string> = new Set(['sitecustomize', 'usercustomize']);
const moduleOf = (path: string): string => posix.basename(path).split('.')[0]!;
const SITE = /\/(?:site|dist)-packages$/;
/** Where Python looks for packages, in images of Debian and of Python. */
function otherSites(site: string): string[] {
  const [version] = /python3\.\d+/.exec(site) ?? [];
  const local = version === undefined ? [] : ['/usr/local/lib', '/usr/lib'];
  return [
    ...local.flatMap((lib) => ['dist', 'site'].map((kind) => `${lib}/${version}/${kind}-packages`)),
    '/usr/lib/python3/dist-packages',
  ].filter((other) => other !== site);
}
/** A package's word on itself: pytest loads each plugin that is named so. */
const ENTRY_POINTS = /-info\/entry_points\.txt$/;
const PLUGS_IN = /[\n\0]\[pytest11\]/;
/** A new environment of Python has these of its own. */
const OF_VENV = /^(?:python|pip)[\d.]*$/;
/** Python writes caches whenever it runs, and believes their size and time, or, where they say so, nothing but themselves. */
const CACHE = /\/__pycache__(?:\/|$)/;
/** More caches come of packages that were installed. */
const MOST_CACHES = 5000;

/** The engine's diff: 0 was changed, 1 was added, 2 was deleted. */
const diffSchema = z
  .array(z.object({ Path: z.string(), Kind: z.number() }))
  .nullable()
  // The engine says "null" where nothing was changed, which docker-modem hands on as the bytes that came.
  .or(z.instanceof(Uint8Array).transform(() => null));
const [ADDED, DELETED] = [1, 2];

const MOST = 1000;
/** Requests at a time. */
const AT_ONCE = 8;
/** The size of a script; programs of packages are larger, as a rule. */
const SMALL_BYTES = 64 * 1024;
/** Bits of the mode that the engine states, as Go has it. */
const [GO_DIR, GO_LINK] = [0x8000_0000, 0x0800_0000];

const statSchema = z.object({ size: z.number(), mode: z.number() });

/** Undefined where nothing is. */
async function statOf(container: Docker.Container, path: string) {
  try {
    const answer = await daemonAnswer(
      container.infoArchive({ path }) as Promise<{ headers: Record<string, string | undefined> }>,
    );
    const header = answer.headers['x-docker-container-path-stat'] ?? '';
    const { size, mode } = statSchema.parse(JSON.parse(Buffer.from(header, 'base64').toString('utf8')));
    return { size, isFolder: (mode & GO_DIR) !== 0, isLink: (mode & GO_LINK) !== 0 };
  } catch (error) {
    if (readFault(error).status === 404) return undefined;
    throw error;
  }
}

/** Whether the text is in a small file. */
async function textAt(container: Docker.Container, path: string, wanted: RegExp): Promise<boolean> {
  const archive = await archiveAt(container, path);
  return archive !== undefined && wanted.test((await wholeOf(archive)).toString('latin1'));
}

const isBelow = (path: string, folder: string): boolean => folder !== '/' && path.startsWith(`${folder}/`);

async function programFolders(container: Docker.Container) {
  const { Config } = await daemonAnswer(container.inspect());
  const path = (Config.Env ?? []).find((one) => one.startsWith('PATH='))?.slice('PATH='.length);
  const folders = [...new Set((path ?? '/usr/local/bin:/usr/bin:/bin').split(':'))];
  return { folders, workdir: Config.WorkingDir || '/', env: Config.Env ?? [] };
}

/** The engine walks through the whole layer, as it does when it keeps it. */
async function diffOf(container: Docker.Container): Promise<readonly { Path: string; Kind: number }[]> {
  const told = await daemonAnswer(container.changes() as Promise<unknown>, PUT_LIMIT_MS);
  return diffSchema.parse(told) ?? [];
}

/** Paths of the container's own layer, folders included. */
export const writtenPaths = async (container: Docker.Container): Promise<string[]> =>
  (await diffOf(container)).flatMap(({ Path, Kind }) => (Kind === DELETED ? [] : [Path]));

/** `image`: the container's own, whose variables a configuration may have set anew. `cwd`: where commands ran, if that is not the image's. */
export async function systemChangesOf(
  container: Docker.Container,
  image?: Docker.ImageInspectInfo,
  cwd?: string,
): Promise<SystemChanges> {
  const { folders, workdir: ofImage, env } = await programFolders(container);
  const entry = image ? entryOf(image).program : [];
  const startup = startupOf([...env, ...(image?.Config.Env ?? [])]);
  const workdir = cwd ?? ofImage;
  const isProgram = (path: string) => PROGRAM.test(path) || folders.includes(posix.dirname(path));
  const isStartup = (path: string) =>
    isReadUnasked(path) || startup.includes(path) || (workdir !== '/' && ROOT_SETUP.test(path));
  const diff = await diffOf(container);
  const added = new Set(diff.filter(({ Kind }) => Kind === ADDED).map(({ Path }) => Path));
  const parents = new Set(diff.map(({ Path }) => posix.dirname(Path)));
  const isCustom = (path: string) => CUSTOM.has(moduleOf(path));
  /** A module or a package, by its topmost name. */
  const isRunner = (path: string) =>
    added.has(path) &&
    TEST_RUNNERS.has(moduleOf(path)) &&
    /^\w+(?:\.pyc?|\..*\.so)?$/.test(posix.basename(path)) &&
    (posix.dirname(path) === workdir || SITE.test(posix.dirname(path)));
  /** Paths that are read, whoever works there. */
  const always = (path: string) =>
    entry.includes(path) || startup.includes(path) || isCustom(path) || isRunner(path);
  const inWork = (path: string, kind: number) =>
    isBelow(path, workdir) && !(kind === ADDED && folders.includes(posix.dirname(path)));
  const wanted = diff.filter(
    ({ Path, Kind }) =>
      (always(Path) || ((isProgram(Path) || isLibrary(Path) || isStartup(Path)) && !inWork(Path, Kind))) &&
      !(parents.has(Path) && Kind !== DELETED && !(added.has(Path) && (isCustom(Path) || isRunner(Path)))) &&
      !CACHE.test(Path) &&
      // New libraries replace none but those that are looked for after them.
      (Kind !== ADDED ||
        always(Path) ||
        isProgram(Path) ||
        isStartup(Path) ||
        ENTRY_POINTS.test(Path) ||
        shadowedBy(Path, added).length > 0),
  );
  const caches = diff.filter(
    ({ Path, Kind }) =>
      Kind !== DELETED &&
      CACHE.test(Path) &&
      Path.endsWith('.pyc') &&
      isLibrary(Path) &&
      !isBelow(Path, workdir) &&
      !added.has(posix.dirname(posix.dirname(Path))),
  );
  const limit = pLimit(AT_ONCE);
  const isThere = async (path: string) => !added.has(path) && (await statOf(container, path)) !== undefined;
  const kindOf = async ({ Path, Kind }: { Path: string; Kind: number }) => {
    if (Kind === DELETED) return 'changed';
    const stat = await statOf(container, Path);
    if (isRunner(Path)) {
      const folder = posix.dirname(Path);
      if (folder === workdir) return 'before';
      for (const site of otherSites(folder))
        for (const name of [moduleOf(Path), `${moduleOf(Path)}.py`])
          if (await isThere(posix.join(site, name))) return 'before';
      return undefined;
    }
    if (stat && isCustom(Path)) return Kind === ADDED ? 'before' : stat.isFolder ? undefined : 'changed';
    if (!stat || stat.isFolder) return undefined;
    if (Kind !== ADDED) return 'changed';
    if (isStartup(Path)) return 'before';
    if (ENTRY_POINTS.test(Path)) {
      const plugsIn = stat.size > SMALL_BYTES || (await textAt(container, Path, PLUGS_IN));
      return plugsIn ? 'before' : undefined;
    }
    if (!isProgram(Path)) {
      for (const path of shadowedBy(Path, added)) if (await isThere(path)) return 'before';
      return undefined;
    }
    const own = isBelow(Path, workdir);
    if (own && OF_VENV.test(posix.basename(Path)) && added.has(posix.dirname(Path))) return undefined;
    for (const folder of folders)
      if (await isThere(posix.join(folder, posix.basename(Path)))) return 'before';
    // A new file in the work tree is the work.
    if (own) return undefined;
    return stat.size < SMALL_BYTES && !stat.isLink ? 'small' : undefined;
  };
  const kinds = await Promise.all(wanted.slice(0, MOST).map((one) => limit(() => kindOf(one))));
  const of = (kind: string) => wanted.flatMap(({ Path }, index) => (kinds[index] === kind ? [Path] : []));
  return {
    ...{ changed: of('changed'), before: of('before'), small: of('small') },
    more: wanted.length > MOST,
    caches: caches.slice(0, MOST_CACHES).map(({ Path }) => Path),
    top: [...new Set(diff.map(({ Path }) => `/${Path.split('/')[1]}`))],
  };
}

/**
 * Modules that Python finds after this one, under the same name: a compiled one and a package come before NAME.py, all of them before lib-dynload.
 * None where their folder is new.
 */
function shadowedBy(path: string, added: ReadonlySet<string>): string[] {
  const folder = posix.dirname(path);
  const name = posix.basename(path);
  const isPackage = /^__init__\.\w+$/.test(name);
  if (added.has(isPackage ? posix.dirname(folder) : folder)) return [];
  if (isPackage) return [`${folder}.py`];
  if (name.endsWith('.so')) return [posix.join(folder, `${name.split('.')[0]}.py`)];
  const version = /\/python3\.(\d+)$/.exec(folder)?.[1];
  if (version === undefined || !name.endsWith('.py')) return [];
  return ['x86_64', 'aarch64'].map((machine) =>
    posix.join(folder, 'lib-dynload', `${name.slice(0, -3)}.cpython-3${version}-${machine}-linux-gnu.so`),
  );
}

const changesSchema = z.object({
  changed: z.array(z.string()),
  before: z.array(z.string()),
  small: z.array(z.string()),
  more: z.boolean(),
  /** Absent, as `top`, in end states of older versions. */
  caches: z.array(z.string()).default([]),
  top: z.array(z.string()).optional(),
});

/** As a label holds it; undefined where there is nothing to say. */
export function readChanges(label: string | undefined): SystemChanges | undefined {
  return label === undefined ? undefined : changesSchema.parse(JSON.parse(label));
}

/** Nobody can make a file there. */
const NOWHERE = '/proc/self/none';

/**
 * `container` runs nothing of these files now; `source` is one of the image that is trusted. A file that the image lacks becomes a link to
 * one of that name in its other folders, else to nothing: an empty file in the place of pytest.py runs no test and ends with 0.
 */
export async function putBack(
  container: Docker.Container,
  source: Docker.Container,
  paths: readonly string[],
): Promise<void> {
  const { folders } = await programFolders(source);
  for (const path of paths) {
    const at = { path: posix.dirname(path) };
    const own = await archiveAt(source, path);
    if (own) {
      await daemonAnswer(container.putArchive(own, at), PUT_LIMIT_MS);
      continue;
    }
    const name = posix.basename(path);
    const elsewhere = folders.map((folder) => posix.join(folder, name));
    let linkname = NOWHERE;
    for (const other of elsewhere)
      if (linkname === NOWHERE && other !== path && (await statOf(source, other))) linkname = other;
    const pack = tar.pack();
    const stand = wholeOf(pack);
    pack.entry({ name, type: 'symlink', linkname });
    pack.finalize();
    await daemonAnswer(container.putArchive(await stand, at), PUT_LIMIT_MS);
  }
}

/** Files that are loaded in the place of others are loaded no more where they hold nothing. */
export const emptyFiles = async (container: Docker.Container, paths: readonly string[]): Promise<void> =>
  void (await daemonAnswer(
    container.putArchive(
      await archiveOf(paths.map((path) => ({ path, mode: 0o644, content: new Uint8Array(0) }))),
      { path: '/' },
    ),
    PUT_LIMIT_MS,
  ));

/** Puts the path of `source` over the container's own. Resolves to whether `source` has it. */
export async function layOver(
  container: Docker.Container,
  source: Docker.Container,
  path: string,
): Promise<boolean> {
  const own = await archiveAt(source, path);
  if (own) await daemonAnswer(container.putArchive(own, { path: posix.dirname(path) }), PUT_LIMIT_MS);
  return own !== undefined;
}

/** The limit for a large folder on a slow disk. */
const PUT_LIMIT_MS = 600_000;

async function archiveAt(
  container: Docker.Container,
  path: string,
): Promise<NodeJS.ReadableStream | undefined> {
  try {
    return await daemonAnswer(container.getArchive({ path }), PUT_LIMIT_MS);
  } catch (error) {
    if (readFault(error).status === 404) return undefined;
    throw error;
  }
}
