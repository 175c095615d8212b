/**
 * Records one attempt and emits its events. Every fact is recorded before its event is emitted, so that no event is lost from the record
 * in a crash. If a write fails, the attempt and the run stop, because a record with holes is worthless.
 */
import type { AgentCallbacks, AgentContext, CommandRecord } from '../../agent/contract.ts';
import { getUserFriendlyMessage } from '../../agent/errors.ts';
import { recordOf } from '../../base/isRecord.ts';
import type { Redactor } from '../../base/text/redact.ts';
import type { CapturedPatch, EnvironmentInfo } from '../../environment/environment.ts';
import { environmentKindOf } from '../../environment/environments.ts';
import type { EvaluationResult } from '../../grading/gradingFrame.ts';
import { type AttemptSuspicion, createScan } from '../../grading/suspicion/commands.ts';
import { createTally, type MeteredCall, meteredCall } from '../../model/meteredCall.ts';
import type { Message } from '../../model/model.ts';
import type { NanoDollars } from '../../money.ts';
import { exitClassOf } from '../../outcome.ts';
import { isLong } from '../../store/longText.ts';
import * as steps from '../../store/records/attemptBodies.ts';
import { noteWork } from '../../store/records/evaluations.ts';
import { insertProgramCall } from '../../store/records/modelCalls.ts';
import { wholeArm } from '../../store/records/runs.ts';
import * as trials from '../../store/records/trials.ts';
import { written } from '../../store/writing.ts';
import { isJudgedByState } from '../../suites/suites.ts';
import type { Run } from '../contract.ts';
import { crashPoint } from '../control/crash.ts';
import { phaseDeadlines, trackPhases } from '../control/phases.ts';
import type { Ending, PatchFacts } from '../exit.ts';
import type { PlannedTrial } from '../plannedTrial.ts';
import type { Turn } from '../schedule/trialQueue.ts';
import { connectionRecord } from './connectionRecord.ts';
import { ledgerRows } from './ledgerRow.ts';
import { createProgramRecord } from './programRecord.ts';
import { tellVerdict, writeVerdict } from './verdicts.ts';

interface AttemptFacts {
  readonly ending: Ending;
  /** Steps that the agent counted; undefined when it did not end by itself. */
  readonly steps: number | undefined;
  readonly submitted: Uint8Array | null;
  readonly patch: PatchFacts;
  readonly settlement: trials.Settlement;
  readonly left: {
    readonly captured: CapturedPatch | null;
    /** The image of an end state. */
    readonly work: string | null;
    /** The verdict of tests that have run already. */
    readonly verdict: EvaluationResult | null;
  };
}

export type AttemptJournal = NonNullable<ReturnType<typeof openJournal>>;

/**
 * Leases the trial and begins its next attempt; null when another process was faster. `abort` fires when a phase makes no progress, and when
 * a phase cannot be written down.
 */
export function openJournal(run: Run, { trial, slot, waitedMs }: Turn, abort: AbortController) {
  const { store, redactor, events, log } = run;
  if (!trials.leaseTrial(store, trial.id, run.leaseOwner, Date.now())) return null;
  crashPoint('after_lease');
  const { id, number } = trials.beginAttempt(store, trial.id, {
    startedAt: new Date().toISOString(),
    slot,
    config: redactor.json(configText(trial)),
  });
  steps.recordQueue(store, id, Math.round(waitedMs));
  crashPoint('after_attempt_began');
  events.emit({ type: 'trial_started', trial: trial.label, slot, attempt: number });

  const notes: string[] = [];
  const note = (text: string) => void notes.push(text);
  /** A line of run.log. */
  const warn = (text: string, data?: Record<string, unknown>) =>
    log('warn', `${trial.label.instanceId}: ${text}`, data);
  const phases = trackPhases(
    {
      began(seq, name, offset) {
        steps.beginPhase(store, { attempt_id: id, seq, name, offset_ms: offset });
        events.emit({ type: 'phase', trial: trial.label, slot, phase: name });
      },
      ended: (seq, duration) => steps.endPhase(store, id, seq, duration),
    },
    {
      now: run.now,
      deadlinesMs: phaseDeadlines(run.config.stall, trial.arm),
      onStall: (stop) => abort.abort(stop),
    },
  );
  const scan = createScan(run.suspicionRules);
  const recorder = createRecorder(run, id, {
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
    onNote: note,
    onError: (_ctx, { error, message, metadata }) =>
      warn(getUserFriendlyMessage(error, metadata), { error, message }),
    onDebug: (message, data) => log('debug', message, { instance: trial.label.instanceId, ...data }),
  });

  return {
    attemptId: id,
    /** A connection of one of its containers to the outside, which has ended. */
    connected: connectionRecord(run, id, (error) => abort.abort(error)),
    /** 1 for the first attempt of the trial. */
    number,
    phases,
    /** The agent's side of the record: messages, calls, commands. */
    recorder,
    /** The number of times that infrastructure has ended an attempt of this trial after a model had been asked. */
    infraAttemptsBefore: () => trials.infraAttemptsWithCalls(store, trial.id),
    /** The number of earlier attempts of this trial in which the agent ended its environment. */
    endedByAgentBefore: () => trials.attemptsFlagged(store, trial.id, ENDED_ENVIRONMENT),
    /** A sentence that stays with the attempt. */
    note,
    warn,
    /** Work that is kept so far for the grading, where a suite keeps it while the attempt goes on. */
    recordWork: (work: string) => void noteWork(store, id, work),
    environmentStarted(info: EnvironmentInfo) {
      notes.push(...info.notes);
      trials.noteEnvironment(store, id, {
        container_id: info.containerId ?? null,
        image_digest: info.imageDigest ?? null,
        history: info.history,
        transport: info.transport,
      });
    },
    /**
     * Ends the attempt and settles its trial in one durable write, a compare-and-set: the first terminal state wins. False, with nothing
     * written or told, when the attempt had already ended.
     */
    end({ ending, submitted, patch, settlement, left, ...agent }: AttemptFacts): boolean {
      const { captured, work, verdict } = left;
      const stepCount = agent.steps ?? recorder.steps();
      const message = ending.message === null ? null : redactor.text(ending.message);
      // Work in the tree that no prediction has: of an agent that submitted nothing, or that was ended before it did.
      const noPatch = isJudgedByState(trial.instance);
      const unused = !noPatch && patch.modelPatch === '' ? (captured?.patch.length ?? 0) : 0;
      notes.push(...patch.notes);
      // An agent may have committed its work.
      if (unused > 0 && ending.reason === 'submitted')
        note(
          `it submitted nothing, and its work tree has changes of ${unused} bytes: the prediction is what it submitted (run.patch), so it is empty`,
        );
      // A patch is evidence, so one with a secret is only noted, never changed.
      for (const [which, bytes] of Object.entries({ submitted, captured: captured?.patch }))
        if (bytes && redactor.contains(bytes))
          note(`the ${which} patch contains a secret of this machine; it was kept as it is`);
      notes.push(...(captured?.warnings ?? []));
      crashPoint('before_seal');
      const won = trials.endAttempt(
        store,
        id,
        {
          ended_at: new Date().toISOString(),
          exit_reason: ending.reason,
          exit_detail: ending.detail,
          exit_status: ending.exitStatus,
          error_message: message,
          error_evidence: ending.evidence === null ? null : redactor.json(JSON.stringify(ending.evidence)),
          submission: submitted,
          captured_patch: captured?.patch ?? null,
          // Old runs have no such column filled, and most suites need none.
          ...(work !== null && { work_image: work }),
          patch_source: patch.source,
          patch_state: patch.state,
          model_patch: patch.modelPatch,
          patch_sha256: patch.sha256,
          steps: stepCount,
          // An agent that is a program is no command of the record.
          oom_kills: recorder.oomKills() + (recordOf(ending.evidence).oom_killed === true ? 1 : 0),
          elapsed_ms: phases.elapsedMs(),
          working_ms: phases.workingMs(),
          suspicion: redactor.json(JSON.stringify([...scan.flags(), ...ownEnd(ending, stepCount)])),
          notes: JSON.stringify(notes.map((text) => redactor.text(text))),
        },
        settlement,
        () => {
          if (verdict === null) return;
          const { arm } = trial;
          const of = { trial_id: trial.id, attempt_id: id, model: arm.row.model, patch_sha256: patch.sha256 };
          writeVerdict(run, of, verdict);
        },
      );
      crashPoint('after_seal');
      if (!won) return false;
      events.emit({
        type: 'trial_ended',
        trial: trial.label,
        slot,
        attempt: number,
        exitReason: ending.reason,
        exitClass: exitClassOf(ending.reason),
        detail: ending.detail,
        message,
        sealed: settlement === 'seal',
        steps: stepCount,
        costNano: recorder.tally.costNano,
        elapsedMs: phases.elapsedMs(),
        patchBytes: Buffer.byteLength(patch.modelPatch),
        ...(noPatch && { noPatch }),
        ...(unused > 0 && { unusedBytes: unused }),
      });
      if (verdict !== null) tellVerdict(run, trial.label, verdict);
      return true;
    },
  };
}

/** The arm's configuration with the image of this instance, so that a trajectory alone names its image. */
function configText({ arm: { row, environment }, image }: PlannedTrial): string {
  if (!environmentKindOf(environment).inImages) return row.config;
  return JSON.stringify({ ...wholeArm(row), environment: { ...environment, image } });
}

/** The flag by which a trial knows of such an end, in this sitting and in later ones. */
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

/** The journal's side of what the agent says. */
interface RecorderEvents extends Pick<AgentCallbacks, 'onNote' | 'onError' | 'onDebug'> {
  readonly onPhase: (phase: string) => void;
  readonly onCommand: (record: CommandRecord) => void;
  readonly onStep: (step: number, costNano: NanoDollars | null) => void;
}

export type Recorder = ReturnType<typeof createRecorder>;

/** Writes down what an agent says, as it says it. */
export function createRecorder(
  { store, redactor, budget, answered }: Run,
  attemptId: number,
  events: RecorderEvents,
) {
  let closed = false;
  let stepCount = 0;
  let oomKills = 0;
  const tally = createTally();
  /** Commands whose observation has not come yet. */
  const unlinked: steps.PrintedCommand[] = [];
  /** Calls by their number; a program may have several out at a time. */
  const calls = new Map<number, MeteredCall>();
  const program = createProgramRecord(redactor);
  /** Numbers of what comes next in the record: an agent that runs again in the attempt counts from 0, and is recorded behind what there is. */
  const next = { messages: 0, calls: 0 };
  /** An agent that ignores its signal may go on after its end; it must not spend money or write. */
  const recorded = (point: Parameters<typeof crashPoint>[0]) =>
    void written(store).then(
      () => crashPoint(point),
      // The next write tells it.
      () => {},
    );
  const mustBeOpen = () => {
    if (closed) throw new Error('the attempt has ended');
  };

  /** `part`: of an agent that runs anew on a part of the task, after so many steps. */
  const callbacksFor = (part: string | undefined, stepsBefore: number): AgentCallbacks => {
    const { messages: messagesBefore, calls: callsBefore } = next;
    /** The built-in agent makes one call after the other, and gives them no number. */
    const callOf = ({ call }: AgentContext): number | undefined => {
      if (call === undefined) return undefined;
      next.calls = Math.max(next.calls, call + callsBefore + 1);
      return call + callsBefore;
    };
    const metered = (ctx: AgentContext): MeteredCall => {
      const call = callOf(ctx) ?? null;
      const known = calls.get(call ?? 0);
      if (known && !known.isOver()) return known;
      const row = { attempt_id: attemptId, step: ctx.step + stepsBefore, label: ctx.label ?? null, call };
      const made = meteredCall({ funds: budget, tally, ...ledgerRows({ store, redactor }, row) });
      calls.set(call ?? 0, made);
      return made;
    };
    return {
      onMessage(_ctx, said, index) {
        mustBeOpen();
        const seq = index + messagesBefore;
        next.messages = Math.max(next.messages, seq + 1);
        const message = part === undefined ? said : { ...said, extra: { ...said.extra, task_step: part } };
        const isObservation = message.extra !== undefined && 'raw_output' in message.extra;
        const command = isObservation ? unlinked.shift() : undefined;
        const json = (whole: Stored) => redactor.json(storedJson(whole));
        steps.insertMessage(
          store,
          {
            attempt_id: attemptId,
            seq,
            role: message.role,
            content: cleanText(message, redactor),
            data: json(message),
            created_at: new Date().toISOString(),
          },
          isLong(message.content) ? json({ ...message, content: 0 }) : undefined,
          command,
        );
        if (command !== undefined) steps.linkCommand(store, command.id, seq);
      },
      onCommand(_ctx, said) {
        mustBeOpen();
        const record = { ...said, step: said.step + stepsBefore };
        events.onCommand(record);
        if (record.result.oomKilled) oomKills += 1;
        const row = commandRow(attemptId, record, redactor);
        unlinked.push({ id: steps.insertCommand(store, row), output: row.output });
        recorded('command_recorded');
      },
      onProgramCall(_ctx, { call, firstMessage, replyMessage, label }) {
        mustBeOpen();
        const row = program.row({
          label,
          call: { ...call, index: call.index + callsBefore, step: call.step + stepsBefore },
          firstMessage: firstMessage + messagesBefore,
          replyMessage: replyMessage === null ? null : replyMessage + messagesBefore,
        });
        insertProgramCall(store, { attempt_id: attemptId, ...row });
      },
      async onCallWanted(ctx, estimateNano, signal, waits) {
        mustBeOpen();
        await metered(ctx).wanted(estimateNano, signal, waits);
      },
      onCallBegan(ctx, call) {
        mustBeOpen();
        return metered(ctx).began(call);
      },
      // An answer may come after the end of the attempt.
      onCallEnded(ctx, call) {
        metered(ctx).ended(call);
        if (closed) return;
        if (call.modelAnswered !== null) answered(call.modelAsked, call.modelAnswered);
        recorded('call_ended');
      },
      onStep(ctx) {
        stepCount = ctx.step + stepsBefore;
        events.onStep(stepCount, tally.costNano);
      },
      onPhase: (_ctx, phase) => events.onPhase(phase),
      ...(events.onNote && { onNote: events.onNote }),
      ...(events.onError && { onError: events.onError }),
      ...(events.onDebug && { onDebug: events.onDebug }),
    };
  };

  return {
    /** The callbacks of an agent that runs once. */
    callbacks: callbacksFor(undefined, 0),
    callbacksFor,
    /** The sum of its calls so far. */
    tally,
    steps: () => stepCount,
    oomKills: () => oomKills,
    /** Ends the attempt: calls in flight are recorded as lost, unless their answer still arrives. */
    close() {
      closed = true;
      for (const call of calls.values()) call.lose();
    },
  };
}

type Stored = Pick<Message, 'extra'> & { readonly content: unknown };

/**
 * The raw output is stored once, in `commands`; exports put it back. A function that JSON calls for each value takes four times as long, so it
 * is called only where a reply has such a key somewhere.
 */
function storedJson(message: Stored): string {
  const { extra } = message;
  const text = JSON.stringify(extra ? { ...message, extra: { ...extra, raw_output: undefined } } : message);
  return text.includes('"raw_output"') ? JSON.stringify(message, withoutRawOutput) : text;
}
const withoutRawOutput = (key: string, value: unknown): unknown => (key === 'raw_output' ? undefined : value);

function cleanText({ content }: Message, redactor: Redactor): string {
  if (typeof content === 'string') return redactor.text(content);
  return content === null || content === undefined ? '' : redactor.json(JSON.stringify(content));
}

function commandRow(attemptId: number, record: CommandRecord, redactor: Redactor): steps.CommandRow {
  const { result } = record;
  return {
    attempt_id: attemptId,
    step: record.step,
    idx: record.index,
    message_seq: null,
    command: redactor.text(record.command),
    output: Buffer.from(redactor.bytes(result.raw)),
    exit_code: result.exitCode,
    timed_out: result.timedOut ? 1 : 0,
    total_bytes: result.totalBytes,
    omitted_bytes: result.omittedBytes,
    replaced_bytes: result.replacedBytes,
    oom_killed: result.oomKilled ? 1 : 0,
    transport: result.transport,
    started_at: new Date(record.startedAt).toISOString(),
    duration_ms: Math.round(result.durationMs),
  };
}

/** Notes once when a model answers that was not asked for, or that differs from the one before. Every call records its model. */
export function tellOtherModels(note: (text: string) => void): (asked: string, answered: string) => void {
  const seen = new Map<string, Set<string>>();
  return (asked, answered) => {
    const before = seen.get(asked) ?? new Set<string>();
    if (before.has(answered)) return;
    const earlier = before.size > 0 ? `; before, ${[...before].join(' and ')} did` : '';
    if (answered !== asked || earlier)
      note(`warning: ${asked} was asked for and ${answered} answered${earlier}`);
    seen.set(asked, before.add(answered));
  };
}
