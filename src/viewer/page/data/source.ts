/**
 * Where the page's documents come from: an API, files beside the page, or the page itself. Components ask for a path and are
 * drawn again when the document changes.
 */
import { useCallback, useEffect, useMemo, useState, useSyncExternalStore } from 'preact/compat';
import type { PackedChunk } from '../../documents/attemptDocuments.ts';
import {
  DOCUMENTS_VERSION,
  TRIALS_PER_PAGE,
  type TrialDocument,
  VERSION_HEADER,
} from '../../documents/documents.ts';
import type { RunDocument, RunList } from '../../documents/resources.ts';
import type { TrialPage } from '../../documents/trialDocuments.ts';

type Mode = 'served' | 'static' | 'single';
export const mode: Mode =
  (document.querySelector<HTMLMetaElement>('meta[name="swebatch-mode"]')?.content as Mode | undefined) ??
  'served';

export class MissingDocument extends Error {}

const encode = (path: string): string => path.split('/').map(encodeURIComponent).join('/');

async function fetchText(path: string): Promise<string> {
  if (mode === 'single') return unpack(path);
  const response = await fetch(addressOf(path), { credentials: 'same-origin', cache: 'no-store' });
  if (mode === 'served') sameVersion(response);
  if (response.status === 404) throw new MissingDocument(`${path} is not there`);
  if (!response.ok) throw new Error(`${path}: ${response.status} ${(await response.text()).slice(0, 300)}`);
  if (mode === 'served') return response.text();
  const text = await unzipped(await response.arrayBuffer());
  return CHUNK.test(path) ? chunkIn(text, path.includes('/raw/')) : text;
}

export const OTHER_VERSION =
  'This page and the program behind it are of different versions: reload it; where that changes nothing, run "npm run build" and start "swebatch view" again.';

function sameVersion(response: Response): void {
  if (response.headers.get(VERSION_HEADER) === DOCUMENTS_VERSION) return;
  setState('other version');
  throw new Error(OTHER_VERSION);
}

const CHUNK = /^attempts\/\d{1,12}\/(?:messages|raw)\//;

/** In a bundle what belongs to attempts is packed, and raw messages lie beside the others. */
function addressOf(path: string): string {
  if (mode === 'served') return `api/${encode(path)}`;
  const isPacked = path.startsWith('attempts/') || path.startsWith('evaluations/');
  return `data/${encode(path.replace('/raw/', '/messages/'))}.json${isPacked ? '.gz' : ''}`;
}

/** Some servers unpack such files themselves. */
async function unzipped(buffer: ArrayBuffer): Promise<string> {
  const bytes = new Uint8Array(buffer);
  const isZipped = bytes[0] === 0x1f && bytes[1] === 0x8b;
  if (!isZipped) return new TextDecoder().decode(bytes);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).text();
}

function chunkIn(text: string, isRaw: boolean): string {
  const { attempt, from, pairs } = JSON.parse(text) as PackedChunk;
  const messages = pairs.map(({ message, raw }) => {
    if (!isRaw) return message;
    if (!raw)
      throw new MissingDocument('raw messages are left out of a large bundle; swebatch view has them');
    const { value, data, ...rest } = raw;
    return { ...rest, data: data ?? JSON.stringify(value) };
  });
  return JSON.stringify({ attempt, from, messages });
}

async function unpack(path: string): Promise<string> {
  const element = [...document.querySelectorAll<HTMLElement>('script[data-path]')].find(
    (one) => one.dataset.path === path,
  );
  if (!element) throw new MissingDocument(`${path} was left out of this file; swebatch view has it`);
  const bytes = Uint8Array.from(atob(element.textContent ?? ''), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).text();
}

export interface Entry<T> {
  readonly data: T | undefined;
  readonly error: Error | undefined;
}

interface Slot {
  entry: Entry<unknown>;
  text: string | undefined;
  /** Raised by every change of the database; a slot behind it reads again when somebody looks. */
  generation: number;
  loading: boolean;
  readonly watchers: Set<{ changed: () => void; live: boolean }>;
}

const NOTHING: Entry<never> = { data: undefined, error: undefined };
const slots = new Map<string, Slot>();
let generation = 0;
/** Unwatched documents kept for going back; trajectories of thousands of steps must not fill the memory. */
const KEPT = 200;

function slotOf(path: string): Slot {
  const known = slots.get(path);
  if (known) return known;
  const slot: Slot = { entry: NOTHING, text: undefined, generation: -1, loading: false, watchers: new Set() };
  slots.set(path, slot);
  for (const [old, one] of slots) {
    if (slots.size <= KEPT) break;
    if (one.watchers.size === 0 && old !== path) slots.delete(old);
  }
  return slot;
}

declare global {
  /** The request that the HTML of a server has made already. */
  var swebatchFirst: Promise<Response> | undefined;
}

/** Takes the first documents of an address out of one answer; without it each document is asked for. */
async function readFirst(answer: Promise<Response>): Promise<void> {
  try {
    const response = await answer;
    sameVersion(response);
    const lines = response.ok ? (await response.text()).split('\n') : [];
    for (let at = 0; at + 1 < lines.length; at += 2) {
      const slot = slotOf(lines[at]!);
      keepText(slot, lines[at + 1]!);
      slot.generation = 0;
    }
  } catch {
    // Asking again says why.
  }
  first = undefined;
}

let first: Promise<void> | undefined;

/** Resolves when it is there, or when it takes so long that the page should say that it loads. */
export function soonReady(): Promise<unknown> {
  if (!globalThis.swebatchFirst) return Promise.resolve();
  first = readFirst(globalThis.swebatchFirst);
  return Promise.race([first, new Promise((done) => setTimeout(done, SOON_MS))]);
}

const SOON_MS = 100;

function keepText(slot: Slot, text: string): void {
  if (text === slot.text) return;
  slot.text = text;
  slot.entry = { data: JSON.parse(text) as unknown, error: undefined };
}

async function load(path: string, slot: Slot): Promise<void> {
  if (slot.loading) return;
  slot.loading = true;
  await first;
  const asked = generation;
  try {
    if (slot.generation < asked) keepText(slot, await fetchText(path));
  } catch (error) {
    // A server that is away for a moment must not blank a page that has something to show.
    const failure = error instanceof Error ? error : new Error(String(error));
    slot.entry = { data: slot.entry.data, error: failure };
  }
  slot.generation = asked;
  slot.loading = false;
  for (const watcher of slot.watchers) watcher.changed();
  // The document may have changed while this answer was on its way: ask again.
  if (asked < generation && [...slot.watchers].some((watcher) => watcher.live)) void load(path, slot);
}

/** `live: false` for a document that cannot change any more. */
export function useDocument<T>(path: string | undefined, live = true): Entry<T> {
  const subscribe = useCallback(
    (changed: () => void) => {
      if (path === undefined) return () => {};
      const slot = slotOf(path);
      const watcher = { changed, live };
      slot.watchers.add(watcher);
      if (slot.generation < 0 || (live && slot.generation < generation)) void load(path, slot);
      return () => slot.watchers.delete(watcher);
    },
    [path, live],
  );
  const read = useCallback(() => (path === undefined ? NOTHING : slotOf(path).entry), [path]);
  return useSyncExternalStore(subscribe, read) as Entry<T>;
}

/** Reads documents outside of drawing, for exports. */
export async function readDocument<T>(path: string): Promise<T> {
  return JSON.parse(await fetchText(path)) as T;
}

export type LiveState = 'file' | 'connecting' | 'following' | 'lost' | 'other version';
let state: LiveState = mode === 'served' ? 'connecting' : 'file';
const stateWatchers = new Set<() => void>();
function setState(next: LiveState): void {
  // Only a page that is loaded anew gets over that.
  if (state === 'other version') return;
  state = next;
  for (const changed of stateWatchers) changed();
}

const AT_MOST_EVERY_MS = 1000;
let isDue = false;

function refresh(): void {
  generation += 1;
  for (const [path, slot] of slots)
    if ([...slot.watchers].some((watcher) => watcher.live)) void load(path, slot);
}

function follow(): () => void {
  if (mode !== 'served') return () => {};
  const events = new EventSource('api/live');
  let greeted = false;
  events.addEventListener('hello', () => {
    setState('following');
    // After a lost connection something may have changed unseen.
    if (greeted) refresh();
    greeted = true;
  });
  events.addEventListener('change', () => {
    if (isDue) return;
    isDue = true;
    setTimeout(() => {
      isDue = false;
      refresh();
    }, AT_MOST_EVERY_MS);
  });
  events.addEventListener('error', () => setState('lost'));
  return () => events.close();
}

export function useLiveUpdates(): LiveState {
  useEffect(follow, []);
  return useSyncExternalStore(
    (changed) => {
      stateWatchers.add(changed);
      return () => stateWatchers.delete(changed);
    },
    () => state,
  );
}

export function useRunId(name: string): Entry<RunList> & { id: number | undefined } {
  const entry = useDocument<RunList>('runs');
  return { ...entry, id: entry.data?.runs.find((run) => run.name === name)?.id };
}

export const useRun = (runId: number | undefined): Entry<RunDocument> =>
  useDocument<RunDocument>(runId === undefined ? undefined : `runs/${runId}`);

async function trialsFrom(run: number, page: number, pages: number): Promise<TrialDocument[]> {
  const paths = Array.from({ length: pages - page }, (_, i) => `runs/${run}/trials/${page + i}`);
  return (await Promise.all(paths.map(readDocument<TrialPage>))).flatMap(({ rows }) => rows);
}

/** Of more pages than this only the first is read before somebody asks for the others: 50,000 trials are 40 MB. */
const AT_ONCE = 5;

/** The trials of a run: the first page at once, then the others, of a very large run only where all are `wanted`. */
export function useTrials(runId: number | undefined, wanted: boolean) {
  const first = useDocument<TrialPage>(runId === undefined ? undefined : `runs/${runId}/trials/0`);
  const total = first.data?.total ?? 0;
  const pages = Math.ceil(total / TRIALS_PER_PAGE);
  const list = useDocument<RunList>('runs');
  const [more, setMore] = useState<readonly TrialDocument[]>([]);
  // The list of runs counts what ended: whenever it changes, the pages after the first are read again.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the list stands for "something changed"
  useEffect(() => {
    if (runId === undefined || pages < 2 || (pages > AT_ONCE && !wanted)) return setMore([]);
    let isAsked = true;
    void trialsFrom(runId, 1, pages).then(
      (rest) => isAsked && setMore(rest),
      () => undefined,
    );
    return () => {
      isAsked = false;
    };
  }, [runId, pages, list.data, wanted]);
  const data = useMemo(() => (first.data ? [...first.data.rows, ...more] : undefined), [first.data, more]);
  return { data, error: first.error, total };
}

async function allTrials(run: number): Promise<[run: number, rows: TrialDocument[]]> {
  const { rows, total } = await readDocument<TrialPage>(`runs/${run}/trials/0`);
  return [run, [...rows, ...(await trialsFrom(run, 1, Math.ceil(total / TRIALS_PER_PAGE)))]];
}

export function useManyTrials(runs: readonly number[], list: RunList | undefined) {
  const [found, setFound] = useState({ trials: new Map<number, TrialDocument[]>(), error: '' });
  // biome-ignore lint/correctness/useExhaustiveDependencies: the list stands for "something changed in the database"
  useEffect(() => {
    let wanted = true;
    Promise.all(runs.map(allTrials)).then(
      (all) => wanted && setFound({ trials: new Map(all), error: '' }),
      (error: unknown) => wanted && setFound((old) => ({ ...old, error: String(error) })),
    );
    return () => {
      wanted = false;
    };
  }, [runs.join(), list]);
  return found;
}
