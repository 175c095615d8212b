/** The few special functions that intervals and tests need: normal, beta, Student t, binomial. Checked against scipy. */

/** Lanczos, g = 7, n = 9: relative error below 1e-13 for the arguments used here. */
const LANCZOS = [
  0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
  12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
];

export function logGamma(x: number): number {
  if (x < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * x)) - logGamma(1 - x);
  const t = x - 1 + 7.5;
  let sum = LANCZOS[0]!;
  for (let i = 1; i < LANCZOS.length; i++) sum += LANCZOS[i]! / (x - 1 + i);
  return 0.5 * Math.log(2 * Math.PI) + (x - 0.5) * Math.log(t) - t + Math.log(sum);
}

export const logChoose = (n: number, k: number): number =>
  logGamma(n + 1) - logGamma(k + 1) - logGamma(n - k + 1);

/** Regularised incomplete beta I_x(a, b), by Lentz's continued fraction. */
export function betaCdf(x: number, a: number, b: number): number {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  // The fraction converges fast only on this side of the mean.
  if (x > (a + 1) / (a + b + 2)) return 1 - betaCdf(1 - x, b, a);
  const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x));
  return (front * betaFraction(x, a, b)) / a;
}

function betaFraction(x: number, a: number, b: number): number {
  const tiny = 1e-300;
  const away = (v: number) => (Math.abs(v) < tiny ? tiny : v);
  let c = 1;
  let d = 1 / away(1 - ((a + b) * x) / (a + 1));
  let value = d;
  for (let m = 1; m < 1000; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away(1 + even * d);
    c = away(1 + even / c);
    value *= d * c;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away(1 + odd * d);
    c = away(1 + odd / c);
    const step = d * c;
    value *= step;
    if (Math.abs(step - 1) < 1e-15) break;
  }
  return value;
}

/** Quantile of a monotone distribution function on [low, high], by bisection to the last bit. */
function invert(cdf: (x: number) => number, p: number, low: number, high: number): number {
  let [a, b] = [low, high];
  for (let i = 0; i < 200 && b - a > Number.EPSILON * Math.max(Math.abs(a), Math.abs(b)); i++) {
    const middle = (a + b) / 2;
    if (cdf(middle) < p) a = middle;
    else b = middle;
  }
  return (a + b) / 2;
}

export const betaQuantile = (p: number, a: number, b: number): number =>
  p <= 0 ? 0 : p >= 1 ? 1 : invert((x) => betaCdf(x, a, b), p, 0, 1);

/** Two-sided p of a t statistic. */
export const studentP = (t: number, df: number): number => betaCdf(df / (df + t * t), df / 2, 0.5);

/** t with P(|T| > t) = alpha. */
export function studentCritical(alpha: number, df: number): number {
  const x = betaQuantile(alpha, df / 2, 0.5);
  return Math.sqrt((df * (1 - x)) / x);
}

/** Normal distribution function, from the regularised incomplete gamma function P(1/2, z²/2). */
export function normalCdf(z: number): number {
  const x = (z * z) / 2;
  const upper = x < 1.5 ? 1 - gammaSeries(0.5, x) : gammaFraction(0.5, x);
  return z > 0 ? 1 - upper / 2 : upper / 2;
}

/** Two-sided p of a chi-squared statistic with one degree of freedom. */
export const chiSquared1P = (statistic: number): number => upperGamma(0.5, statistic / 2);
export const chiSquaredP = (statistic: number, df: number): number => upperGamma(df / 2, statistic / 2);

const upperGamma = (a: number, x: number): number =>
  x <= 0 ? 1 : x < a + 1 ? 1 - gammaSeries(a, x) : gammaFraction(a, x);

function gammaSeries(a: number, x: number): number {
  if (x <= 0) return 0;
  let term = 1 / a;
  let sum = term;
  for (let n = 1; n < 1000 && Math.abs(term) > Math.abs(sum) * 1e-17; n++) {
    term *= x / (a + n);
    sum += term;
  }
  return sum * Math.exp(-x + a * Math.log(x) - logGamma(a));
}

function gammaFraction(a: number, x: number): number {
  let b = x + 1 - a;
  let c = 1e300;
  let d = 1 / b;
  let value = d;
  for (let i = 1; i < 1000; i++) {
    const an = -i * (i - a);
    b += 2;
    d = 1 / (an * d + b);
    c = b + an / c;
    value *= d * c;
    if (Math.abs(d * c - 1) < 1e-16) break;
  }
  return value * Math.exp(-x + a * Math.log(x) - logGamma(a));
}

export const normalQuantile = (p: number): number => invert(normalCdf, p, -40, 40);

/** P(X = k) for X ~ Bin(n, 1/2). */
export const halfBinomialPmf = (k: number, n: number): number => Math.exp(logChoose(n, k) - n * Math.LN2);

export function halfBinomialCdf(k: number, n: number): number {
  let sum = 0;
  for (let i = 0; i <= k; i++) sum += halfBinomialPmf(i, n);
  return Math.min(1, sum);
}
