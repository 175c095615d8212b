/** Resolved of valid, for any part of a run. With several epochs the trials of one instance are not an independent sample, so the score is over instances. */

import { percent } from '../../base/text/numbers.ts';
import { SEALED_CLASSES } from '../../outcome.ts';
import type { ReportTrial } from '../../store/records/reportQueries.ts';
import { range, rate } from '../render/document.ts';
import { type EpochEstimate, epochEstimate } from '../statistics/epochs.ts';
import { mean, sum } from '../statistics/means.ts';
import { type Proportion, proportion } from '../statistics/proportions.ts';
import { meanReward } from '../statistics/rewards.ts';

interface Score {
  /** Over trials. */
  readonly resolved: Proportion;
  /** Over instances; null for a single epoch, and where nothing is valid. */
  readonly overInstances: EpochEstimate | null;
}

export interface Scored {
  readonly instanceId: string;
  readonly valid: boolean;
  readonly resolved: boolean;
}

export interface ScoredTrial extends Scored {
  readonly trial: ReportTrial;
  readonly standing: Standing;
}

/** Trials of one arm: whether it was graded at all is seen from all of them. */
export function scoredTrials(trials: readonly ReportTrial[]): ScoredTrial[] {
  const graded = isGraded(trials);
  return trials.map((trial) => {
    const standing = standingOf(trial, graded);
    const { valid } = standing;
    return { trial, instanceId: trial.instanceId, standing, valid, resolved: valid && standing.resolved };
  });
}

export function scoreOf(rows: readonly Scored[], epochs: number): Score {
  const valid = rows.filter((r) => r.valid);
  return {
    resolved: proportion(valid.filter((r) => r.resolved).length, valid.length),
    overInstances:
      epochs > 1
        ? epochEstimate(
            [...Map.groupBy(valid, (r) => r.instanceId).values()].map((group) =>
              group.map((r) => (r.resolved ? 1 : 0)),
            ),
          )
        : null,
  };
}

/** "9/12 = 75.0 % [46.8, 91.1]", or with epochs "75.0 % [46.8, 91.1] (n = 12)". */
export const scoreText = ({ resolved, overInstances: over }: Score): string =>
  over ? `${percent(over.mean)} ${range(over.interval)} (n = ${over.n})` : rate(resolved);

export type Missing =
  | 'infra'
  | 'config'
  | 'cancelled'
  | 'not_run'
  | 'running'
  | 'not_graded'
  | 'grading_infra'
  | 'ungradable';

export type Standing =
  | { readonly valid: true; readonly resolved: boolean }
  | { readonly valid: false; readonly why: Missing };

type Facts = Pick<
  ReportTrial,
  'state' | 'exitClass' | 'exitReason' | 'notRunReason' | 'outcome' | 'resolved' | 'patchEmpty'
>;

/**
 * `graded` says whether the run was graded at all: then an empty patch is a failure by the official rule even when the grader, as the
 * official one, never ran it.
 */
export function standingOf(trial: Facts, graded: boolean): Standing {
  const { exitClass } = trial;
  if (exitClass === null || trial.state !== 'sealed') return { valid: false, why: unfinished(trial) };
  if (!SEALED_CLASSES.has(exitClass)) return { valid: false, why: unfinished(trial) };
  switch (trial.outcome) {
    case 'infra':
      return { valid: false, why: 'grading_infra' };
    case 'ungradable':
      return { valid: false, why: 'ungradable' };
    case null:
      return graded && trial.patchEmpty
        ? { valid: true, resolved: false }
        : { valid: false, why: 'not_graded' };
    case 'invalid':
      // The dialect's verdict rules; without one there is no evidence either way.
      return trial.resolved === null
        ? { valid: false, why: 'ungradable' }
        : { valid: true, resolved: trial.resolved };
    default:
      return { valid: true, resolved: trial.resolved === true };
  }
}

function unfinished(trial: Facts): Missing {
  if (trial.state === 'leased' || trial.state === 'running') return 'running';
  if (trial.exitClass === 'infra' || trial.exitClass === 'config' || trial.exitClass === 'cancelled')
    return trial.exitClass;
  return 'not_run';
}

/** Its work is done and paid for, and nobody knows yet whether it is resolved. */
export const awaitsVerdict = (standing: Standing): boolean =>
  !standing.valid && standing.why === 'not_graded';

export const isGraded = (trials: readonly Pick<ReportTrial, 'outcome'>[]): boolean =>
  trials.some((t) => t.outcome !== null);

/** Rules of both scans, of the attempt and of its grading. */
export const flagsOf = (trial: Pick<ReportTrial, 'suspicion' | 'gradeSuspicion'>): string[] => [
  ...new Set([...trial.suspicion, ...trial.gradeSuspicion].map((f) => f.rule)),
];

/** The one that is `reward` itself. */
const MAIN = 'reward';

/** Of a valid trial. One without a number, such as one whose tests ran out of time, has what its verdict says. */
export const rewardOf = ({ trial, resolved }: Pick<ScoredTrial, 'trial' | 'resolved'>): number =>
  trial.reward ?? (resolved ? 1 : 0);

/** Means by name, over those results that have the name. */
export function namedRewards(
  results: readonly (Readonly<Record<string, number>> | undefined)[],
): Map<string, number> {
  const known = results.filter((rewards) => rewards !== undefined);
  const names = new Set(known.flatMap(Object.keys));
  names.delete(MAIN);
  return new Map(
    [...names].map((name) => [
      name,
      mean(known.flatMap((rewards) => (Object.hasOwn(rewards, name) ? [rewards[name]!] : []))),
    ]),
  );
}

/** Further rewards by name, over the instances that have them. They may be counts of anything, so they have no interval. */
function namedMeans(groups: readonly (readonly ScoredTrial[])[]) {
  const found = new Map<string, number[]>();
  for (const group of groups)
    for (const [name, value] of namedRewards(group.map(({ trial }) => trial.rewards)))
      found.set(name, [...(found.get(name) ?? []), value]);
  return [...found].map(([name, values]) => ({ name, n: values.length, mean: mean(values) }));
}

/** Null where no trial has a reward. */
export function rewardSummary(rows: readonly ScoredTrial[]) {
  const valid = rows.filter((row) => row.valid);
  if (!valid.some(({ trial }) => trial.reward !== undefined)) return null;
  const groups = [...Map.groupBy(valid, (row) => row.instanceId).values()];
  const over = meanReward(
    groups.map((group) => mean(group.map(rewardOf))),
    valid.length,
  )!;
  const missing = rows.length - valid.length;
  const named = namedMeans(groups);
  return {
    ...over,
    /** The mean over all planned trials with 0 for what is missing, as Harbor counts; absent where nothing is missing. */
    ...(missing > 0 && {
      missingAsZero: { missing, mean: sum(valid.map(rewardOf)) / rows.length },
    }),
    ...(named.length > 0 && { named }),
  };
}

export type RewardSummary = NonNullable<ReturnType<typeof rewardSummary>>;
