/** Fetches a dataset from the Hugging Face hub, pinned to a commit, into the cache that every other tool shares. */

import { createHash } from 'node:crypto';
import {
  createReadStream,
  createWriteStream,
  existsSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
} from 'node:fs';
import { readdir, rename, rm, stat, symlink } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { datasetInfo, downloadFile, HubApiError, listFiles } from '@huggingface/hub';
import { retry, retryAfterMs, sleep as sleepReally, startTimer } from '../base/async/timer.ts';
import { moveIntoPlace, writeAtomically } from '../base/files/atomicWrite.ts';
import { makeFolder } from '../base/files/makeFolder.ts';
import { OutsideRootError, pathInside } from '../base/files/pathInside.ts';
import { isAlive } from '../base/isAlive.ts';
import { stripChars } from '../base/python/text.ts';
import { closest } from '../base/text/closest.ts';
import { errorText } from '../base/text/errorText.ts';
import {
  cacheFolderOf,
  DATASET_ALIASES,
  type HubEnv,
  hubCacheDir,
  hubHome,
  hubReposOf,
} from './read/locate.ts';

export interface PullOptions {
  readonly access: ReturnType<typeof hubAccess>;
  /** Branch, tag or commit. */
  readonly revision?: string | undefined;
  /** Default: `test`, where there is one; `all` takes everything. */
  readonly split?: string | undefined;
  /** The repository has task folders: all files come, and not those of rows alone. */
  readonly whole?: boolean;
  readonly fetch?: typeof fetch;
  readonly sleep?: (ms: number) => Promise<void>;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((file: HubFile, bytes: number) => void) | undefined;
  readonly onWait?: ((message: string) => void) | undefined;
  /** A transfer that moves no byte for this long is cut and resumed. */
  readonly stallMs?: number | undefined;
}

/** `revision` is always the commit. */
type PullResult =
  | {
      readonly ok: true;
      readonly repo: string;
      readonly revision: string;
      readonly snapshot: string;
      readonly files: readonly CachedFile[];
    }
  | { readonly ok: false; readonly message: string };

interface HubFile {
  /** Inside the repository. */
  readonly path: string;
  readonly size: number;
  /** sha256 for a file in large-file storage, else git's blob id: the name of its blob, and its checksum. */
  readonly etag: string;
}

interface CachedFile {
  readonly path: string;
  readonly bytes: number;
  readonly etag: string;
  /** Bytes that were there already: all of them, or what an interrupted download left. */
  readonly reusedBytes: number;
}

const DATA_FILE = /\.(parquet|jsonl|json|csv)$/;
const COMMIT = /^[0-9a-f]{40}$/;
/** git's blob id, or the sha256 of a file in large-file storage. */
const ETAG = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;
/** A longer description of a dataset, or page of its files, is an answer without an end (docs/threat-model.md). */
const LONGEST_ANSWER = 64 * 1024 * 1024;
/** A longer list of files has no end (tests/dataset/hub.test.ts). */
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
  const { access, revision = 'main', whole = false } = options;
  const patient = hubFetch(options);
  const client = {
    repo: { type: 'dataset', name: repo },
    fetch: boundedFetch(patient, LONGEST_ANSWER),
    ...(access.hubUrl !== undefined && { hubUrl: access.hubUrl }),
    ...(access.token !== undefined && { accessToken: access.token }),
  } as const;
  const commit = COMMIT.test(revision)
    ? revision
    : (await datasetInfo({ ...client, name: repo, revision, additionalFields: ['sha'] })).sha;
  // The commit becomes a path.
  if (commit === undefined || !COMMIT.test(commit))
    return refusal(
      `${repo}: the hub names no commit for revision ${revision}: ${JSON.stringify(commit ?? null)}`,
    );

  const listed: HubFile[] = [];
  let entries = 0;
  for await (const entry of listFiles({ ...client, revision: commit, recursive: true })) {
    if (++entries > MOST_FILES) return refusal(`${repo}: the hub names more than ${MOST_FILES} files`);
    const etag = entry.lfs?.oid ?? entry.oid;
    const wanted = whole || DATA_FILE.test(entry.path);
    if (entry.type === 'file' && etag !== undefined && wanted && isInside(entry.path))
      listed.push({ path: entry.path, size: entry.size, etag });
  }
  const chosen = whole ? listed : chooseSplit(listed, options.split);
  if (!Array.isArray(chosen)) return refusal(`${repo} at ${commit.slice(0, 12)} ${chosen.problem}`);

  const odd = chosen.find(({ etag }) => !ETAG.test(etag));
  if (odd) return refusal(`${repo}: ${odd.path}: ${JSON.stringify(odd.etag)} is not a checksum`);

  const repoDir = join(access.cacheDir, cacheFolderOf(repo));
  const files: CachedFile[] = [];
  for (const file of chosen) {
    const ofFile = boundedFetch(patient, file.size + BESIDE_A_FILE);
    const open = () =>
      downloadFile({ ...client, fetch: ofFile, revision: commit, path: file.path, xet: false });
    files.push(await downloadIntoCache(file, repoDir, commit, open, options));
  }
  // The ref is written last, so that a broken download never becomes what "main" means.
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
  const named = files.filter((file) => /^(data\/)?[^/]+$/.test(file.path));
  // A table beside rows in another form is about them.
  const rows = named.filter((file) => !file.path.endsWith('.csv'));
  const data = rows.length > 0 ? rows : named;
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

/** Compares every file of a cached snapshot with the checksum in its blob's name. Empty when the folder is not a snapshot. */
export async function verifySnapshot(snapshot: string) {
  const results: { readonly path: string; readonly ok: boolean; readonly message: string }[] = [];
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

// One file of the hub into the standard cache, as huggingface_hub lays it out: `blobs/<etag>` and a symlink to it under
// `snapshots/<commit>/`. The client's own cache download neither resumes nor checks; this does both around its `downloadFile`.

/** Hash of a file by the rule its etag shows: 64 digits are sha256, 40 are git's blob id. */
async function etagOf(path: string, like: string): Promise<string> {
  const isSha256 = like.length === 64;
  const hash = createHash(isSha256 ? 'sha256' : 'sha1');
  if (!isSha256) hash.update(`blob ${(await stat(path)).size}\0`);
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}

const sizeOf = async (path: string) => (await stat(path).catch(() => undefined))?.size;

/**
 * A partial download carries the id of its process. A dead process's file is taken over by renaming, which only one process can do, so two
 * processes never write to the same partial file.
 */
async function claimPartial(blob: string): Promise<string> {
  const mine = `${blob}.${process.pid}.incomplete`;
  const pattern = new RegExp(`^${basename(blob)}(?:\\.(\\d+))?\\.incomplete$`);
  for (const name of await readdir(dirname(blob)).catch(() => [])) {
    const match = pattern.exec(name);
    if (!match || (match[1] !== undefined && isAlive(Number(match[1])))) continue;
    const claimed = await rename(join(dirname(blob), name), mine).then(
      () => true,
      () => false,
    );
    if (claimed) break;
  }
  return mine;
}

const ATTEMPTS = 5;
const usualDelay = (tried: number): number | undefined =>
  tried === ATTEMPTS ? undefined : 500 * 2 ** (tried - 1);

/** `repoDir`: `<cache>/datasets--ORG--NAME`. `open` gives the file's content; from the hub client. */
async function downloadIntoCache(
  file: HubFile,
  repoDir: string,
  commit: string,
  open: () => Promise<Blob | null>,
  options: PullOptions,
): Promise<CachedFile> {
  const { path, size, etag } = file;
  const blob = pathInside(repoDir, 'blobs', etag);
  // The pointer itself is a link and is replaced; its folder must be in the cache.
  const [folder] = /^(?:.*\/)?/.exec(path)!;
  const pointer = join(pathInside(repoDir, 'snapshots', commit, ...folder.split('/')), basename(path));
  makeFolder(dirname(blob));
  makeFolder(dirname(pointer));
  let reusedBytes: number | undefined;
  const once = async (): Promise<void> => {
    const partial = await claimPartial(blob);
    let had = (await sizeOf(partial)) ?? 0;
    if (had > size) {
      await rm(partial);
      had = 0;
    }
    reusedBytes ??= had;
    if (had < size) {
      const content = await open();
      if (!content) throw new Error(`${path} is not in the repository at ${commit}`);
      await append(file, partial, had, content, options);
    }
    const got = await etagOf(partial, etag);
    if (got === etag) return moveIntoPlace(partial, blob);
    await rm(partial); // a resumed part may stem from other bytes: start anew
    reusedBytes = 0;
    throw new Error(`${path}: the checksum is ${got.slice(0, 12)}, the hub announced ${etag.slice(0, 12)}`);
  };
  if ((await sizeOf(blob)) === size && (await etagOf(blob, etag)) === etag) reusedBytes = size;
  else
    await retry(once, {
      delayMs: (_, tried) => usualDelay(tried),
      onWait: (error, ms) =>
        options.onWait?.(`${path}: ${errorText(error)}; going on in ${Math.ceil(ms / 1000)} s`),
      sleep: options.sleep ?? sleepReally,
    });
  await rm(pointer, { force: true });
  await symlink(relative(dirname(pointer), blob), pointer);
  return { path, bytes: size, etag, reusedBytes: reusedBytes! };
}

async function append(
  file: HubFile,
  partial: string,
  from: number,
  content: Blob,
  { stallMs = 60_000, onProgress }: PullOptions,
): Promise<void> {
  const controller = new AbortController();
  const stalled = () => controller.abort(new Error(`no bytes for ${stallMs / 1000} s`));
  const timer = startTimer(stallMs, stalled);
  let bytes = from;
  const source = Readable.fromWeb(
    content.slice(from, file.size).stream() as Parameters<typeof Readable.fromWeb>[0],
  );
  source.on('data', (chunk: Uint8Array) => {
    bytes += chunk.length;
    timer.restart();
    onProgress?.(file, bytes);
  });
  try {
    await pipeline(source, createWriteStream(partial, { flags: 'a' }), { signal: controller.signal });
  } catch (error) {
    throw controller.signal.aborted ? controller.signal.reason : error;
  } finally {
    timer.cancel();
  }
  if (bytes < file.size) throw new Error(`the transfer ended after ${bytes} of ${file.size} bytes`);
}

// The fetch of the hub client: waits after 429 and server errors as the server asks, and gives up on a silent server.

const TRANSIENT = new Set([408, 429, 500, 502, 503, 504]);
/** A longer wait than this is reported instead. */
const LONGEST_WAIT_MS = 10 * 60_000;

/** An answer that is retried; the caller gets the last one. */
class Busy extends Error {
  readonly response: Response;
  constructor(response: Response) {
    super(`the hub answers ${response.status}`);
    this.response = response;
  }
}

const HEADERS_TIMEOUT_MS = 30_000;

function hubFetch({ fetch: ask = fetch, sleep = sleepReally, onWait, signal }: PullOptions): typeof fetch {
  const delayMs = (error: unknown, tried: number): number | undefined => {
    const usual = usualDelay(tried);
    if (usual === undefined || !(error instanceof Busy)) return signal?.aborted ? undefined : usual;
    const wait = retryAfterMs(error.response.headers.get('retry-after'), Date.now()) ?? usual;
    return wait > LONGEST_WAIT_MS ? undefined : wait;
  };
  const sayWait = (error: unknown, ms: number): void => {
    if (error instanceof Busy) void error.response.body?.cancel();
    const reason = error instanceof Busy ? error.message : `the hub cannot be reached (${causeOf(error)})`;
    onWait?.(`${reason}; trying again in ${Math.ceil(ms / 1000)} s`);
  };
  return async (input, init) => {
    const once = async (): Promise<Response> => {
      const silence = new AbortController();
      const timer = startTimer(HEADERS_TIMEOUT_MS, () =>
        silence.abort(new Error(`no answer within ${HEADERS_TIMEOUT_MS / 1000} s`)),
      );
      const signals = [silence.signal, signal, init?.signal].filter((s) => s != null);
      try {
        const response = await ask(input, { ...init, signal: AbortSignal.any(signals) });
        if (TRANSIENT.has(response.status)) throw new Busy(response);
        return response;
      } finally {
        timer.cancel();
      }
    };
    try {
      return await retry(once, { delayMs, onWait: sayWait, sleep });
    } catch (error) {
      if (error instanceof Busy) return error.response;
      throw error;
    }
  };
}

/** The body of an answer ends with an error when it is longer than this: a server may send without an end. */
export function boundedFetch(inner: typeof fetch, mostBytes: number): typeof fetch {
  return async (input, init) => {
    const response = await inner(input, init);
    if (!response.body) return response;
    let left = mostBytes;
    const counted = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        left -= chunk.length;
        if (left >= 0) controller.enqueue(chunk);
        else controller.error(new Error(`the server sends more than the ${mostBytes} bytes that may come`));
      },
    });
    const { status, statusText, headers, url, redirected } = response;
    const bounded = new Response(response.body.pipeThrough(counted), { status, statusText, headers });
    // A response that is made here knows neither.
    return Object.defineProperties(bounded, { url: { value: url }, redirected: { value: redirected } });
  };
}

/** undici hides the reason ("fetch failed") in `cause`. */
function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message || error.message : error.message;
}

// Access to the Hugging Face hub: endpoint, token, cache and offline mode, from the variables of its own tools.

/** `huggingface-cli login` leaves the token in a file of its home, even when the cache is elsewhere. */
function storedToken(env: HubEnv): string | undefined {
  const path = env.HF_TOKEN_PATH || join(hubHome(env), 'token');
  return existsSync(path) ? readFileSync(path, 'utf8').trim() || undefined : undefined;
}

export function hubAccess(env: HubEnv) {
  return {
    cacheDir: hubCacheDir(env),
    /** Undefined: the client's own default. */
    hubUrl: stripChars(env.HF_ENDPOINT ?? '', '/', 'right') || undefined,
    // A line end from a file makes no header. The second name is that of older tools.
    token: env.HF_TOKEN?.trim() || env.HUGGING_FACE_HUB_TOKEN?.trim() || storedToken(env),
    offline: /^(1|true|yes|on)$/i.test(env.HF_HUB_OFFLINE ?? ''),
  };
}
