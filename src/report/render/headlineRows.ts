/** The first facts of an arm: how many trials there are, how many count, how many of these are resolved, and how sure that is. */

import { compact } from '../../base/compact.ts';
import { percent } from '../../base/text/numbers.ts';
import type { ArmSummary } from '../measure/armSummary.ts';
import type { GoldScore } from '../measure/gold.ts';
import type { RewardSummary } from '../measure/rewardSummary.ts';
import { scoreText } from '../measure/score.ts';
import type { EpochEstimate } from '../statistics/epochs.ts';
import { type Fact, NAMES_SHOWN } from './document.ts';
import { plural, range, rate, reward } from './format.ts';

export function headlineRows(arm: ArmSummary): Fact[] {
  const rows: Fact[] = [
    [
      'planned',
      arm.epochs > 1
        ? `${plural(arm.planned, 'trial')} (${plural(arm.instances, 'instance')} x ${arm.epochs} epochs)`
        : plural(arm.planned, 'trial'),
    ],
    ['valid', `${arm.valid}, coverage ${rate(arm.coverage)}`],
  ];
  if (arm.leftOut !== undefined)
    rows.push(['left out', `${plural(arm.leftOut, 'task')} that cannot run here (--skip-unsupported)`]);
  if (!arm.graded) return [...rows, ['resolved', 'not graded']];
  if (arm.estimate) rows.push(...epochRows(arm, arm.estimate));
  else rows.push(['resolved', `${rate(arm.resolved)} of valid (Wilson 95 %)`]);
  if (arm.reward) rows.push(...rewardRows(arm.reward));
  if (arm.gold) rows.push(['gold', goldLine(arm.gold)]);
  for (const { label, ids, resolvedWithout, estimateWithout } of arm.doubted ?? [])
    rows.push([
      'without',
      `${plural(ids.length, 'instance')} ${label}: ${scoreText({ resolved: resolvedWithout, overInstances: estimateWithout })}`,
    ]);
  if (arm.bounds && arm.valid < arm.planned)
    rows.push([
      'bounds',
      `${percent(arm.bounds.worst)} if all ${arm.planned - arm.valid} missing failed, ${percent(arm.bounds.best)} if all resolved (n = ${arm.planned})`,
    ]);
  if (arm.resolvedStrict && arm.resolvedStrict.x !== arm.resolved.x)
    rows.push([
      'strict',
      `${scoreText({ resolved: arm.resolvedStrict, overInstances: arm.estimateStrict })} without what spoofing or changed tests may have won`,
    ]);
  if (arm.firstAttempt)
    rows.push([
      'first attempt',
      `${scoreText(arm.firstAttempt)} before ${plural(arm.firstAttempt.redone, 'result')} ${arm.firstAttempt.redone === 1 ? 'was' : 'were'} tried again: no pass@1`,
    ]);
  const flagged = arm.flagged.trials.length;
  if (flagged > 0)
    rows.push([
      'flagged',
      `${plural(flagged, 'attempt')}; without them ${scoreText({ resolved: arm.flagged.resolvedWithout, overInstances: arm.flagged.estimateWithout })}`,
    ]);
  return rows;
}

function rewardRows({ mean, interval, n, missingAsZero, named = [] }: RewardSummary): Fact[] {
  const rows: Fact[] = [
    [
      'reward',
      `${reward(mean)} [${reward(interval.low)}, ${reward(interval.high)}] mean of ${plural(n, 'instance')} (Wilson 95 %)`,
    ],
  ];
  if (missingAsZero)
    rows.push([
      '',
      `${reward(missingAsZero.mean)} with ${plural(missingAsZero.missing, 'missing trial')} as 0, as Harbor counts`,
    ]);
  for (const one of named.slice(0, NAMES_SHOWN))
    rows.push(['', `${one.name}: ${reward(one.mean)} mean of ${plural(one.n, 'instance')}`]);
  if (named.length > NAMES_SHOWN)
    rows.push(['', `and ${plural(named.length - NAMES_SHOWN, 'further name')}`]);
  return rows;
}

/** With epochs the mean over instances is the headline, and how much it may move stands beside it. */
function epochRows({ resolved }: ArmSummary, estimate: EpochEstimate): Fact[] {
  const { mean, n, interval, newInstances, sameInstances } = estimate;
  return [
    ['resolved', `${percent(mean)} ${range(interval)} mean of ${plural(n, 'instance')} (Wilson 95 %)`],
    [
      'trials',
      `${resolved.x} of ${resolved.n} valid trials resolved; trials of one instance are no independent sample`,
    ],
    [
      'noise',
      newInstances
        ? `new instances: SE ${(100 * newInstances.se).toFixed(1)} pp`
        : `new instances: unknown, ${n === 1 ? 'there is one' : 'all had the same result'}`,
    ],
    [
      '',
      sameInstances && sameInstances.withinVariance === 0
        ? `same instances again: unknown, none changed over its epochs (n = ${sameInstances.n})`
        : sameInstances
          ? `same instances again: SE ${(100 * sameInstances.se).toFixed(1)} pp, one epoch ${(100 * sameInstances.oneEpochSd).toFixed(1)} pp (n = ${sameInstances.n})`
          : 'same instances again: unknown, no instance has two valid epochs',
    ],
  ];
}

function goldLine(gold: GoldScore): string {
  const unknown = gold.unknown > 0 ? `; ${plural(gold.unknown, 'instance')} not calibrated` : '';
  const bad = compact([
    gold.fails.length > 0 && `fails ${gold.fails.length}`,
    gold.flaky.length > 0 && `is flaky on ${gold.flaky.length}`,
  ]);
  if (bad.length === 0) return `passes here on all ${gold.passes} that were calibrated${unknown}`;
  return `${bad.join(' and ')} of these instances on this machine; without them ${scoreText({ resolved: gold.resolvedWithout, overInstances: gold.estimateWithout })}${unknown}`;
}
