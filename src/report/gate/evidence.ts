/**
 * What measuring again says. An instance that is resolved by chance breaks as often as it gets fixed, and fails all the same afterwards. So
 * what broke is held against what got fixed, and both are measured again.
 */
import type { Comparison } from '../compare/compareSides.ts';
import {
  chanceOfFall,
  chanceOfFallOfMeans,
  confirmedError,
  fewestLosses,
  lossP,
  NIGHT_ERROR,
  resultsOfARock,
  rocksError,
} from '../statistics/nightTests.ts';

/** Instance to the results of measuring it again; an instance without an entry was not. */
export type Remeasured = ReadonlyMap<string, readonly boolean[]>;

/** Of what broke and of what got fixed: the instances that failed every time again. */
export interface Confirmation {
  readonly broken: readonly string[];
  /** An instance that could not be measured again stands here too, so that an outage never makes a night look worse. */
  readonly fixed: readonly string[];
  /** One-sided: as many or more of them on the side of the broken, if nothing changed. */
  readonly p: number;
}

/** What has to be measured again before the verdict: what got fixed only where so much broke that the confirmed test could find a loss. */
export function toMeasureAgain(c: Comparison, alpha = NIGHT_ERROR): string[] {
  return enoughBroke(c, alpha) ? [...c.broken, ...c.fixed] : [...c.broken];
}

/** With unequal epochs chance alone breaks and fixes unequally often, and the confirmed test has no footing. */
const enoughBroke = (c: Comparison, alpha: number): boolean =>
  c.a.epochs === c.b.epochs && c.broken.length >= fewestLosses(confirmedError(alpha));

export function confirmationOf(
  c: Comparison,
  remeasured: Remeasured,
  alpha = NIGHT_ERROR,
): Confirmation | null {
  if (!enoughBroke(c, alpha)) return null;
  const resultsOf = (id: string) => remeasured.get(id) ?? [];
  const counts = [...c.broken, ...c.fixed].map((id) => resultsOf(id).length).filter((k) => k > 0);
  if (counts.length === 0) return null;
  // As many for each: who is measured more often has more occasions to recover.
  const common = Math.min(...counts);
  const failsAgain = (id: string) => !resultsOf(id).slice(0, common).some(Boolean);
  const broken = c.broken.filter((id) => resultsOf(id).length > 0 && failsAgain(id));
  const fixed = c.fixed.filter(failsAgain);
  return { broken, fixed, p: lossP(broken.length, fixed.length) };
}

/** Measured again, without a success. */
export const failedAgain = (id: string, remeasured: Remeasured): boolean => {
  const results = remeasured.get(id) ?? [];
  return results.length > 0 && !results.some(Boolean);
};

/** The drop without the instances that recovered, and without those that got fixed and failed again. Null where nothing was measured again. */
export function confirmedDropOf(c: Comparison, drop: number | null, remeasured: Remeasured): number | null {
  if (drop === null || ![...c.broken, ...c.fixed].some((id) => remeasured.has(id))) return null;
  const recovered = c.broken.filter((id) => remeasured.get(id)?.some(Boolean)).length;
  const kept = c.fixed.filter((id) => !failedAgain(id, remeasured)).length;
  return drop - (recovered - kept) / c.matched;
}

/** Confirmed broken instances that were rocks. `streaks`: how many of its newest results up to the reference's were all resolved. */
export const rocksOf = (
  c: Comparison,
  remeasured: Remeasured,
  streaks: ReadonlyMap<string, number>,
  alpha = NIGHT_ERROR,
): string[] =>
  c.broken.filter((id) => {
    const failures = c.b.epochs + (remeasured.get(id)?.length ?? 0);
    return (
      failedAgain(id, remeasured) && (streaks.get(id) ?? 0) >= rockLength(c, failures - c.b.epochs, alpha)
    );
  });

/** Results in a row that make a rock tonight, when it fails in all epochs and in `again` further measurements. */
export const rockLength = (c: Comparison, again: number, alpha = NIGHT_ERROR): number =>
  resultsOfARock(c.matched, c.b.epochs + again, rocksError(alpha));

/** How often a night like this one, on which nothing changed, drops by more than `limit`. */
export function chanceOfDrop(c: Comparison, limit: number): number | null {
  if (c.matched === 0) return null;
  if (c.discordance !== null) return chanceOfFall(c.fixed.length + c.broken.length, c.matched, limit);
  const { t } = c.reference;
  return t && chanceOfFallOfMeans(t.mean, t.se, t.n, limit);
}
