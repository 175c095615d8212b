/** The words of a verdict for a person. Files for programs and the record keep the words of `Verdict`. */

export interface GivenVerdict {
  /** regressed, flaky, improved, inconclusive */
  readonly verdict: string;
  readonly exitCode: number;
  /** Rules that failed. */
  readonly failed: readonly string[];
  /** The run it was judged against; null where there is no baseline. */
  readonly baseline: string | null;
  /** Broken instances that were not measured again. */
  readonly unconfirmed?: number;
}

/** "PASSED: no change shown" */
export function verdictWords(given: GivenVerdict): string {
  const { exitCode, failed } = given;
  if (exitCode === 3) return `INCOMPLETE: ${wordOf(given)}, and not all that broke could be measured again`;
  if (exitCode === 0) return `PASSED: ${wordOf(given)}`;
  // A night may fail by its cost or its losses alone.
  const by = given.verdict === 'regressed' ? '' : ` (${failed.join(', ')})`;
  return `FAILED: ${wordOf(given)}${by}`;
}

/** Only a night that was compared, and whose broken instances were measured again, has shown that it shows nothing. */
export const wordOf = ({
  verdict,
  baseline,
  unconfirmed = 0,
}: Pick<GivenVerdict, 'verdict' | 'baseline' | 'unconfirmed'>): string =>
  verdict === 'inconclusive' && baseline !== null && unconfirmed === 0 ? 'no change shown' : verdict;

/** "PASSED: no change shown (n2 against n1)" */
export const verdictHeading = (given: GivenVerdict, label: string): string =>
  `${verdictWords(given)} (${label} ${given.baseline === null ? 'without a baseline' : `against ${given.baseline}`})`;
