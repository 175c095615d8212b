/**
 * One attempt from taking the trial to sealing it. Here is the only catch that swallows: whatever happens to one instance becomes
 * its exit reason, its work is captured, its container goes, and the others never notice. Only a broken record gets through.
 */

import type { AgentConfig } from '../agent/agentConfig.ts';
import type { AgentResult, CreateAgent } from '../agent/contract.ts';
import { getUserFriendlyMessage } from '../agent/errors.ts';
import type { Redactor } from '../base/text/redact.ts';
import type { RunConfig } from '../config/runConfig.ts';
import type { Instance } from '../dataset/instance.ts';
import type { CapturedPatch, Environment, EnvironmentFactory } from '../environment/environment.ts';
import type { EnvironmentConfig } from '../environment/environmentConfig.ts';
import type { ModelFactory } from '../model/model.ts';
import type { ModelConfig } from '../model/modelConfig.ts';
import { exitClassOf } from '../outcome.ts';
import { StorageError, type Store } from '../store/open.ts';
import type { ArmRow, InstanceRow, RunRow } from '../store/records/runs.ts';
import * as steps from '../store/records/steps.ts';
import { storedArm } from '../store/records/storedConfig.ts';
import * as trials from '../store/records/trials.ts';
import type { SuspicionRule } from '../suspicion/commandRules.ts';
import { createScan } from '../suspicion/commands.ts';
import { choosePatch } from './attempt/choosePatch.ts';
import { capture, closeInTime } from './attempt/leaveEnvironment.ts';
import { probeEnvironment } from './attempt/probeEnvironment.ts';
import type { RunBudget } from './control/budget.ts';
import { crashPoint } from './control/crash.ts';
import type { DiskFloor } from './control/diskFloor.ts';
import { orAbort } from './control/orAbort.ts';
import { type PhaseTracker, trackPhases } from './control/phases.ts';
import { type RetryPolicy, settle } from './control/retryPolicy.ts';
import type { StopLadder } from './control/stop.ts';
import type { RunEvents, TrialLabel } from './events.ts';
import { type Ending, endingOfError, endingOfResult } from './exit.ts';
import type { Admission, TrialImages } from './images/trialImages.ts';
import { createRecorder } from './record/recorder.ts';
import { startRequestOf } from './schedule/startRequest.ts';

export interface ArmRuntime {
  readonly row: ArmRow;
  readonly agent: AgentConfig;
  readonly environment: EnvironmentConfig;
  readonly model: ModelConfig;
  readonly modelFactory: ModelFactory;
  readonly environmentFactory: EnvironmentFactory;
  readonly createAgent: CreateAgent;
}

export interface PlannedInstance {
  readonly row: InstanceRow;
  readonly instance: Instance;
}

export interface Batch {
  readonly store: Store;
  readonly run: RunRow;
  readonly config: RunConfig;
  readonly arms: ReadonlyMap<number, ArmRuntime>;
  readonly instances: ReadonlyMap<number, PlannedInstance>;
  readonly redactor: Redactor;
  readonly budget: RunBudget;
  readonly events: RunEvents;
  readonly stop: StopLadder;
  /** Absent when run.disk_floor is 0. */
  readonly disk?: DiskFloor;
  /** Absent where no image has to be had (the local environment). */
  readonly images?: TrialImages;
  readonly retry: RetryPolicy;
  readonly suspicionRules: readonly SuspicionRule[];
  readonly onAnswer: (asked: string, answered: string) => void;
  /** host:boot:pid:start, as it stands in trials.lease_owner. */
  readonly leaseOwner: string;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly isoNow: () => string;
  readonly log: (level: 'debug' | 'warn', message: string, data?: Record<string, unknown>) => void;
}

export interface AttemptOutcome {
  readonly trial: trials.TrialRow;
  readonly label: TrialLabel;
  readonly attemptId: number;
  readonly ending: Ending;
  readonly settlement: trials.Settlement;
  readonly patchBytes: number;
}

export async function runAttempt(
  batch: Batch,
  trial: trials.TrialRow,
  slot: number,
  admission?: Admission,
  /** The agent is done: what follows needs no agent, so the next trial's container can be on its way. */
  onAgentDone: () => void = () => {},
  /** How long the trial waited for its image and this slot. */
  waitedMs = 0,
): Promise<AttemptOutcome | null> {
  const { store, events } = batch;
  const arm = batch.arms.get(trial.arm_id)!;
  const planned = batch.instances.get(trial.instance_pk)!;
  if (!trials.leaseTrial(store, trial.id, batch.leaseOwner, Date.now())) return null;
  crashPoint('after_lease');
  const label: TrialLabel = {
    trialId: trial.id,
    instanceId: planned.instance.instance_id,
    arm: arm.row.name,
    epoch: trial.epoch,
  };
  const attempt = trials.beginAttempt(store, trial.id, {
    startedAt: batch.isoNow(),
    slot,
    config: batch.redactor.text(configOf(arm, planned)),
  });
  steps.recordQueue(store, attempt.id, Math.round(waitedMs));
  crashPoint('after_attempt_began');
  events.emit({ type: 'trial_started', trial: label, slot, attempt: attempt.number });

  const abort = new AbortController();
  const stopped = batch.stop.attempts;
  const follow = () => abort.abort(stopped.reason);
  if (stopped.aborted) follow();
  else stopped.addEventListener('abort', follow, { once: true });

  const phases = trackPhases(
    {
      began: (seq, name, offset) => {
        steps.beginPhase(store, { attempt_id: attempt.id, seq, name, offset_ms: offset });
        events.emit({ type: 'phase', trial: label, slot, phase: name });
      },
      ended: (seq, duration) => steps.endPhase(store, attempt.id, seq, duration),
    },
    { now: batch.now, deadlinesMs: deadlines(batch.config, arm), onStall: (stop) => abort.abort(stop) },
  );
  const scan = createScan(batch.suspicionRules);
  const recorder = createRecorder({
    store,
    attemptId: attempt.id,
    redactor: batch.redactor,
    budget: batch.budget,
    isoNow: batch.isoNow,
    onPhase: (phase) => {
      // For the agent a phase is display, whose failure it forgives; here it is a part of the record.
      try {
        phases.begin(phase);
      } catch (error) {
        abort.abort(error);
      }
    },
    onAnswer: batch.onAnswer,
    onCommand: ({ step, command, result }) => scan.add(step, command, result.output),
    onStep: (step, costNano) => events.emit({ type: 'step', trial: label, slot, step, costNano }),
  });

  let environment: Environment | null = null;
  let result: AgentResult | null = null;
  let ending: Ending;
  let captured: CapturedPatch | null = null;
  const notes: string[] = [];
  try {
    try {
      phases.begin('start');
      if (admission?.failure) throw admission.failure;
      environment = await orAbort(
        arm.environmentFactory.start({
          ...startRequestOf(batch, trial, attempt.number),
          ...(admission?.place && { place: admission.place }),
          signal: abort.signal,
          onPhase: (phase) => phases.begin(phase),
        }),
        abort.signal,
        (late) => late.close(),
      );
      crashPoint('after_container_started');
      notes.push(...environment.info.notes);
      trials.noteEnvironment(store, attempt.id, {
        containerId: environment.info.containerId ?? null,
        imageDigest: environment.info.imageDigest ?? null,
        history: environment.info.history,
        transport: environment.info.transport,
      });
      await probeEnvironment(arm, planned, environment, phases, abort.signal);
      const agent = arm.createAgent({
        instanceId: label.instanceId,
        model: arm.modelFactory.create({
          instanceId: label.instanceId,
          epoch: trial.epoch,
          earlier: trials.infraAttemptsWithCalls(store, trial.id),
        }),
        environment,
        config: arm.agent,
        callbacks: {
          ...recorder.callbacks,
          onError: (_ctx, { error, message, metadata }) =>
            batch.log('warn', `${label.instanceId}: ${getUserFriendlyMessage(error, metadata)}`, {
              error,
              message,
            }),
          onDebug: (message, data) => batch.log('debug', message, { instance: label.instanceId, ...data }),
        },
        signal: abort.signal,
        now: batch.now,
      });
      result = await orAbort(
        agent.run(planned.instance.problem_statement, exposedFields(arm.agent, planned.instance)),
        abort.signal,
      );
      ending = endingOfResult(result);
    } catch (error) {
      if (error instanceof StorageError) throw error;
      ending = endingOfError(error, abort.signal);
      batch.log('warn', `${label.instanceId}: ${ending.reason}`, {
        message: ending.message,
        stack: (error as Error)?.stack,
      });
    }
    onAgentDone();
    crashPoint('before_capture');
    if (environment) captured = await capture(environment, ending, phases, batch, label, notes);
  } finally {
    stopped.removeEventListener('abort', follow);
    if (environment) {
      beginQuietly(phases, 'stop');
      await closeInTime(environment, batch, label, notes);
    }
    recorder.close();
  }
  phases.end();

  const submitted =
    ending.reason === 'submitted' ? (result?.submissionBytes ?? Buffer.from(result?.submission ?? '')) : null;
  const patch = choosePatch(batch.config.patch, submitted, captured);
  if (submitted && batch.redactor.contains(submitted))
    notes.push('the submitted patch contains a secret of this machine; it was kept as it is');
  if (captured && batch.redactor.contains(captured.patch))
    notes.push('the captured patch contains a secret of this machine; it was kept as it is');
  const settlement = settle(batch.retry, trial.id, ending);
  const costNano = recorder.costNano();
  crashPoint('before_seal');
  const won = trials.endAttempt(
    store,
    attempt.id,
    {
      endedAt: batch.isoNow(),
      exitReason: ending.reason,
      exitClass: exitClassOf(ending.reason),
      exitDetail: ending.detail,
      exitStatus: ending.exitStatus,
      errorMessage: ending.message === null ? null : batch.redactor.text(ending.message),
      errorEvidence: ending.evidence === null ? null : batch.redactor.text(JSON.stringify(ending.evidence)),
      submission: submitted,
      capturedPatch: captured?.patch ?? null,
      patchSource: patch.source,
      patchState: patch.state,
      modelPatch: patch.modelPatch,
      patchSha256: patch.sha256,
      steps: result?.steps ?? recorder.steps(),
      oomKills: recorder.oomKills(),
      elapsedMs: phases.elapsedMs(),
      workingMs: phases.workingMs(),
      suspicion: batch.redactor.text(JSON.stringify(scan.flags())),
      notes: JSON.stringify([...notes, ...(captured?.warnings ?? [])].map((n) => batch.redactor.text(n))),
    },
    settlement,
  );
  crashPoint('after_seal');
  if (!won) return null;
  events.emit({
    type: 'trial_ended',
    trial: label,
    slot,
    attempt: attempt.number,
    exitReason: ending.reason,
    exitClass: exitClassOf(ending.reason),
    detail: ending.detail,
    message: ending.message === null ? null : batch.redactor.text(ending.message),
    sealed: settlement === 'seal',
    steps: result?.steps ?? recorder.steps(),
    costNano,
    elapsedMs: phases.elapsedMs(),
    patchBytes: Buffer.byteLength(patch.modelPatch),
  });
  return {
    trial,
    label,
    attemptId: attempt.id,
    ending,
    settlement,
    patchBytes: Buffer.byteLength(patch.modelPatch),
  };
}

/** The arm's, with the image of this instance: a trajectory alone says in what it was made. */
function configOf({ row, environment }: ArmRuntime, planned: PlannedInstance): string {
  if (environment.environment_class !== 'docker') return row.config;
  return JSON.stringify({
    ...storedArm(row),
    environment: { ...environment, image: environment.image ?? planned.row.image },
  });
}

/** A storage error must not hide behind another one while cleaning up. */
function beginQuietly(phases: PhaseTracker, name: string): void {
  try {
    phases.begin(name);
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
  }
}

/** Only named fields reach templates: never the gold patch or the tests unless someone asks (field-problems.md S5). */
function exposedFields(config: AgentConfig, instance: Instance): Record<string, unknown> {
  const all: Record<string, unknown> = { ...instance.extra, ...instance };
  return Object.fromEntries(config.expose_fields.filter((f) => f in all).map((f) => [f, all[f]]));
}

function deadlines(config: RunConfig, arm: ArmRuntime): Record<string, number> {
  const { stall } = config;
  const exec = stall.exec_s || (arm.environment.timeout > 0 ? arm.environment.timeout * 2 + 60 : 0);
  const model = stall.model_s || (arm.model.total_timeout_s > 0 ? arm.model.total_timeout_s + 60 : 0);
  const ready = { verify: stall.seal_s, snapshot: stall.seal_s, probe: stall.start_s };
  const s = {
    ...ready,
    start: stall.start_s,
    seal: stall.seal_s,
    setup: stall.setup_s,
    rate_wait: stall.rate_wait_s,
  };
  const all = { ...s, backoff: stall.backoff_s, exec, model, capture: 0 };
  return Object.fromEntries(Object.entries(all).map(([name, value]) => [name, value * 1000]));
}
