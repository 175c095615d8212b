/**
 * Records what an agent does as it happens. If a write fails, the attempt and the run stop, because a record with holes is worthless.
 */
import type { AgentCallbacks, AgentContext, CommandRecord, ProgramCallRecord } from '../../agent/contract.ts';
import type { Redactor } from '../../base/text/redact.ts';
import type { Message } from '../../model/model.ts';
import type { NanoDollars } from '../../money.ts';
import * as steps from '../../store/records/attemptBodies.ts';
import { beginCall, endCall, insertProgramCall, loseCall } from '../../store/records/modelCalls.ts';
import type { Run } from '../contract.ts';
import type { Settle } from '../control/budget.ts';
import { crashPoint } from '../control/crash.ts';
import { endedRow } from './ledgerRow.ts';
import { createProgramRecord } from './programRecord.ts';

/** What the journal of the attempt does with what the agent says. */
interface Heard extends Pick<AgentCallbacks, 'onNote' | 'onError' | 'onDebug'> {
  readonly onPhase: (phase: string) => void;
  readonly onCommand: (record: CommandRecord) => void;
  readonly onStep: (step: number, costNano: NanoDollars | null) => void;
}

export interface Recorder {
  /** For an agent that runs once: all that it says. */
  readonly callbacks: AgentCallbacks;
  /** For one that runs anew on a part of the task, after so many steps: what it counts from 0 is recorded behind what there is. */
  callbacksFor(part: string, stepsBefore: number): AgentCallbacks;
  tokens(): number;
  /** Known cost, with estimates where that of a call is unknown. */
  spentNano(): NanoDollars;
  /** Cost of the attempt so far; null once a part is unknown. */
  costNano(): NanoDollars | null;
  steps(): number;
  oomKills(): number;
  /** Ends the attempt: calls in flight are recorded as lost, unless their answer still arrives. */
  close(): void;
}

export function createRecorder(run: Run, attemptId: number, heard: Heard): Recorder {
  let closed = false;
  let stepCount = 0;
  const isClosed = () => closed;
  const countFrom = countThrough();
  const transcript = recordTranscript(run, attemptId, heard, isClosed);
  const ledger = recordCalls(run, attemptId, heard, isClosed);
  const { onNote, onError, onDebug } = heard;
  const callbacks = (count: Count): AgentCallbacks => ({
    ...transcript.callbacks(count),
    ...ledger.callbacks(count),
    onStep(ctx) {
      stepCount = count.at(ctx).step;
      heard.onStep(stepCount, ledger.costNano());
    },
    onPhase: (_ctx, phase) => heard.onPhase(phase),
    ...(onNote && { onNote }),
    ...(onError && { onError }),
    ...(onDebug && { onDebug }),
  });
  return {
    callbacks: callbacks(countFrom(undefined, 0)),
    callbacksFor: (part, stepsBefore) => callbacks(countFrom(part, stepsBefore)),
    tokens: ledger.tokens,
    spentNano: ledger.spentNano,
    costNano: ledger.costNano,
    steps: () => stepCount,
    oomKills: transcript.oomKills,
    close() {
      closed = true;
      ledger.close();
    },
  };
}

/** An agent may run several times in one attempt, and counts anew each time: here it is counted through. */
function countThrough() {
  const next = { messages: 0, calls: 0 };
  return (part: string | undefined, steps: number) => {
    const before = { steps, ...next };
    return {
      at(ctx: AgentContext): AgentContext {
        const step = ctx.step + before.steps;
        if (ctx.call === undefined) return { ...ctx, step };
        const call = ctx.call + before.calls;
        next.calls = Math.max(next.calls, call + 1);
        return { ...ctx, step, call };
      },
      message(message: Message, index: number): { readonly seq: number; readonly message: Message } {
        const seq = index + before.messages;
        next.messages = Math.max(next.messages, seq + 1);
        const named = { ...message, extra: { ...message.extra, task_step: part } };
        return { seq, message: part === undefined ? message : named };
      },
      programCall({ call, firstMessage, replyMessage, label }: ProgramCallRecord): ProgramCallRecord {
        return {
          label,
          call: { ...call, index: call.index + before.calls, step: call.step + before.steps },
          firstMessage: firstMessage + before.messages,
          replyMessage: replyMessage === null ? null : replyMessage + before.messages,
        };
      },
    };
  };
}
type Count = ReturnType<ReturnType<typeof countThrough>>;

/** An agent that ignores its signal may go on after its end; it must not spend money or write. */
function mustBeOpen(isClosed: () => boolean): void {
  if (isClosed()) throw new Error('the attempt has ended');
}

/** Messages, commands, and the calls of programs. */
function recordTranscript(
  { store, redactor }: Run,
  attemptId: number,
  heard: Heard,
  isClosed: () => boolean,
) {
  /** Commands whose observation has not come yet. */
  const unlinked: number[] = [];
  const program = createProgramRecord(redactor);
  let oomKills = 0;
  const callbacks = (count: Count): AgentCallbacks => ({
    onMessage(_ctx, said, index) {
      mustBeOpen(isClosed);
      const { message, seq } = count.message(said, index);
      const isObservation = message.extra !== undefined && 'raw_output' in message.extra;
      steps.insertMessage(store, {
        attempt_id: attemptId,
        seq,
        role: message.role,
        content: cleanText(message, redactor),
        data: redactor.json(JSON.stringify(message, withoutRawOutput)),
        created_at: new Date().toISOString(),
      });
      const command = isObservation ? unlinked.shift() : undefined;
      if (command !== undefined) steps.linkCommand(store, command, seq);
    },
    onCommand(ctx, said) {
      mustBeOpen(isClosed);
      const record = { ...said, step: count.at({ ...ctx, step: said.step }).step };
      heard.onCommand(record);
      if (record.result.oomKilled) oomKills += 1;
      unlinked.push(steps.insertCommand(store, commandRow(attemptId, record, redactor)));
      crashPoint('command_recorded');
    },
    onProgramCall(_ctx, record) {
      mustBeOpen(isClosed);
      insertProgramCall(store, { attempt_id: attemptId, ...program.row(count.programCall(record)) });
    },
  });
  return { callbacks, oomKills: () => oomKills };
}

/** The built-in agent makes one call after the other. */
const callOf = ({ call = 0 }: AgentContext): number => call;
const keyOf = (ctx: AgentContext, tried: number): string => `${callOf(ctx)}.${tried}`;

/** Model calls and their money: reserved before a call, in the ledger as it begins, settled as it ends. */
function recordCalls(
  { store, redactor, budget, answered }: Run,
  attemptId: number,
  heard: Heard,
  isClosed: () => boolean,
) {
  const open = new Map<string, { id: number; settle: Settle; estimateNano: NanoDollars | null }>();
  /** Money for the calls that begin next; a program may have several out at a time. */
  const granted = new Map<number, Settle>();
  let cost: NanoDollars | null = 0;
  let spent: NanoDollars = 0;
  let tokens = 0;
  const callbacks = (count: Count): AgentCallbacks => ({
    async onCallWanted(own, estimateNano, signal) {
      mustBeOpen(isClosed);
      const ctx = count.at(own);
      const settle = await budget.reserve(estimateNano, signal, () => heard.onPhase('rate_wait'));
      if (isClosed()) settle(0);
      else granted.set(callOf(ctx), settle);
    },
    onCallBegan(own, call) {
      mustBeOpen(isClosed);
      const ctx = count.at(own);
      const settle = granted.get(callOf(ctx)) ?? budget.reserveNow(call.estimateNano);
      granted.delete(callOf(ctx));
      const id = beginCall(store, {
        attempt_id: attemptId,
        step: ctx.step,
        try: call.try,
        label: ctx.label ?? null,
        call: ctx.call ?? null,
        started_at: new Date(call.startedAt).toISOString(),
        model_asked: call.modelAsked,
        estimate_nano: call.estimateNano,
      });
      open.set(keyOf(ctx, call.try), { id, settle, estimateNano: call.estimateNano });
      crashPoint('call_began');
    },
    onCallEnded(own, call) {
      const ctx = count.at(own);
      const began = open.get(keyOf(ctx, call.try));
      if (!began) throw new Error(`model call ${call.try} ended without having begun`);
      open.delete(keyOf(ctx, call.try));
      // Also after the end of the attempt, because a late answer was paid for too.
      endCall(store, began.id, endedRow(call, redactor));
      began.settle(call.costNano);
      if (isClosed()) return;
      if (call.modelAnswered !== null) answered(call.modelAsked, call.modelAnswered);
      spent += call.costNano ?? (call.state === 'ok' ? (began.estimateNano ?? 0) : 0);
      const { usage } = call;
      if (usage) tokens += usage.input + usage.cacheRead + usage.cacheWrite + usage.output;
      cost = cost === null || call.costNano === null ? null : cost + call.costNano;
      crashPoint('call_ended');
    },
  });
  const close = () => {
    for (const settle of granted.values()) settle(0);
    granted.clear();
    for (const { id, settle } of open.values()) {
      loseCall(store, id);
      settle(null);
    }
  };
  return { callbacks, close, costNano: () => cost, spentNano: () => spent, tokens: () => tokens };
}

/** The raw output is stored once, in `commands`; exports put it back. */
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
