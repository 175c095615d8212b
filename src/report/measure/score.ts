/**
 * Resolved of valid, for any part of a run. With several epochs the trials of one instance are not an independent sample, so the score is over
 * instances.
 */

import { percent } from '../../base/text/numbers.ts';
import { COUNTED_CLASSES } from '../../outcome.ts';
import type { ReportTrial, ScoreRow } from '../../store/records/runData.ts';
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

export interface ScoredTrial<Trial = ReportTrial> extends Scored {
  readonly trial: Trial;
  readonly standing: Standing;
}

/** Trials of one arm: whether it was graded at all is seen from all of them. */
export function scoredTrials<Trial extends StandingFacts & Pick<ReportTrial, 'instanceId'>>(
  trials: readonly Trial[],
): ScoredTrial<Trial>[] {
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

export type StandingFacts = Pick<
  ReportTrial,
  'state' | 'exitClass' | 'exitReason' | 'notRunReason' | 'outcome' | 'resolved' | 'patchEmpty'
>;

/**
 * `graded` says whether the run was graded at all: then an empty patch is a failure by the official rule even when the grader, as the
 * official one, never ran it.
 */
export function standingOf(trial: StandingFacts, graded: boolean): Standing {
  const { exitClass } = trial;
  if (exitClass === null || trial.state !== 'sealed') return { valid: false, why: unfinished(trial) };
  if (!COUNTED_CLASSES.has(exitClass)) return { valid: false, why: unfinished(trial) };
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
      // The harness's verdict rules; without one there is no evidence either way.
      return trial.resolved === null
        ? { valid: false, why: 'ungradable' }
        : { valid: true, resolved: trial.resolved };
    default:
      return { valid: true, resolved: trial.resolved === true };
  }
}

function unfinished(trial: StandingFacts): Missing {
  if (trial.state === 'leased' || trial.state === 'running') return 'running';
  if (trial.exitClass === 'infra' || trial.exitClass === 'config' || trial.exitClass === 'cancelled')
    return trial.exitClass;
  return 'not_run';
}

/** The trial's work is done and paid for, and nobody knows yet whether it is resolved. */
export const awaitsVerdict = (standing: Standing): boolean =>
  !standing.valid && standing.why === 'not_graded';

export const isGraded = (trials: readonly Pick<ReportTrial, 'outcome'>[]): boolean =>
  trials.some((t) => t.outcome !== null);

/** Rules of both scans, of the attempt and of its grading. */
export const flagsOf = (trial: Pick<ReportTrial, 'suspicion' | 'gradeSuspicion'>): string[] => [
  ...new Set([...trial.suspicion, ...trial.gradeSuspicion].map((f) => f.rule)),
];

const MAIN = 'reward';

type Rewarded = ScoredTrial<Pick<ReportTrial, 'reward' | 'rewards'>>;

/** The reward of a valid trial. A trial without a number, such as one whose tests ran out of time, has what its verdict says. */
export const rewardOf = ({ trial, resolved }: Pick<Rewarded, 'trial' | 'resolved'>): number =>
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

/** Further rewards by name, over the instances that have them. Rewards may be counts of anything, so they have no interval. */
function namedMeans(groups: readonly (readonly Rewarded[])[]) {
  const found = new Map<string, number[]>();
  for (const group of groups)
    for (const [name, value] of namedRewards(group.map(({ trial }) => trial.rewards)))
      found.set(name, [...(found.get(name) ?? []), value]);
  return [...found].map(([name, values]) => ({ name, n: values.length, mean: mean(values) }));
}

/** The trial's verifier named rewards, and none of them is `reward`: Harbor's mean of that name has a 0 for it. */
const lacksMain = ({ trial: { rewards } }: Rewarded): boolean =>
  rewards !== undefined && !Object.hasOwn(rewards, MAIN);

/** Null where no trial has a reward. */
export function rewardSummary(rows: readonly Rewarded[]) {
  const valid = rows.filter((row) => row.valid);
  if (!valid.some(({ trial }) => trial.reward !== undefined)) return null;
  const groups = [...Map.groupBy(valid, (row) => row.instanceId).values()];
  const over = meanReward(
    groups.map((group) => mean(group.map(rewardOf))),
    valid.length,
  )!;
  const missing = rows.length - valid.length;
  const named = namedMeans(groups);
  // Where no trial has the name, Harbor has no mean of it.
  const unnamed = valid.every(lacksMain) ? 0 : valid.filter(lacksMain).length;
  const counted = valid.filter((row) => unnamed === 0 || !lacksMain(row));
  return {
    ...over,
    /** The mean over all planned trials with 0 for what is missing and for what has no `reward`, as Harbor counts; absent where that is nothing. */
    ...(missing + unnamed > 0 && {
      missingAsZero: {
        missing,
        ...(unnamed > 0 && { unnamed }),
        mean: sum(counted.map(rewardOf)) / rows.length,
      },
    }),
    ...(named.length > 0 && { named }),
  };
}

export type RewardSummary = NonNullable<ReturnType<typeof rewardSummary>>;

/** The classes as `classCounts` of the store: a trial that had its result and was asked for once more has not run yet. */
export const classesOf = (trials: readonly ScoreRow[]): Map<string, number> => {
  const classOf = ({ state, exitClass }: ScoreRow): string => {
    if (state === 'running' || state === 'leased') return 'running';
    return exitClass === null || (state === 'pending' && COUNTED_CLASSES.has(exitClass))
      ? 'not_run'
      : exitClass;
  };
  const found = [...Map.groupBy(trials, classOf)].map(([name, own]) => [name, own.length] as const);
  return new Map(found.sort(([a], [b]) => (a < b ? -1 : 1)));
};

/** The score of each arm of a run, as `report` says it, of the few columns that decide it. */
export function armScores(trials: readonly ScoreRow[]) {
  return [...Map.groupBy(trials, (trial) => trial.arm)].map(([arm, own]) => {
    const rows = scoredTrials(own);
    const epochs = new Set(own.map((trial) => trial.epoch)).size;
    const reward = rewardSummary(rows);
    return {
      arm,
      planned: own.length,
      sealed: own.filter((trial) => trial.state === 'sealed').length,
      valid: rows.filter((row) => row.valid).length,
      graded: isGraded(own),
      epochs,
      ...scoreOf(rows, epochs),
      /** Absent where the suite gives no rewards. */
      ...(reward && { reward }),
      flagged: own.filter((trial) => trial.flagged).length,
    };
  });
}

export type ArmScore = ReturnType<typeof armScores>[number];
