/** Bounds for numbers that somebody else wrote. A number beyond them is unknown: it would overflow sums and make means worthless. */
import { z } from 'zod';

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
