/** The use of an arm's money: every attempt counts, also those that were retried. Unknown is never 0. */
import type { AttemptCost, LedgerLine } from '../../store/records/modelCalls.ts';
import type { RunData } from '../../store/records/runData.ts';
import { quantile } from '../statistics/means.ts';
import { costPerResolved, perResolved } from '../statistics/resampling.ts';

/** Dollars per million tokens; a cache kind that is not given costs as input does. */
export interface TokenPrices {
  readonly input: number;
  readonly output: number;
  readonly cache_read?: number | undefined;
  readonly cache_write?: number | undefined;
  /** Default: as what is kept for five minutes. */
  readonly cache_write_1h?: number | undefined;
}
export type PricesOf = (model: string, arm: string) => TokenPrices | 'free' | null;

const TOKEN_KINDS = ['input', 'cache_read', 'cache_write', 'output', 'reasoning'] as const;
type TokenKind = (typeof TOKEN_KINDS)[number];

export interface Money {
  /** Null when nothing is known. */
  readonly nano: number | null;
  /** Some part is unknown: read as "at least". */
  readonly atLeast: boolean;
}

const TOP = 5;

export function accountingOf(
  data: RunData,
  arm: string,
  /** Ids of the resolved trials, and of those whose patch has no verdict yet. */
  { resolved, awaiting }: { readonly resolved: ReadonlySet<number>; readonly awaiting: ReadonlySet<number> },
  pricesOf: PricesOf | undefined,
  seed: number,
) {
  const costs = data.costs.filter((c) => c.arm === arm);
  const ledger = data.ledger.filter((l) => l.arm === arm);
  const cost = moneyOf(costs);
  const finals = new Set(data.trials.map((t) => t.attemptId));
  const trials = [...Map.groupBy(costs, (c) => c.trialId).values()].map((group) => ({
    trialId: group[0]!.trialId,
    instanceId: group[0]!.instanceId,
    epoch: group[0]!.epoch,
    cost: moneyOf(group),
  }));
  const spent = trials.flatMap((t) => (t.cost.nano === null ? [] : [t.cost.nano]));
  const tokens = tokensOf(costs);
  const input = tokens.input + tokens.cache_read + tokens.cache_write;
  return {
    calls: costs.reduce((s, c) => s + c.calls, 0),
    failedCalls: ledger.reduce((s, l) => s + l.failedCalls, 0),
    cost,
    /** The cost of attempts whose trial was tried again: spent, but not on a result. */
    lostCost: moneyOf(costs.filter((c) => !finals.has(c.attemptId))),
    /** The cost by trials that do not wait for a verdict. */
    costPerResolved: costPerResolvedOf(costs, { resolved, awaiting }, seed),
    /** Trials whose patch has no verdict yet, and what they cost; absent where there is none. */
    ...(awaiting.size > 0 &&
      resolved.size > 0 && {
        awaitingVerdict: {
          trials: awaiting.size,
          cost: moneyOf(costs.filter((c) => awaiting.has(c.trialId))),
        },
      }),
    perTrial: { n: spent.length, p50: quantile(spent, 0.5), p95: quantile(spent, 0.95) },
    tokens,
    /** Cached share of all input tokens; null without input. */
    cachedShare: input === 0 ? null : tokens.cache_read / input,
    ...cacheSavedOf(ledger, arm, pricesOf),
    byModel: ledger.map((line) => ({
      model: line.model,
      calls: line.calls,
      cost: moneyOf([line]),
      tokens: tokensOf([line]),
      priceVersions: line.priceVersions,
    })),
    /** List price of the tokens; null where no price is known. Reasoning is part of output and has no line of its own. */
    byTokenKind: byTokenKind(ledger, arm, tokens, pricesOf),
    dearest: trials
      .filter((t) => (t.cost.nano ?? 0) > 0)
      .sort((a, b) => b.cost.nano! - a.cost.nano!)
      .slice(0, TOP)
      .map(({ instanceId, epoch, cost: money }) => ({ instanceId, epoch, cost: money })),
  };
}

function costPerResolvedOf(
  costs: readonly AttemptCost[],
  { resolved, awaiting }: { readonly resolved: ReadonlySet<number>; readonly awaiting: ReadonlySet<number> },
  seed: number,
) {
  const decided = costs.filter((c) => !awaiting.has(c.trialId));
  const money = moneyOf(decided);
  if (resolved.size === 0 || money.nano === null) return null;
  // Instances are the independent units, not their epochs.
  const rows = [...Map.groupBy(decided, (c) => c.instanceId).values()].map((group) => ({
    cost: moneyOf(group).nano ?? 0,
    resolved: new Set(group.flatMap((c) => (resolved.has(c.trialId) ? [c.trialId] : []))).size,
  }));
  return { ...money, nano: perResolved(rows), bootstrap: costPerResolved(rows, seed) };
}

function moneyOf(rows: readonly Pick<AttemptCost, 'costNano' | 'unknownCalls'>[]): Money {
  const known = rows.flatMap((r) => (r.costNano === null ? [] : [r.costNano]));
  return {
    nano: rows.length > 0 && known.length === 0 ? null : known.reduce((s, x) => s + x, 0),
    atLeast: rows.some((r) => r.unknownCalls > 0 || r.costNano === null),
  };
}

type TokenRow = Pick<
  LedgerLine,
  'inputTokens' | 'cacheReadTokens' | 'cacheWriteTokens' | 'outputTokens' | 'reasoningTokens'
>;

function tokensOf(rows: readonly TokenRow[]): Record<TokenKind, number> {
  const total = (of: (row: TokenRow) => number) => rows.reduce((s, r) => s + of(r), 0);
  return {
    input: total((r) => r.inputTokens),
    cache_read: total((r) => r.cacheReadTokens),
    cache_write: total((r) => r.cacheWriteTokens),
    output: total((r) => r.outputTokens),
    reasoning: total((r) => r.reasoningTokens),
  };
}

const ratesOf = ({ input, cache_read, cache_write, cache_write_1h }: TokenPrices) => {
  const write = cache_write ?? input;
  return { input, read: cache_read ?? input, write, write1h: cache_write_1h ?? write };
};

/** Dollars per million tokens are a thousand nano-dollars a token. */
const nanoOf = (tokens: number, rate: number): number => tokens * rate * 1000;

export interface CacheSaved {
  /**
   * The saving of the cache: the higher cost of the same input at list price without one; below 0 where writing cost more than reading saved; null
   * where no price is known.
   */
  readonly nano: number | null;
  /** The saved share of the same input's cost without a cache. */
  readonly share: number | null;
}

/** Absent where no token was read from a cache or written to one, and where nothing is paid. */
function cacheSavedOf(
  ledger: readonly LedgerLine[],
  arm: string,
  pricesOf: PricesOf | undefined,
): { readonly cacheSaved?: CacheSaved } {
  let saved = 0;
  let without = 0;
  let paid = false;
  for (const line of ledger) {
    const { input, cache_read: read, cache_write: written } = tokensOf([line]);
    const prices = pricesOf?.(line.model, arm) ?? null;
    if (prices === 'free') continue;
    if (prices === null && read + written > 0) return { cacheSaved: { nano: null, share: null } };
    if (prices === null) continue;
    const hour = line.cacheWrite1hTokens ?? 0;
    const rates = ratesOf(prices);
    paid ||= read + written > 0;
    without += nanoOf(input + read + written, rates.input);
    saved +=
      nanoOf(read, rates.input - rates.read) -
      nanoOf(written - hour, rates.write - rates.input) -
      nanoOf(hour, rates.write1h - rates.input);
  }
  return paid
    ? { cacheSaved: { nano: Math.round(saved), share: without === 0 ? null : saved / without } }
    : {};
}

function byTokenKind(
  ledger: readonly LedgerLine[],
  arm: string,
  tokens: Readonly<Record<TokenKind, number>>,
  pricesOf: PricesOf | undefined,
) {
  const priced = ledger.map((line) => ({
    tokens: tokensOf([line]),
    hour: line.cacheWrite1hTokens ?? 0,
    prices: pricesOf?.(line.model, arm) ?? null,
  }));
  const nano = (kind: TokenKind): number | null => {
    let sum = 0;
    for (const { tokens: used, hour, prices } of priced) {
      if (used[kind] === 0 || prices === 'free') continue;
      if (prices === null) return null;
      const rates = ratesOf(prices);
      if (kind === 'cache_write') sum += nanoOf(used[kind] - hour, rates.write) + nanoOf(hour, rates.write1h);
      else if (kind === 'cache_read') sum += nanoOf(used[kind], rates.read);
      else if (kind !== 'reasoning') sum += nanoOf(used[kind], prices[kind]);
    }
    return Math.round(sum);
  };
  return TOKEN_KINDS.filter((kind) => kind !== 'reasoning').map((kind) => ({
    kind,
    tokens: tokens[kind],
    nano: nano(kind),
  }));
}
