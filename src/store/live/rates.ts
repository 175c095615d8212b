/** Requests and tokens of the last minute on one key and model, over all processes of a results root. Every transaction is short. */
import type { Store } from '../open.ts';
import { all, change, first } from '../query.ts';
import { together } from '../writing.ts';

const SLOT_MS = 250;
const MINUTE_MS = 60_000;
/** Providers count shorter spans too: a tenth of the time may take a little more than a tenth of the limit. */
const SPAN_MS = 6_000;
const SPAN_SHARE = 0.15;
/** A request that is late on its way must not push two minutes into one. */
const LATE_MS = 500;

interface RateAsk {
  readonly account: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly rpm: number | null;
  readonly tpm: number | null;
  readonly tokens: number;
}

interface Used {
  slot: number;
  requests: number;
  tokens: number;
}

const slotAt = (ms: number): number => Math.floor(ms / SLOT_MS);

/** Takes one request and its tokens out of the limits. Returns 0, or after how many milliseconds there may be room. */
export const takeRate = (db: Store, ask: RateAsk): number =>
  take(db, ask, MINUTE_MS + LATE_MS, (used) => waitFor(used, ask));

/** Counts the use where nothing has to be waited for. Uses older than the window are forgotten. */
function take(
  db: Store,
  { account, at, tokens }: Pick<RateAsk, 'account' | 'at' | 'tokens'>,
  windowMs: number,
  wait: (used: readonly Used[]) => number,
): number {
  const from = slotAt(at - windowMs);
  return together(db, () => {
    // A use that a clock of the future wrote would otherwise count for ever.
    const used = all(db)<Used>`
      SELECT slot, requests, tokens FROM rate_uses
      WHERE account = ${account} AND slot >= ${from} AND slot <= ${slotAt(at) + 4} ORDER BY slot`;
    const waitMs = wait(used);
    if (waitMs > 0) return waitMs;
    change(db)`DELETE FROM rate_uses WHERE account = ${account} AND slot < ${from}`;
    change(db)`
      INSERT INTO rate_uses (account, slot, requests, tokens) VALUES (${account}, ${slotAt(at)}, 1, ${tokens})
      ON CONFLICT DO UPDATE SET requests = requests + 1, tokens = tokens + excluded.tokens`;
    return 0;
  });
}

/** Pure: until enough of what was used is old enough, in the minute and in the short span. */
export function waitFor(used: readonly Used[], { at, rpm, tpm, tokens }: RateAsk): number {
  const requestWait = (limit: number, spanMs: number) => freeAfter(used, 'requests', limit - 1, spanMs, at);
  const tokenWait = (limit: number, spanMs: number) => freeAfter(used, 'tokens', limit - tokens, spanMs, at);
  return Math.max(
    rpm === null ? 0 : requestWait(rpm, MINUTE_MS + LATE_MS),
    rpm === null ? 0 : requestWait(Math.max(1, rpm * SPAN_SHARE), SPAN_MS),
    tpm === null ? 0 : tokenWait(tpm, MINUTE_MS + LATE_MS),
    tpm === null ? 0 : tokenWait(tpm * SPAN_SHARE, SPAN_MS),
  );
}

/** A request that is larger than the limit itself goes when nothing else counts. */
function freeAfter(
  used: readonly Used[],
  column: 'requests' | 'tokens',
  room: number,
  spanMs: number,
  at: number,
): number {
  const counted = used.filter(({ slot }) => (slot + 1) * SLOT_MS > at - spanMs);
  let sum = counted.reduce((total, one) => total + one[column], 0);
  let wait = 0;
  for (const one of counted) {
    if (sum <= Math.max(0, room)) break;
    sum -= one[column];
    wait = (one.slot + 1) * SLOT_MS + spanMs - at;
  }
  return Math.max(0, wait);
}

/** Tokens that a call took beside its reservation, in the slot of the reservation. */
export const correctRate = (db: Store, account: string, at: number, tokens: number): number =>
  change(db)`
    UPDATE rate_uses SET tokens = max(0, tokens + ${Math.round(tokens)}) WHERE account = ${account} AND slot = ${slotAt(at)}`;

interface LearnedLimits {
  readonly rpm: number | null;
  readonly tpm: number | null;
}

export const learnRates = (db: Store, account: string, { rpm, tpm }: LearnedLimits, at: number): number =>
  change(db)`
    INSERT INTO rate_limits (account, rpm, tpm, told_at_ms) VALUES (${account}, ${rpm}, ${tpm}, ${at})
     ON CONFLICT DO UPDATE SET rpm = coalesce(excluded.rpm, rpm), tpm = coalesce(excluded.tpm, tpm), told_at_ms = excluded.told_at_ms`;

/** A limit that was told longer ago may have changed. */
const KNOWN_FOR_MS = 3_600_000;

export const learnedRates = (db: Store, account: string, at: number): LearnedLimits =>
  first(db)<LearnedLimits>`
    SELECT rpm, tpm FROM rate_limits WHERE account = ${account} AND told_at_ms > ${at - KNOWN_FOR_MS}` ?? {
    rpm: null,
    tpm: null,
  };

/** The longest pause that is heeded: a later moment was written by a clock that was wrong. */
const LONGEST_PAUSE_MS = 3_600_000;

/** The later moment holds where two processes were asked to wait. */
export const pauseRate = (db: Store, account: string, until: number, at: number): number =>
  change(db)`
    INSERT INTO rate_limits (account, told_at_ms, paused_until_ms) VALUES (${account}, 0, ${Math.ceil(until)})
     ON CONFLICT DO UPDATE SET paused_until_ms =
       CASE WHEN paused_until_ms BETWEEN ${Math.ceil(until)} AND ${Math.ceil(at) + LONGEST_PAUSE_MS} THEN paused_until_ms ELSE ${Math.ceil(until)} END`;

/** Milliseconds since 1970; 0 where nobody has to wait. */
export function ratePausedUntil(db: Store, account: string, at: number): number {
  const row = first(db)<{ until: number | null }>`
    SELECT paused_until_ms AS until FROM rate_limits WHERE account = ${account}`;
  const until = row?.until ?? 0;
  return until > at && until <= at + LONGEST_PAUSE_MS ? until : 0;
}

/**
 * Counts a pull and returns 0, or after how many milliseconds there may be room. Pulls from one registry, over all engines and processes of a
 * results root, are requests on an account like those of a model: the account is the registry.
 */
export const takePull = (
  db: Store,
  ask: { readonly registry: string; readonly at: number; readonly pulls: number; readonly windowMs: number },
): number =>
  take(db, { account: `pulls from ${ask.registry}`, at: ask.at, tokens: 0 }, ask.windowMs, (used) =>
    freeAfter(used, 'requests', ask.pulls - 1, ask.windowMs, ask.at),
  );
