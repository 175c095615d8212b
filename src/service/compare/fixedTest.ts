import type { McNemarTest } from '../../report/statistics/paired.ts';
import type { NamedSide } from './sides.ts';

/** Fixed before the run, because the choice can flip a verdict. */
export function fixedTest({ from }: NamedSide): McNemarTest | null {
  const statistics = from?.data.run.manifest.statistics;
  if (typeof statistics?.paired_test !== 'string') return null;
  return statistics.paired_test === 'mcnemar-mid-p' ? 'mid-p' : 'exact';
}
