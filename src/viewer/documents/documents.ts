/**
 * The documents the page reads. The same path names a document everywhere: `/api/<path>` on a live server, `data/<path>.json`
 * in a static bundle, a key inside a single page. All of them are plain JSON; their types follow from the functions that make them.
 * Here is what several of them share. Names that come from models or datasets are in lists of pairs, so that a test called
 * `__proto__` stays a test.
 */
import type { ShownTrial } from '../../store/records/trialPages.ts';

/**
 * A page that is open while the program behind it changes, or that nobody built anew, must not misread what it gets: both say which
 * documents they know. Raised when a path or a field changes (tests/viewer/documentsVersion.test.ts notices).
 */
export const DOCUMENTS_VERSION = '2';
export const VERSION_HEADER = 'Swebatch-Documents';

export const TRIALS_PER_PAGE = 1000;
export const MESSAGES_PER_CHUNK = 40;

/** A page names some of what there may be thousands of; `report --json` and `compare --json` name all. */
const NAMED = 200;
export const fewNamed = <T>(value: T): T =>
  JSON.parse(
    JSON.stringify(value, (_key, part: unknown) => (Array.isArray(part) ? part.slice(0, NAMED) : part)),
  ) as T;

export interface MoneyDocument {
  costNano: number | null;
  /** Calls whose price is unknown: the cost is then a lower bound. */
  unknownCalls: number;
  calls: number;
  failedCalls: number;
  inputTokens: number;
  cacheReadTokens: number;
  cacheWriteTokens: number;
  outputTokens: number;
  reasoningTokens: number;
}

type ShownRow = Omit<ShownTrial, 'suspicion' | 'grade_suspicion' | 'run_id' | 'reward'>;
export interface TrialDocument extends ShownRow {
  /** resolved, unresolved, or why the trial is missing from the score. */
  verdict: string;
  /** Between 0 and 1. */
  reward?: number;
  /** The first line of what is to be done, in the list of a run. */
  task?: string;
  flags: string[];
  money: MoneyDocument;
}

/** Why a trial ended, or what it waits for. */
export const endingOf = (row: TrialDocument): string =>
  row.attempt_state === 'running' ? 'running' : (row.exit_reason ?? row.not_run_reason ?? row.state);

/** How an attempt's stay on an engine ended; "closed" and null (it is there now, or was when its record ends) need no word. */
const ENDS: Readonly<Record<string, string>> = {
  lost: 'the engine was lost',
  moved: 'nothing had run there yet',
  process_lost: 'swebatch was killed',
};

/** Model calls of tests, in one line. */
export const judgeText = (
  { calls, failedCalls, models }: { calls: number; failedCalls: number; models: string },
  cost: string,
): string =>
  `grading: ${calls} call${calls === 1 ? '' : 's'} of ${models}${failedCalls > 0 ? `, ${failedCalls} failed` : ''}, ${cost}`;

/** The address that a container asked for, in its own words or in ours. */
export const targetText = ({ host, port }: { host: string; port: number }): string =>
  host === '' ? 'no host' : host === '*' ? 'hosts after the first 2000' : `${host}:${port}`;

/** "tcp://a:2375 (the engine was lost), tcp://b:2375": in their order. */
export const staysText = (stays: readonly { engine: string; how: string | null }[]): string =>
  stays.map(({ engine, how }) => (how && ENDS[how] ? `${engine} (${ENDS[how]})` : engine)).join(', ');
