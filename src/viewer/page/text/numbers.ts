/** Numbers, times and words as the page writes them. */
import { formatCost } from '../../../money.ts';
import { wilson } from '../../../report/statistics/proportions.ts';
import type { RewardMean } from '../../../report/statistics/rewards.ts';
import type { MoneyDocument } from '../../documents/documents.ts';

export const DASH = '–';

/** 1,234. Not by Intl, whose data take a browser 25 ms to load. */
export function integer(n: number | null | undefined): string {
  if (n === null || n === undefined) return DASH;
  const digits = Math.abs(Math.round(n)).toFixed();
  const head = digits.length % 3 || 3;
  const groups = [digits.slice(0, head)];
  for (let at = head; at < digits.length; at += 3) groups.push(digits.slice(at, at + 3));
  return `${Math.round(n) < 0 ? '-' : ''}${groups.join(',')}`;
}

export function short(n: number | null | undefined): string {
  if (n === null || n === undefined) return DASH;
  if (n < 1000) return String(n);
  if (n < 1e6) return `${(n / 1e3).toFixed(n < 1e4 ? 1 : 0)}k`;
  return `${(n / 1e6).toFixed(n < 1e7 ? 2 : 1)}M`;
}

/** How long a text is, as people say it. */
export const size = (chars: number): string =>
  chars < 1000 ? `${chars} characters` : `${(chars / 1000).toFixed(chars < 10_000 ? 1 : 0)} kB`;

export function cost(money: Pick<MoneyDocument, 'costNano' | 'unknownCalls'>): string {
  const text = formatCost(money.costNano);
  return money.unknownCalls > 0 && money.costNano !== null ? `≥ ${text}` : text;
}

export const nano = (value: number | null | undefined): string =>
  value === null || value === undefined ? DASH : formatCost(value);

export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return DASH;
  // Clocks of two machines may disagree: a wait that began in the future has only just begun.
  const safe = Math.max(0, ms);
  if (safe < 1000) return `${Math.round(safe)} ms`;
  if (safe < 10_000) return `${(safe / 1000).toFixed(1)} s`;
  const s = Math.round(safe / 1000);
  if (s < 60) return `${s} s`;
  const m = Math.floor(s / 60);
  if (m < 60) return `${m} min ${s % 60} s`;
  const h = Math.floor(m / 60);
  return h < 48 ? `${h} h ${m % 60} min` : `${Math.floor(h / 24)} d ${h % 24} h`;
}

export const time = (iso: string | null | undefined): string =>
  iso ? `${iso.slice(0, 10)} ${iso.slice(11, 16)}` : DASH;

export const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;

/** A number between 0 and 1; other named rewards may be of any size. */
export const reward = (value: number): string =>
  Math.abs(value) < 1000 ? value.toFixed(3) : short(Math.round(value));

export const rewardRange = (of: RewardMean | undefined): string =>
  of ? `${reward(of.mean)} [${reward(of.interval.low)}, ${reward(of.interval.high)}]` : DASH;

const NAMES_SHOWN = 20;

/** All that a verifier wrote: "reward 0.500, found 3.000". */
export function rewardNames(rewards: readonly (readonly [string, number])[] = []): string {
  const shown = rewards.slice(0, NAMES_SHOWN).map(([name, value]) => `${name.slice(0, 80)} ${reward(value)}`);
  const more = rewards.length - shown.length;
  return [...shown, ...(more > 0 ? [`and ${more} more`] : [])].join(', ');
}

/** A proportion is never written without its n and its interval. */
export function rate(x: number, n: number): string {
  if (n === 0) return DASH;
  const { low, high } = wilson(x, n);
  return `${percent(x / n)} [${(low * 100).toFixed(1)}, ${(high * 100).toFixed(1)}]`;
}

export const words = (name: string): string => name.replaceAll('_', ' ');

export const tokens = (money: MoneyDocument): number =>
  money.inputTokens + money.cacheReadTokens + money.cacheWriteTokens + money.outputTokens;

/** "1.2M, 83.0 % from a cache": the share of all that was sent. */
export function tokensText(money: MoneyDocument): string {
  const all = short(tokens(money));
  const sent = money.inputTokens + money.cacheReadTokens + money.cacheWriteTokens;
  return money.cacheReadTokens > 0 ? `${all}, ${percent(money.cacheReadTokens / sent)} from a cache` : all;
}
