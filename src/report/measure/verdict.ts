/**
 * Which trials count. Valid: sealed, a statement about the model, and graded with a verdict. Everything else is missing, with a reason,
 * and never counted as a failure.
 */
import { SEALED_CLASSES } from '../../outcome.ts';
import type { ReportTrial } from '../../store/records/reportQueries.ts';

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
