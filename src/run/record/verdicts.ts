/** Verdicts as the record has them, and as files of the harness. */
import { gzipSync } from 'node:zlib';
import { pathInside } from '../../base/files/pathInside.ts';
import type { Redactor } from '../../base/text/redact.ts';
import { instanceFolder, writeInstanceLogs } from '../../formats/harness/logFolders.ts';
import { LOG_HOLDS_SECRET } from '../../grading/doubts/doubts.ts';
import type { EvaluationResult } from '../../grading/gradingFrame.ts';
import type { Outcome } from '../../outcome.ts';
import type { Store } from '../../store/open.ts';
import { type Gradable, insertEvaluation } from '../../store/records/evaluations.ts';
import type { RunRow } from '../../store/records/runs.ts';
import type { RunEvents, TrialLabel } from '../events.ts';
import { partFolder } from './partFolder.ts';

/** The run that a verdict is of. */
interface JudgedRun {
  readonly store: Store;
  readonly row: RunRow;
  readonly dir: string;
  readonly redactor: Redactor;
  readonly events: RunEvents;
}

const bit = (value: boolean | null): number | null => (value === null ? null : value ? 1 : 0);

const UNDECIDED: ReadonlySet<Outcome> = new Set<Outcome>(['infra', 'ungradable', 'timeout']);

const messageOf = ({ errorMessage }: EvaluationResult, redactor: Redactor): string | null =>
  errorMessage === null ? null : redactor.text(errorMessage);

export function writeVerdict(
  { store, row, redactor }: Pick<JudgedRun, 'store' | 'row' | 'redactor'>,
  g: Pick<Gradable, 'trial_id' | 'attempt_id' | 'model' | 'patch_sha256'>,
  result: EvaluationResult,
): void {
  // The log lies in a file that only its owner can read.
  const flags = result.log !== null && redactor.contains(result.log) ? [LOG_HOLDS_SECRET] : [];
  insertEvaluation(store, {
    run_id: row.id,
    trial_id: g.trial_id,
    attempt_id: g.attempt_id,
    instance_id: result.instanceId,
    model: g.model,
    patch_sha256: g.patch_sha256,
    spec_hash: result.specHash,
    harness: result.harness,
    outcome: result.outcome,
    resolved: bit(result.resolved),
    resolved_strict: bit(result.resolvedStrict),
    reward: result.reward ?? null,
    // Names of rewards are the verifier's own words, and may hold a secret.
    rewards: result.rewards === undefined ? null : redactor.json(JSON.stringify(result.rewards)),
    // Both are evidence, so neither is changed: the report has only names of the dataset, and a log with a secret is flagged.
    report: result.report === null ? null : JSON.stringify(result.report),
    log: result.log === null ? null : gzipSync(result.log),
    apply_method: result.applyMethod,
    exit_code: result.exitCode,
    infra_reason: result.infraReason,
    suspicion: redactor.json(JSON.stringify([...result.suspicion, ...flags])),
    error_message: messageOf(result, redactor),
    network: result.network,
    limits: result.limits === null ? null : JSON.stringify(result.limits),
    image_digest: result.imageDigest,
    source: 'native',
    started_at: result.startedAt.toISOString(),
    duration_ms: result.durationMs,
  });
}

export function tellVerdict(
  { redactor, events }: Pick<JudgedRun, 'redactor' | 'events'>,
  label: TrialLabel,
  result: EvaluationResult,
): void {
  const message = messageOf(result, redactor);
  events.emit({
    type: 'graded',
    trial: label,
    outcome: result.outcome,
    resolved: result.resolved,
    durationMs: result.durationMs,
    ...(message !== null && UNDECIDED.has(result.outcome) && { message }),
  });
}

/** The harness's folder for one graded prediction: logs/run_evaluation/<run>/<model>/<id>/. */
export async function writeGradedFiles(
  { store, row, dir, redactor }: Pick<JudgedRun, 'store' | 'row' | 'dir' | 'redactor'>,
  { model, model_patch }: Pick<Gradable, 'model' | 'model_patch'>,
  { arm, epoch }: Pick<TrialLabel, 'arm' | 'epoch'>,
  result: EvaluationResult,
): Promise<void> {
  // The harness leaves no folder for a prediction that it never ran.
  if (result.outcome === 'empty_patch' || result.outcome === 'ungradable') return;
  const part = pathInside(dir, partFolder(store, row, arm, epoch));
  const runLog = result.runLog.map((line) => ({ ...line, message: redactor.text(line.message) }));
  const secret = result.log !== null && redactor.contains(result.log);
  const folder = instanceFolder(part, row.name, model, result.instanceId);
  await writeInstanceLogs(folder, { ...result, runLog }, model_patch, secret);
}
