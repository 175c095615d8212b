// A run in a real database, written through the store's own functions; tests say what happened to each trial.
import { COUNTED_CLASSES, type ExitReason, exitClassOf, type Outcome } from '../../src/outcome.ts';
import { openStore, type Store } from '../../src/store/open.ts';
import { insertCommand, insertMessage } from '../../src/store/records/attemptBodies.ts';
import { insertEvaluation } from '../../src/store/records/evaluations.ts';
import { beginCall, endCall } from '../../src/store/records/modelCalls.ts';
import { insertRun, setRunStatus } from '../../src/store/records/runs.ts';
import {
  beginAttempt,
  endAttempt,
  leaseTrial,
  reopenTrials,
  trialsOf,
} from '../../src/store/records/trials.ts';

export interface Happened {
  /** As the provider sent it. */
  readonly usage?: object;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
  readonly reason?: ExitReason;
  readonly detail?: string;
  readonly patch?: string;
  readonly outcome?: Outcome;
  readonly resolved?: boolean | null;
  readonly strict?: boolean;
  readonly reward?: number;
  readonly rewards?: Readonly<Record<string, number>>;
  readonly cost?: number | null;
  readonly steps?: number;
  readonly elapsedMs?: number;
  readonly suspicion?: { rule: string }[];
  readonly exitStatus?: string;
  readonly messages?: Record<string, unknown>[];
  readonly commands?: { messageSeq: number | null; command: string; output: string; omitted?: number }[];
}

export interface PlannedRun {
  readonly name?: string;
  readonly ids: readonly string[];
  readonly arms?: readonly string[];
  readonly epochs?: number;
  readonly config?: object;
  readonly armConfig?: object;
  readonly manifest?: object;
  readonly emitEmpty?: boolean;
  readonly datasetRevision?: string;
  readonly weightOf?: (id: string) => number;
  readonly rowHashOf?: (id: string) => string;
  readonly source?: string;
  /** What each attempt of a trial came to, in order; no entry: nothing happened yet. */
  readonly happened: (id: string, arm: string, epoch: number) => readonly Happened[];
}

export const openMemory = (): Store => openStore(':memory:');

const sha = (text: string): string => `sha-${text.length}-${text.slice(0, 20)}`;

/** In one transaction: a night of the tests is sixty trials. */
export const recordRun = (db: Store, planned: PlannedRun): number =>
  db.inTransaction ? recordRows(db, planned) : db.transaction(() => recordRows(db, planned))();

function recordRows(db: Store, planned: PlannedRun): number {
  const arms = planned.arms ?? ['default'];
  const run = insertRun(db, {
    run: {
      name: planned.name ?? 'r1',
      created_at: '2026-11-21T00:00:00.000Z',
      config: JSON.stringify(planned.config ?? {}),
      config_hash: 'c0ffee',
      manifest: JSON.stringify(planned.manifest ?? {}),
      dataset_source: planned.source ?? 'datasets/demo/demo.jsonl',
      dataset_revision: planned.datasetRevision ?? null,
      dataset_hash: 'abcdef0123456789',
      budget_nano: null,
      emit_empty: planned.emitEmpty ? 1 : 0,
      imported: 0,
    },
    arms: arms.map((name) => ({
      name,
      model: `vendor/${name}`,
      config: JSON.stringify(planned.armConfig ?? {}),
    })),
    instances: planned.ids.map((id) => ({
      instance_id: id,
      repo: id.split('-')[0]!.replace('__', '/'),
      difficulty: id.endsWith('1') ? 'easy' : 'hard',
      image: 'image',
      row_hash: planned.rowHashOf?.(id) ?? 'h',
      row: '{}',
      weight: planned.weightOf?.(id) ?? 1,
    })),
    epochs: planned.epochs ?? 1,
  });
  const names = new Map(
    (db.prepare('SELECT id, instance_id FROM instances').all() as { id: number; instance_id: string }[]).map(
      (r) => [r.id, r.instance_id],
    ),
  );
  const armNames = new Map(
    (db.prepare('SELECT id, name FROM arms').all() as { id: number; name: string }[]).map((r) => [
      r.id,
      r.name,
    ]),
  );
  for (const trial of trialsOf(db, run.id)) {
    const id = names.get(trial.instance_pk)!;
    const arm = armNames.get(trial.arm_id)!;
    for (const [i, one] of planned.happened(id, arm, trial.epoch).entries()) {
      // As `--redo-existing` does; nothing for what is pending.
      if (i > 0) reopenTrials(db, [trial.id]);
      recordAttempt(db, run.id, trial.id, id, `vendor/${arm}`, planned.armConfig ?? {}, one);
    }
  }
  setRunStatus(db, run.id, 'complete', '2026-11-21T01:00:00.000Z');
  return run.id;
}

function recordAttempt(
  db: Store,
  runId: number,
  trialId: number,
  instanceId: string,
  model: string,
  config: object,
  one: Happened,
): void {
  leaseTrial(db, trialId, 'test', 0);
  const attempt = beginAttempt(db, trialId, {
    startedAt: '2026-11-21T00:00:01.000Z',
    slot: 0,
    config: JSON.stringify(config),
  });
  recordStep(db, attempt.id, model, one);
  const patch = recordEnd(db, attempt.id, instanceId, one);
  if (one.outcome)
    recordVerdict(db, { runId, trialId, attemptId: attempt.id, instanceId, model, patch }, one, one.outcome);
}

function recordStep(db: Store, attemptId: number, model: string, one: Happened): void {
  const call = beginCall(db, {
    attempt_id: attemptId,
    step: 1,
    try: 0,
    started_at: '2026-11-21T00:00:01.000Z',
    model_asked: model,
    estimate_nano: null,
  });
  endCall(db, call, {
    state: 'ok',
    latency_ms: 10,
    status_code: 200,
    error_code: null,
    error_message: null,
    model_answered: `${model}-2026-01-15`,
    response_id: null,
    fingerprint: null,
    finish_reason: 'stop',
    usage: JSON.stringify(one.usage ?? {}),
    input_tokens: 100,
    cache_read_tokens: one.cacheRead ?? 300,
    cache_write_tokens: one.cacheWrite ?? 0,
    output_tokens: 50,
    reasoning_tokens: 20,
    price_version: 'v1',
    cost_nano: one.cost === undefined ? 1_000_000_000 : one.cost,
    provider_cost_nano: null,
    request_bytes: 10,
    notes: '[]',
    unreadable: null,
  });
  for (const [seq, message] of (one.messages ?? []).entries())
    insertMessage(db, {
      attempt_id: attemptId,
      seq,
      role: String(message.role),
      content: String(message.content),
      data: JSON.stringify(message),
      created_at: '2026-11-21T00:00:02.000Z',
    });
  for (const [idx, command] of (one.commands ?? []).entries())
    insertCommand(db, {
      attempt_id: attemptId,
      step: 1,
      idx,
      message_seq: command.messageSeq,
      command: command.command,
      output: Buffer.from(command.output),
      exit_code: 0,
      timed_out: 0,
      total_bytes: command.output.length + (command.omitted ?? 0),
      omitted_bytes: command.omitted ?? 0,
      replaced_bytes: 0,
      oom_killed: 0,
      transport: 'local',
      started_at: '2026-11-21T00:00:02.000Z',
      duration_ms: 5,
    });
}

/** Ends and seals the attempt; its patch. */
function recordEnd(db: Store, attemptId: number, instanceId: string, one: Happened): string {
  const reason = one.reason ?? 'submitted';
  const cls = exitClassOf(reason);
  const patch = one.patch ?? (cls === 'agent' ? `diff for ${instanceId}\n` : '');
  endAttempt(
    db,
    attemptId,
    {
      ended_at: '2026-11-21T00:00:10.000Z',
      exit_reason: reason,
      exit_detail: one.detail ?? null,
      exit_status: one.exitStatus ?? (reason === 'submitted' ? 'Submitted' : 'LimitsExceeded'),
      error_message: null,
      error_evidence: null,
      submission: reason === 'submitted' ? Buffer.from(patch) : null,
      captured_patch: null,
      patch_source: reason === 'submitted' ? 'submitted' : 'none',
      patch_state: patch === '' ? 'empty' : 'ok',
      model_patch: patch,
      patch_sha256: sha(patch),
      steps: one.steps ?? 5,
      oom_kills: 0,
      elapsed_ms: one.elapsedMs ?? 9000,
      working_ms: one.elapsedMs ?? 8000,
      suspicion: JSON.stringify(one.suspicion ?? []),
      notes: '[]',
    },
    COUNTED_CLASSES.has(cls) ? 'seal' : 'again',
  );
  return patch;
}

function recordVerdict(
  db: Store,
  of: { runId: number; trialId: number; attemptId: number; instanceId: string; model: string; patch: string },
  one: Happened,
  outcome: NonNullable<Happened['outcome']>,
): void {
  const resolved = one.resolved === undefined ? outcome === 'resolved' : one.resolved;
  insertEvaluation(db, {
    run_id: of.runId,
    trial_id: of.trialId,
    attempt_id: of.attemptId,
    instance_id: of.instanceId,
    model: of.model,
    patch_sha256: sha(of.patch),
    spec_hash: 'spec',
    harness: 'v5',
    outcome,
    resolved: resolved === null ? null : Number(resolved),
    resolved_strict: resolved === null ? null : Number(one.strict ?? resolved),
    reward: one.reward ?? null,
    rewards: one.rewards ? JSON.stringify(one.rewards) : null,
    report: null,
    log: null,
    apply_method: null,
    exit_code: 0,
    infra_reason: null,
    suspicion: '[]',
    error_message: null,
    network: null,
    image_digest: null,
    source: 'native',
    started_at: '2026-11-21T00:00:11.000Z',
    duration_ms: 100,
  });
}
