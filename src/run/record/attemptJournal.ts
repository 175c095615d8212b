/**
 * Records one attempt and emits its events. Every fact is recorded before its event is emitted, so that no event is lost from the record
 * in a crash.
 */
import { getUserFriendlyMessage } from '../../agent/errors.ts';
import type { Redactor } from '../../base/text/redact.ts';
import type { CapturedPatch, EnvironmentInfo } from '../../environment/environment.ts';
import { environmentKindOf } from '../../environment/environments.ts';
import { type AttemptSuspicion, createScan, type Scan } from '../../grading/suspicion/commands.ts';
import { exitClassOf } from '../../outcome.ts';
import * as steps from '../../store/records/attemptBodies.ts';
import { noteWork } from '../../store/records/evaluations.ts';
import { wholeArm } from '../../store/records/runs.ts';
import * as trials from '../../store/records/trials.ts';
import type { PatchFacts } from '../attempt/choosePatch.ts';
import type { Run } from '../contract.ts';
import { crashPoint } from '../control/crash.ts';
import { type PhaseTracker, phaseDeadlines, trackPhases } from '../control/phases.ts';
import type { Ending } from '../exit.ts';
import type { PlannedTrial } from '../plannedTrial.ts';
import type { Turn } from '../schedule/trialQueue.ts';
import { createRecorder, type Recorder } from './recorder.ts';

interface AttemptFacts {
  readonly ending: Ending;
  /** Steps that the agent counted; undefined when it did not end by itself. */
  readonly steps: number | undefined;
  readonly submitted: Uint8Array | null;
  readonly captured: CapturedPatch | null;
  readonly patch: PatchFacts;
  readonly settlement: trials.Settlement;
  readonly workImage: string | null;
}

export interface AttemptJournal {
  readonly attemptId: number;
  /** 1 for the first attempt of the trial. */
  readonly number: number;
  readonly phases: PhaseTracker;
  /** The agent's side of the record: messages, calls, commands. */
  readonly recorder: Recorder;
  /** How often infrastructure has ended an attempt of this trial after a model had been asked. */
  infraAttemptsBefore(): number;
  /** How often the agent has ended its environment in attempts of this trial before. */
  endedByAgentBefore(): number;
  /** A sentence that stays with the attempt. */
  note(text: string): void;
  /** A line of run.log. */
  warn(text: string, data?: Record<string, unknown>): void;
  /** What is kept so far for the grading, where a suite keeps it while the attempt goes on. */
  recordWork(work: string): void;
  environmentStarted(info: EnvironmentInfo): void;
  /** From now on an agent that ignores its signal can neither spend money nor write. */
  closeToAgent(): void;
  /**
   * Ends the attempt and settles its trial in one durable write, a compare-and-set: the first terminal state wins. False, with nothing
   * written or told, when the attempt had already ended.
   */
  end(facts: AttemptFacts): boolean;
}

/**
 * Leases the trial and begins its next attempt; null when another process was faster. `abort` fires when a phase makes no progress, and when
 * a phase cannot be written down.
 */
export function openJournal(run: Run, turn: Turn, abort: AbortController): AttemptJournal | null {
  const { store, events, log } = run;
  const { slot, trial } = turn;
  const attempt = beginAttempt(run, turn);
  if (!attempt) return null;
  const warn: AttemptJournal['warn'] = (text, data) =>
    log('warn', `${trial.label.instanceId}: ${text}`, data);
  const phases = trackPhases(
    {
      began: (seq, name, offset) => {
        steps.beginPhase(store, { attempt_id: attempt.id, seq, name, offset_ms: offset });
        events.emit({ type: 'phase', trial: trial.label, slot, phase: name });
      },
      ended: (seq, duration) => steps.endPhase(store, attempt.id, seq, duration),
    },
    {
      now: run.now,
      deadlinesMs: phaseDeadlines(run.config.stall, trial.arm),
      onStall: (stop) => abort.abort(stop),
    },
  );
  const scan = createScan(run.suspicionRules);
  const notes: string[] = [];
  const recorder = createRecorder(run, attempt.id, {
    onPhase(phase) {
      // The agent ignores errors of this callback, but here a phase is part of the record.
      try {
        phases.begin(phase);
      } catch (error) {
        abort.abort(error);
      }
    },
    onCommand: ({ step, command, result }) => scan.add(step, command, result.output),
    onStep: (step, costNano) => events.emit({ type: 'step', trial: trial.label, slot, step, costNano }),
    onNote: (text) => void notes.push(text),
    onError: (_ctx, { error, message, metadata }) =>
      warn(getUserFriendlyMessage(error, metadata), { error, message }),
    onDebug: (message, data) => log('debug', message, { instance: trial.label.instanceId, ...data }),
  });
  return {
    attemptId: attempt.id,
    number: attempt.number,
    phases,
    recorder,
    infraAttemptsBefore: () => trials.infraAttemptsWithCalls(store, trial.id),
    endedByAgentBefore: () => trials.attemptsFlagged(store, trial.id, ENDED_ENVIRONMENT),
    note: (text) => void notes.push(text),
    warn,
    recordWork: (work) => void noteWork(store, attempt.id, work),
    environmentStarted(info) {
      notes.push(...info.notes);
      trials.noteEnvironment(store, attempt.id, {
        container_id: info.containerId ?? null,
        image_digest: info.imageDigest ?? null,
        history: info.history,
        transport: info.transport,
      });
    },
    closeToAgent: () => recorder.close(),
    end: (facts) => endAttempt(run, turn, attempt, { ...facts, notes, phases, recorder, scan }),
  };
}

interface BegunAttempt {
  readonly id: number;
  readonly number: number;
}

function beginAttempt(run: Run, { trial, slot, waitedMs }: Turn): BegunAttempt | null {
  const { store, redactor, events } = run;
  if (!trials.leaseTrial(store, trial.id, run.leaseOwner, Date.now())) return null;
  crashPoint('after_lease');
  const attempt = trials.beginAttempt(store, trial.id, {
    startedAt: new Date().toISOString(),
    slot,
    config: redactor.json(configText(trial)),
  });
  steps.recordQueue(store, attempt.id, Math.round(waitedMs));
  crashPoint('after_attempt_began');
  events.emit({ type: 'trial_started', trial: trial.label, slot, attempt: attempt.number });
  return attempt;
}

/** The arm's configuration with the image of this instance, so that a trajectory alone names its image. */
function configText({ arm: { row, environment }, image }: PlannedTrial): string {
  if (!environmentKindOf(environment).inImages) return row.config;
  return JSON.stringify({ ...wholeArm(row), environment: { ...environment, image } });
}

interface WrittenSoFar {
  readonly notes: readonly string[];
  readonly phases: PhaseTracker;
  readonly recorder: Recorder;
  readonly scan: Scan;
}

function endAttempt(
  { store, redactor, events }: Run,
  { trial, slot }: Turn,
  attempt: BegunAttempt,
  facts: AttemptFacts & WrittenSoFar,
): boolean {
  const { ending, patch, captured, phases, recorder } = facts;
  const stepCount = facts.steps ?? recorder.steps();
  const message = ending.message === null ? null : redactor.text(ending.message);
  const unused = unusedBytes(facts);
  const notes = [
    ...facts.notes,
    ...patch.notes,
    ...(unused > 0 ? [unusedNote(unused)] : []),
    ...secretNotes(redactor, facts),
    ...(captured?.warnings ?? []),
  ];
  crashPoint('before_seal');
  const won = trials.endAttempt(
    store,
    attempt.id,
    {
      ended_at: new Date().toISOString(),
      exit_reason: ending.reason,
      exit_detail: ending.detail,
      exit_status: ending.exitStatus,
      error_message: message,
      error_evidence: ending.evidence === null ? null : redactor.json(JSON.stringify(ending.evidence)),
      submission: facts.submitted,
      captured_patch: captured?.patch ?? null,
      // Old runs have no such column filled, and most suites need none.
      ...(facts.workImage !== null && { work_image: facts.workImage }),
      patch_source: patch.source,
      patch_state: patch.state,
      model_patch: patch.modelPatch,
      patch_sha256: patch.sha256,
      steps: stepCount,
      oom_kills: recorder.oomKills(),
      elapsed_ms: phases.elapsedMs(),
      working_ms: phases.workingMs(),
      suspicion: redactor.json(JSON.stringify([...facts.scan.flags(), ...ownEnd(ending, stepCount)])),
      notes: JSON.stringify(notes.map((note) => redactor.text(note))),
    },
    facts.settlement,
  );
  crashPoint('after_seal');
  if (!won) return false;
  events.emit({
    type: 'trial_ended',
    trial: trial.label,
    slot,
    attempt: attempt.number,
    exitReason: ending.reason,
    exitClass: exitClassOf(ending.reason),
    detail: ending.detail,
    message,
    sealed: facts.settlement === 'seal',
    steps: stepCount,
    costNano: recorder.costNano(),
    elapsedMs: phases.elapsedMs(),
    patchBytes: Buffer.byteLength(patch.modelPatch),
    ...(unused > 0 && { unusedBytes: unused }),
  });
  return true;
}

/** Bytes of work in the tree that an agent left out of what it submitted, which is nothing: it may have committed its work. */
const unusedBytes = ({ ending, patch, captured }: AttemptFacts): number =>
  ending.reason === 'submitted' && patch.modelPatch === '' ? (captured?.patch.length ?? 0) : 0;

const unusedNote = (bytes: number): string =>
  `it submitted nothing, and its work tree has changes of ${bytes} bytes: the prediction is what it submitted (run.patch), so it is empty`;

/** How a trial knows of it, in this sitting and in later ones. */
const ENDED_ENVIRONMENT = 'ended_environment';

const ownEnd = ({ byAgent, evidence, message }: Ending, step: number): AttemptSuspicion[] =>
  byAgent
    ? [
        {
          rule: ENDED_ENVIRONMENT,
          says: 'the agent ended its own container: by killing everything, filling the disk or forging the ends of commands',
          evidence: String(evidence?.command ?? message),
          inferred: true,
          step,
          count: 1,
        },
      ]
    : [];

/** A patch is evidence, so one with a secret is only noted, never changed. */
function secretNotes(redactor: Redactor, { submitted, captured }: AttemptFacts): string[] {
  const patches = { submitted, captured: captured?.patch };
  return Object.entries(patches).flatMap(([which, patch]) =>
    patch && redactor.contains(patch)
      ? [`the ${which} patch contains a secret of this machine; it was kept as it is`]
      : [],
  );
}
