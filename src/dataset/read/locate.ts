/**
 * Finds the files of a dataset on this machine: a file, a directory, or a known name in `--data-dir` and in the Hugging Face cache. Keeps
 * every place it checked, so that "not found" can list them.
 */

import { readdirSync, readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, extname, join } from 'node:path';
import { orPackaged, PACKAGE_ROOT } from '../../base/files/packageFile.ts';
import { ownEntry } from '../../base/isRecord.ts';
import { closest } from '../../base/text/closest.ts';
/** Environment variables, of which those of the hub's own tools are read; an empty one counts as unset. */
export type HubEnv = Readonly<Record<string, string | undefined>>;

/** `revision`: the commit of the dataset repository, where the place tells it. */
type Location =
  | {
      readonly ok: true;
      readonly found: {
        readonly files: readonly string[];
        readonly revision: string | null;
        readonly split: string | null;
      };
    }
  | { readonly ok: false; readonly message: string };

/** Datasets that have a short name. `repos`: on the Hugging Face hub, current name first. */
export const KNOWN_DATASETS = {
  full: {
    repos: ['SWE-bench/SWE-bench', 'princeton-nlp/SWE-bench'],
    says: 'SWE-bench: 2294 test instances from 12 Python repositories, 225 dev',
  },
  verified: {
    repos: ['SWE-bench/SWE-bench_Verified', 'princeton-nlp/SWE-bench_Verified'],
    says: '500 test instances checked by people, with a difficulty',
  },
  lite: {
    repos: ['SWE-bench/SWE-bench_Lite', 'princeton-nlp/SWE-bench_Lite'],
    says: '300 test instances, 23 dev',
  },
  multilingual: {
    repos: ['SWE-bench/SWE-bench_Multilingual', 'swe-bench/SWE-Bench_Multilingual'],
    says: '300 test instances from 41 repositories in 9 languages',
  },
  multimodal: {
    repos: ['SWE-bench/SWE-bench_Multimodal', 'princeton-nlp/SWE-bench_Multimodal'],
    says: 'JavaScript instances with images, 102 dev',
  },
  rebench: {
    repos: ['nebius/SWE-rebench'],
    says: 'instances collected automatically, with their own images',
  },
} as const satisfies Record<string, { repos: readonly [string, ...string[]]; says: string }>;

type DatasetAlias = keyof typeof KNOWN_DATASETS;
export const DATASET_ALIASES = Object.keys(KNOWN_DATASETS) as DatasetAlias[];

const HUB_ID = /^[A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*$/;

/** Repositories a source may mean: those of an alias, or a hub id itself with its siblings under other owners. */
export function hubReposOf(source: string): readonly string[] {
  if (Object.hasOwn(KNOWN_DATASETS, source)) return KNOWN_DATASETS[source as DatasetAlias].repos;
  if (!HUB_ID.test(source)) return [];
  const same = (repo: string) => repo.toLowerCase() === source.toLowerCase();
  const known = Object.values(KNOWN_DATASETS).find(({ repos }) => repos.some(same));
  return [source, ...(known?.repos.filter((repo) => repo !== source) ?? [])];
}

const SUFFIXES = ['.parquet', '.jsonl', '.ndjson', '.json', '.csv'] as const;
const SHARD = /^(.+?)-(\d{5})-of-(\d{5})$/;

/** The cache as huggingface_hub computes it. Older tools set the second name. */
export const hubCacheDir = (env: HubEnv): string =>
  env.HF_HUB_CACHE || env.HUGGINGFACE_HUB_CACHE || join(hubHome(env), 'hub');

/** The folder that has the token of a login too, wherever the cache is. */
export const hubHome = (env: HubEnv): string =>
  env.HF_HOME || join(env.XDG_CACHE_HOME || join(env.HOME || homedir(), '.cache'), 'huggingface');

export const cacheFolderOf = (repo: string) => `datasets--${repo.replaceAll('/', '--')}`;

const statOf = (path: string) => statSync(path, { throwIfNoEntry: false });
const namesIn = (dir: string): string[] =>
  statOf(dir)?.isDirectory()
    ? readdirSync(dir, { withFileTypes: true })
        .flatMap((entry) => (entry.isDirectory() ? [] : entry.name))
        .sort()
    : [];

/** `missing`: shards that are not there, by the count in the names. */
type Splits = Map<string, { readonly files: string[]; readonly missing: number }>;

/** Splits that a folder holds: `test.parquet`, `test-00000-of-00002.parquet`, the same with a prefix (`SWE-bench_Lite_test.parquet`). */
function splitsIn(dir: string, prefix = ''): Splits {
  const splits = new Map() as Splits;
  for (const suffix of SUFFIXES) {
    // A table beside rows is about them.
    if (suffix === '.csv' && splits.size > 0) break;
    const stems = namesIn(dir)
      .filter((name) => extname(name) === suffix && name.toLowerCase().startsWith(prefix.toLowerCase()))
      .map((name) => name.slice(prefix.length, -suffix.length));
    const bySplit = Map.groupBy(stems, (stem) => SHARD.exec(stem)?.[1] ?? stem);
    for (const [split, parts] of bySplit) {
      if (splits.has(split) || !/^[A-Za-z][\w-]*$/.test(split)) continue;
      const promised = Number(SHARD.exec(parts[0]!)?.[3] ?? parts.length);
      splits.set(split, {
        files: parts.map((stem) => join(dir, `${prefix}${stem}${suffix}`)),
        missing: promised - parts.length,
      });
    }
  }
  return splits;
}

/** Chooses the wanted split; the default is `test`, else the only one. */
function choose(splits: Splits, wanted: string | undefined, where: string): Location | undefined {
  if (splits.size === 0) return undefined;
  const names = [...splits.keys()].sort();
  const split = wanted ?? (splits.has('test') ? 'test' : names.length === 1 ? names[0]! : undefined);
  if (split === undefined)
    return { ok: false, message: `${where} holds the splits ${names.join(', ')}; choose one with --split` };
  const found = splits.get(split);
  if (!found) return { ok: false, message: `${where} has no split "${split}"; it holds ${names.join(', ')}` };
  if (found.missing > 0)
    return { ok: false, message: `${where}: ${found.missing} of the files of split "${split}" are missing` };
  return { ok: true, found: { files: found.files, revision: null, split } };
}

/** A directory with `<split>.parquet` (or JSON), or in the hub's layout `data/<split>-*.parquet`. */
function inDirectory(dir: string, split: string | undefined): Location | undefined {
  return choose(new Map([...splitsIn(join(dir, 'data')), ...splitsIn(dir)]), split, dir);
}

/** `<cache>/datasets--ORG--NAME/snapshots/<revision>/…`: the revision asked for, else the one `refs/main` names, else the newest. */
function inCache(
  cache: string,
  repo: string,
  split: string | undefined,
  revision?: string,
): Location | undefined {
  const root = join(cache, cacheFolderOf(repo));
  const snapshots = join(root, 'snapshots');
  if (!statOf(snapshots)?.isDirectory()) return undefined;
  const ref = join(root, 'refs', revision ?? 'main');
  const named = statOf(ref)?.isFile() ? readFileSync(ref, 'utf8').trim() : revision;
  const newest = () =>
    readdirSync(snapshots)
      .toSorted((a, b) => statSync(join(snapshots, b)).mtimeMs - statSync(join(snapshots, a)).mtimeMs)
      .at(0);
  const commit = named ?? newest();
  if (commit === undefined || !statOf(join(snapshots, commit))) return undefined;
  const location = inDirectory(join(snapshots, commit), split);
  return location?.ok ? { ok: true, found: { ...location.found, revision: commit } } : location;
}

/** The places of a named dataset inside `--data-dir`, in order. */
function inDataDir(
  dataDir: string,
  source: string,
  repo: string,
  split: string | undefined,
  revision?: string,
): Location | undefined {
  const name = basename(repo);
  const byPrefix = splitsIn(dataDir, `${name}_`);
  return (
    inDirectory(join(dataDir, repo), split) ??
    inDirectory(join(dataDir, name), split) ??
    inDirectory(join(dataDir, source), split) ??
    inCache(dataDir, repo, split, revision) ??
    // A file without its own folder: SWE-bench_Lite_test.parquet. "SWE-bench_" also begins SWE-bench_Lite_test, whose "split" is Lite_test.
    choose(
      new Map([...byPrefix].filter(([key]) => /^[a-z]+$/.test(key))),
      split,
      `${join(dataDir, name)}_*`,
    ) ??
    choose(oneFile(dataDir, source), split, dataDir)
  );
}

function oneFile(dataDir: string, source: string): Splits {
  const file = SUFFIXES.map((suffix) => join(dataDir, source + suffix)).find((path) =>
    statOf(path)?.isFile(),
  );
  return new Map(file ? [['test', { files: [file], missing: 0 }]] : []);
}

export interface LocateOptions {
  readonly split?: string | undefined;
  readonly dataDir?: string | undefined;
  readonly revision?: string | undefined;
  readonly env?: HubEnv | undefined;
}

export function locateDataset(named: string, options: LocateOptions = {}): Location {
  const source = ownEntry(BUNDLED, named) ?? (statOf(named) ? named : bundledFile(named));
  const { split, dataDir, revision, env = {} } = options;
  const repos = hubReposOf(source);
  const isAlias = (DATASET_ALIASES as readonly string[]).includes(source);
  const stat = isAlias ? undefined : statOf(source);
  if (stat?.isFile()) return inFile(source, split);
  if (stat?.isDirectory()) {
    const commit = basename(dirname(source)) === 'snapshots' ? basename(source) : null;
    const location = inDirectory(source, split);
    if (location?.ok) return { ok: true, found: { ...location.found, revision: commit } };
    const expected = `<split>.parquet, <split>.jsonl, <split>.json or data/<split>-*.parquet`;
    return location ?? { ok: false, message: `${source} holds no dataset: expected ${expected}` };
  }
  const cache = hubCacheDir(env);
  let nearMiss: Location | undefined;
  for (const repo of repos) {
    for (const location of [
      dataDir === undefined ? undefined : inDataDir(dataDir, source, repo, split, revision),
      inCache(cache, repo, split, revision),
    ]) {
      if (location?.ok) return location;
      nearMiss ??= location;
    }
  }
  return nearMiss ?? { ok: false, message: notFound(source, repos, options, cache) };
}

/** Datasets that come with the program. */
const BUNDLED: Readonly<Record<string, string | undefined>> = {
  demo: join(PACKAGE_ROOT, 'datasets', 'demo', 'demo.jsonl'),
};

/** A path such as `datasets/demo/demo.jsonl` means the same in an empty folder. */
const bundledFile = (named: string): string => (named.startsWith('datasets/') ? orPackaged(named) : named);

function inFile(path: string, split: string | undefined): Location {
  if ((SUFFIXES as readonly string[]).includes(extname(path).toLowerCase()))
    return split === undefined
      ? { ok: true, found: { files: [path], revision: null, split: null } }
      : { ok: false, message: noSplits(path, split) };
  return { ok: false, message: `${path} is not a dataset file: expected one of ${SUFFIXES.join(' ')}` };
}

/** A name that nothing has must not choose everything. */
export const noSplits = (path: string, split: string): string =>
  `${path} has no split "${split}": it has none at all; leave --split out`;

function notFound(source: string, repos: readonly string[], options: LocateOptions, cache: string): string {
  if (repos.length === 0) {
    if (/^https?:/.test(source))
      return `${source} is an address: download the file and name its path; a git repository is added first (datasets add)`;
    const names = [...DATASET_ALIASES, ...Object.keys(BUNDLED)];
    const close = closest(source.replace(/\.[a-z]+$/, ''), names);
    return `there is no file or directory ${source}, and it is not one of the names ${names.join(', ')}${close ? `; did you mean ${close}?` : ''}`;
  }
  const name = basename(repos[0]!);
  const split = options.split ?? '<split>';
  const looked = [
    ...(options.dataDir === undefined
      ? []
      : [
          join(options.dataDir, `${name}_${split}.parquet`),
          join(options.dataDir, name, 'data', `${split}-*.parquet`),
        ]),
    ...repos.map((repo) => join(cache, cacheFolderOf(repo))),
  ];
  const revision = options.revision === undefined ? '' : ` at revision ${options.revision}`;
  return (
    `no local copy of the dataset "${source}"${revision} was found; looked for:\n${looked.map((path) => `  ${path}`).join('\n')}\n` +
    `Fetch it with \`swebatch datasets pull ${source}\`, or name a folder that has it with --data-dir`
  );
}
