/**
 * Bounds for numbers. A number of a foreign file beyond them is unknown: it would overflow sums and make means worthless. In a setting it
 * is refused.
 */
import { z } from 'zod';
import { parseDuration, parseSize } from './text/units.ts';

/** No context window comes near it. */
const MOST_TOKENS = 1_000_000_000;
export const tokenCount = z.number().int().min(0).max(MOST_TOKENS);
export const tokensOrNull = (value: unknown): number | null => tokenCount.safeParse(value).data ?? null;

/** Steps, calls and whatever else an agent counts. */
const MOST_STEPS = 1_000_000;
export const stepsOrNull = (value: unknown): number | null =>
  z.number().int().min(0).max(MOST_STEPS).safeParse(value).data ?? null;

/** Seconds since 1970, up to the year 2999. */
const LATEST_S = Date.UTC(2999) / 1000;
export const timestampOrNull = (value: unknown): number | null =>
  z.number().min(0).max(LATEST_S).safeParse(value).data ?? null;

/** No attempt takes longer than a year. */
const LONGEST_MS = 366 * 86_400_000;
export const durationOrNull = (ms: number): number | null => (ms >= 0 && ms <= LONGEST_MS ? ms : null);

/** Bounds that no setting comes near but by a slip of the hand. `{workers: 999999999}` ended with out of memory. */
export const MOST = {
  seconds: LONGEST_MS / 1000,
  milliseconds: LONGEST_MS,
  count: MOST_STEPS,
  /** Things that are made ready all at once. */
  atOnce: 10_000,
  repeats: 1_000,
  tokens: 1_000_000_000_000,
  dollars: 1_000_000,
  processors: 10_000,
  processes: 4_194_304,
  /** Characters that are held in memory as one text. */
  heldBytes: 2 ** 28,
  size: 2 ** 50,
} as const;

const amount =
  (most: number) =>
  (least = 0) =>
    z.number().min(least).max(most);
const whole = (most: number) => (least: number) => z.number().int().min(least).max(most);

const said = (read: () => number, most: number, end: string): string | undefined => {
  try {
    return read() > most ? `must be ${end} or less` : undefined;
  } catch (error) {
    return (error as Error).message;
  }
};

/** Numbers of settings by what they count, each with its end: no setting has a number of another kind (tests/config/ends.test.ts). */
export const setting = {
  seconds: amount(MOST.seconds),
  milliseconds: amount(MOST.milliseconds),
  dollars: amount(MOST.dollars),
  processors: amount(MOST.processors),
  count: whole(MOST.count),
  atOnce: whole(MOST.atOnce),
  repeats: whole(MOST.repeats),
  tokens: whole(MOST.tokens),
  processes: whole(MOST.processes),
  heldBytes: whole(MOST.heldBytes),
  seed: whole(Number.MAX_SAFE_INTEGER),
  /** 512m, 4g. */
  size: () =>
    z.string().check(({ value, issues }) => {
      const message = said(() => parseSize(value), MOST.size, '1024t');
      if (message) issues.push({ code: 'custom', input: value, message });
    }),
  /** 2h, or seconds. */
  duration: () =>
    z.union([z.string(), z.number().min(0)]).check(({ value, issues }) => {
      const message = said(() => parseDuration(value), MOST.seconds, '366d');
      if (message) issues.push({ code: 'custom', input: value, message });
    }),
} as const;

/** V8 cannot write JSON that is nested some thousand deep, SQLite cannot read more than 1,000; no reply has 20. */
const DEEPEST = 100;

/** The value itself, or a copy with null in place of everything that is nested too deeply. */
export function cutNesting(value: unknown): { readonly value: unknown; readonly notes: readonly string[] } {
  if (!isDeeper(value, DEEPEST)) return { value, notes: [] };
  return {
    value: cut(value, DEEPEST),
    notes: [`nested more than ${DEEPEST} deep: what lies below is left out`],
  };
}

const isParent = (value: unknown): value is object => typeof value === 'object' && value !== null;

const isDeeper = (value: unknown, levels: number): boolean =>
  isParent(value) && (levels === 0 || Object.values(value).some((child) => isDeeper(child, levels - 1)));

function cut(value: unknown, levels: number): unknown {
  if (!isParent(value)) return value;
  if (levels === 0) return null;
  if (Array.isArray(value)) return value.map((child) => cut(child, levels - 1));
  return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, cut(child, levels - 1)]));
}
