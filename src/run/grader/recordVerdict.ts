/** Records a verdict, then emits its event. */
import { gzipSync } from 'node:zlib';
import type { Redactor } from '../../base/text/redact.ts';
import { type GradeSuspicion, LOG_HOLDS_SECRET } from '../../grading/doubts/doubts.ts';
import type { Outcome } from '../../outcome.ts';
import type { Store } from '../../store/open.ts';
import { type Gradable, insertEvaluation } from '../../store/records/evaluations.ts';
import type { RunRow } from '../../store/records/runs.ts';
import type { RunEvents } from '../events.ts';
import type { Verdict } from './gradeTrial.ts';

export interface VerdictPorts {
  readonly store: Store;
  readonly run: RunRow;
  readonly redactor: Redactor;
  readonly events: RunEvents;
}

/** It lies in a file that only its owner can read. */
const secretFlags = (redactor: Redactor, log: string | null): GradeSuspicion[] =>
  log !== null && redactor.contains(log) ? [LOG_HOLDS_SECRET] : [];

const bit = (value: boolean | null): number | null => (value === null ? null : value ? 1 : 0);

const UNDECIDED: ReadonlySet<Outcome> = new Set<Outcome>(['infra', 'ungradable', 'timeout']);

export function recordVerdict(
  { store, run, redactor, events }: VerdictPorts,
  g: Gradable,
  { label, result }: Verdict,
): void {
  const message = result.errorMessage === null ? null : redactor.text(result.errorMessage);
  insertEvaluation(store, {
    run_id: run.id,
    trial_id: g.trial_id,
    attempt_id: g.attempt_id,
    instance_id: label.instanceId,
    model: g.model,
    patch_sha256: g.patch_sha256,
    spec_hash: result.specHash,
    dialect: result.dialect,
    outcome: result.outcome,
    resolved: bit(result.resolved),
    resolved_strict: bit(result.resolvedStrict),
    reward: result.reward ?? null,
    rewards: result.rewards === undefined ? null : JSON.stringify(result.rewards),
    // Both are evidence, so neither is changed: the report has only names of the dataset, and a log with a secret is flagged.
    report: result.report === null ? null : JSON.stringify(result.report),
    log: result.log === null ? null : gzipSync(result.log),
    apply_method: result.applyMethod,
    exit_code: result.exitCode,
    infra_reason: result.infraReason,
    suspicion: redactor.json(JSON.stringify([...result.suspicion, ...secretFlags(redactor, result.log)])),
    error_message: message,
    network: result.network,
    limits: result.limits === null ? null : JSON.stringify(result.limits),
    image_digest: result.imageDigest,
    source: 'native',
    started_at: result.startedAt.toISOString(),
    duration_ms: result.durationMs,
  });
  events.emit({
    type: 'graded',
    trial: label,
    outcome: result.outcome,
    resolved: result.resolved,
    durationMs: result.durationMs,
    ...(message !== null && UNDECIDED.has(result.outcome) && { message }),
  });
}
