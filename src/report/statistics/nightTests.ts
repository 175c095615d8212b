/**
 * The tests of a night share one error rate: of the nights on which nothing changed, at most that share fails any of them (the sum of
 * their shares, by Bonferroni). `docs/statistics.md` shows the simulated rates.
 */
import { halfBinomialCdf, normalCdf } from './special.ts';

/** How many of the nights on which nothing changed may fail. */
export const NIGHT_ERROR = 0.05;

/** The paired test is two-sided at `error` and fails a night only for a loss, which is half of it. */
export const confirmedError = (error: number): number => error / 4;
export const rocksError = (error: number): number => error / 4;

/** P(at least `lost` of all), where every one is as likely lost as won. */
export const lossP = (lost: number, won: number): number => halfBinomialCdf(won, lost + won);

/** How many losses without a win it takes to be below `error`. */
export const fewestLosses = (error: number): number => Math.ceil(-Math.log2(error));

/**
 * How many results in a row, all resolved, make an instance a rock among `n`. An instance of chance p looks like a rock that broke with
 * p^h (1 - p)^f, for `failures` f. The largest of these values over p, once for each instance, must stay below `error`: so it holds for any n
 * instances. With more failures fewer results suffice.
 */
export function resultsOfARock(n: number, failures: number, error: number): number {
  const chance = (h: number): number => {
    const all = h + failures;
    return Math.log(n) + h * Math.log(h / all) + failures * Math.log(failures / all);
  };
  const limit = Math.log(error);
  let high = 1;
  while (chance(high) > limit) high *= 2;
  let low = Math.floor(high / 2);
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (chance(middle) > limit) low = middle;
    else high = middle;
  }
  return high;
}

/** How often chance alone lets more than `limit` of n fall, when `differing` instances differ and each is as likely to have fallen as risen. */
export function chanceOfFall(differing: number, n: number, limit: number): number {
  // Shares are quotients: one that is exactly at the limit may end a bit beside it.
  const needed = Math.floor((differing + limit * n) / 2 + 1e-9) + 1;
  return needed > differing ? 0 : halfBinomialCdf(differing - needed, differing);
}

/** The same for means over epochs, from the mean and the standard error of their differences. */
export function chanceOfFallOfMeans(mean: number, se: number, n: number, limit: number): number {
  const spread = Math.sqrt((se ** 2 * n * (n - 1) + n * mean ** 2) / n ** 2);
  return spread === 0 ? 0 : 1 - normalCdf(limit / spread);
}
