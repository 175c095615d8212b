/** Fetches a dataset from the Hugging Face hub, pinned to a commit, into the cache that every other tool shares. */

import { readdirSync, readlinkSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { datasetInfo, downloadFile, HubApiError, listFiles } from '@huggingface/hub';
import { sleep as sleepReally } from '../../base/async/timer.ts';
import { writeAtomically } from '../../base/files/atomicWrite.ts';
import { OutsideRootError, pathInside } from '../../base/files/pathInside.ts';
import { closest } from '../../base/text/closest.ts';
import { DATASET_ALIASES, hubReposOf } from '../knownDatasets.ts';
import { cacheFolderOf } from '../read/locate.ts';
import type { HubAccess } from './hubAccess.ts';
import { type CachedFile, downloadIntoCache, etagOf, type HubFile, type Transfer } from './hubDownload.ts';
import { boundedFetch, causeOf, hubFetch } from './hubFetch.ts';

export interface PullOptions extends Transfer {
  readonly access: HubAccess;
  /** Branch, tag or commit. */
  readonly revision?: string | undefined;
  /** Without it `test`, where there is one; `all` takes everything. */
  readonly split?: string | undefined;
  readonly fetch?: typeof fetch;
  readonly sleep?: (ms: number) => Promise<void>;
  readonly signal?: AbortSignal | undefined;
}

export type PullResult =
  | {
      readonly ok: true;
      readonly repo: string;
      /** Always the commit. */
      readonly revision: string;
      readonly snapshot: string;
      readonly files: readonly CachedFile[];
    }
  | { readonly ok: false; readonly message: string };

const DATA_FILE = /\.(parquet|jsonl|json)$/;
const COMMIT = /^[0-9a-f]{40}$/;
/** git's blob id, or the sha256 of a file in large-file storage. */
const ETAG = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;
/** What the hub says of a dataset, or of a page of its files. */
const LONGEST_ANSWER = 64 * 1024 * 1024;
/** A hub that names more would name them without an end. */
const MOST_FILES = 100_000;
/** An error page in the place of a file. */
const BESIDE_A_FILE = 1024 * 1024;
const refusal = (message: string): PullResult => ({ ok: false, message });

export async function pullDataset(source: string, options: PullOptions): Promise<PullResult> {
  const repos = hubReposOf(source);
  if (repos.length === 0) {
    const close = closest(source, DATASET_ALIASES);
    return refusal(
      `"${source}" is not a dataset of the hub: give one of ${DATASET_ALIASES.join(', ')}, or an id such as org/name${close ? `; did you mean ${close}?` : ''}`,
    );
  }
  if (options.access.offline)
    return refusal(
      `HF_HUB_OFFLINE is set, so ${source} cannot be fetched; unset it, or use what the cache has`,
    );
  let first: PullResult | undefined;
  for (const repo of repos) {
    try {
      return await pullRepo(repo, options);
    } catch (error) {
      if (options.signal?.aborted) throw error;
      first ??= refusal(explain(repo, error, options));
      // The hub answers 401 for a repository that does not exist, when no token is sent.
      const maybeElsewhere = error instanceof HubApiError && [401, 403, 404].includes(error.statusCode);
      if (!maybeElsewhere) break;
    }
  }
  return first!;
}

async function pullRepo(repo: string, options: PullOptions): Promise<PullResult> {
  const { access, onWait, signal, revision = 'main', sleep = sleepReally } = options;
  const patient = hubFetch({ fetch: options.fetch ?? fetch, sleep, onWait, signal });
  const client = {
    repo: { type: 'dataset', name: repo },
    fetch: boundedFetch(patient, LONGEST_ANSWER),
    ...(access.hubUrl !== undefined && { hubUrl: access.hubUrl }),
    ...(access.token !== undefined && { accessToken: access.token }),
  } as const;
  const commit = COMMIT.test(revision)
    ? revision
    : (await datasetInfo({ ...client, name: repo, revision, additionalFields: ['sha'] })).sha;
  // Checked because it becomes a path.
  if (commit === undefined || !COMMIT.test(commit))
    return refusal(
      `${repo}: the hub names no commit for revision ${revision}: ${JSON.stringify(commit ?? null)}`,
    );

  const listed: HubFile[] = [];
  let entries = 0;
  for await (const entry of listFiles({ ...client, revision: commit, recursive: true })) {
    if (++entries > MOST_FILES) return refusal(`${repo}: the hub names more than ${MOST_FILES} files`);
    const etag = entry.lfs?.oid ?? entry.oid;
    if (entry.type === 'file' && etag !== undefined && DATA_FILE.test(entry.path) && isInside(entry.path))
      listed.push({ path: entry.path, size: entry.size, etag });
  }
  const chosen = chooseSplit(listed, options.split);
  if (!Array.isArray(chosen)) return refusal(`${repo} at ${commit.slice(0, 12)} ${chosen.problem}`);

  const odd = chosen.find(({ etag }) => !ETAG.test(etag));
  if (odd) return refusal(`${repo}: ${odd.path}: ${JSON.stringify(odd.etag)} is not a checksum`);

  const repoDir = join(access.cacheDir, cacheFolderOf(repo));
  const files: CachedFile[] = [];
  for (const file of chosen) {
    const ofFile = boundedFetch(patient, file.size + BESIDE_A_FILE);
    const open = (wanted: HubFile) =>
      downloadFile({ ...client, fetch: ofFile, revision: commit, path: wanted.path, xet: false });
    files.push(await downloadIntoCache(file, { ...options, repoDir, commit, open, sleep }));
  }
  // Last, so that a broken download never becomes what "main" means.
  if (revision !== commit) await writeAtomically(pathInside(repoDir, 'refs', revision), commit);
  return { ok: true, repo, revision: commit, snapshot: join(repoDir, 'snapshots', commit), files };
}

/** Paths come from the network; none may point outside of the snapshot. */
const isInside = (path: string) =>
  !path.startsWith('/') &&
  !path.includes('\\') &&
  path.split('/').every((part) => part !== '..' && part !== '');

const splitOf = (path: string) => basename(path).replace(/(-\d{5}-of-\d{5})?\.\w+$/, '');

function chooseSplit(files: readonly HubFile[], wanted: string | undefined): HubFile[] | { problem: string } {
  const data = files.filter((file) => /^(data\/)?[^/]+$/.test(file.path));
  const splits = [...new Set(data.map((file) => splitOf(file.path)))].sort();
  if (splits.length === 0) return { problem: 'holds no data files' };
  const split = wanted ?? (splits.includes('test') ? 'test' : 'all');
  if (split === 'all') return data;
  const chosen = data.filter((file) => splitOf(file.path) === split);
  return chosen.length > 0 ? chosen : { problem: `has no split "${split}"; it holds ${splits.join(', ')}` };
}

const OTHER_WAYS =
  'try again, name a mirror in HF_ENDPOINT, or copy the file here by hand and name its folder with --data-dir';

function explain(repo: string, error: unknown, { access, revision }: PullOptions): string {
  if (error instanceof OutsideRootError) return error.message;
  if (!(error instanceof HubApiError))
    return `${repo} could not be fetched: ${causeOf(error)}; ${OTHER_WAYS}`;
  const at = revision === undefined ? '' : ` at revision ${revision}`;
  const said = error.message.split('. URL:')[0];
  const fix: Record<number, string> = {
    401: access.token
      ? 'the token is not accepted: log in again'
      : 'it does not exist, or needs a token in HF_TOKEN',
    403: 'the account has no access: accept its conditions on the hub, or use another token',
    404: 'check the name and the revision',
    429: 'too many requests: wait, or set HF_TOKEN, which has higher limits',
  };
  return `${repo}${at}: the hub answers ${error.statusCode} (${said}); ${fix[error.statusCode] ?? 'try again later'}`;
}

export interface VerifiedFile {
  readonly path: string;
  readonly ok: boolean;
  readonly message: string;
}

/** Compares every file of a cached snapshot with the checksum in its blob's name. Empty when the folder is not a snapshot. */
export async function verifySnapshot(snapshot: string): Promise<VerifiedFile[]> {
  const results: VerifiedFile[] = [];
  for (const entry of readdirSync(snapshot, { recursive: true, withFileTypes: true })) {
    if (!entry.isSymbolicLink()) continue;
    const path = join(entry.parentPath, entry.name);
    const etag = basename(readlinkSync(path));
    if (!ETAG.test(etag)) continue;
    const there = statSync(path, { throwIfNoEntry: false });
    const got = there ? await etagOf(path, etag) : undefined;
    const message =
      got === undefined ? 'its blob is missing' : got === etag ? 'checksum right' : `checksum is ${got}`;
    results.push({ path, ok: got === etag, message });
  }
  return results;
}
