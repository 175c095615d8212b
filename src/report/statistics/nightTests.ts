/**
 * The tests of a night share one error rate: of the nights on which nothing changed, at most that share fails any of them (the sum of
 * their shares, by Bonferroni). `docs/appendix/simulations.md` shows the simulated rates.
 */
import { halfBinomialCdf, logChoose, normalCdf } from './special.ts';

/** How many of the nights on which nothing changed may fail. */
export const NIGHT_ERROR = 0.05;

/**
 * The paired test is two-sided at `error` and fails a night only for a loss, which is half of it. The rest, a fiftieth, is a night's share of
 * the error of the record, which is one for sixty nights (`alongRecord.ts`).
 */
export const confirmedError = (error: number): number => (9 / 50) * error;
export const rocksError = (error: number): number => error / 4;
export const infraError = (error: number): number => error / 20;

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
  const tooOften = (h: number): boolean => n * rockChance(h, failures) > error;
  let high = 1;
  while (tooOften(high)) high *= 2;
  let low = Math.floor(high / 2);
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (tooOften(middle)) low = middle;
    else high = middle;
  }
  return high;
}

/** The largest p^h (1 - p)^f. */
export const rockChance = (h: number, failures: number): number =>
  (h / (h + failures)) ** h * (failures / (h + failures)) ** failures;

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

/** Fisher's exact test, one-sided: so many or more of the `lost` among the `marked` ones of n, where any were as likely to be lost. */
export function fisherP(found: number, marked: number, lost: number, n: number): number {
  let p = 0;
  for (let k = found; k <= Math.min(marked, lost); k++)
    if (lost - k <= n - marked)
      p += Math.exp(logChoose(marked, k) + logChoose(n - marked, lost - k) - logChoose(n, lost));
  return Math.min(1, p);
}
