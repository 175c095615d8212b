/**
 * `--model replay:RUN`: the replies of an earlier run again, without network and without money spent, for new commands in a real environment.
 * The runner hands in a source: its store, or a recording file. (`swebatch replay FILE` is another purpose: it plays a published trajectory
 * through our loop, outputs and all, and compares every message: agent/replay.)
 *
 * A replayed call carries the cost that was recorded, in the reply and in the ledger, because cost limits and budgets must end
 * an attempt at the same step and the ledger must read the same; nothing is paid, and each row says so in its notes and its
 * price version.
 */

import { createHash } from 'node:crypto';
import { isRecord, recordOf } from '../../base/isRecord.ts';
import { words } from '../../base/text/words.ts';
import type { DialectName } from '../dialects/dialects.ts';
import { type Clock, systemClock } from '../limits/clock.ts';
import {
  abortError,
  type CallListener,
  type CallRecord,
  type Message,
  type Model,
  type ModelErrorResponse,
  type ModelFactory,
  type ModelForAttempt,
  type ModelReply,
  type ModelResponse,
  modelFailure,
  modelSuccess,
  type Usage,
  type Wire,
  type WireAnswer,
  type WireRequest,
  type WireSink,
} from '../model.ts';
import { answerFrom, type CannedAnswer } from './canned.ts';

interface Recorded {
  /** Ledger rows of the tries that failed before it (of a failure: all its tries); they are told to the listener again, without their waits. */
  readonly failedTries?: readonly CallRecord[];
  /** Messages of the recorded history since the reply before this one; compared with those that the replay sends. */
  readonly observed?: readonly Message[];
  /** The agent began a new history with it: it worked on the next step of its task. */
  readonly begins?: boolean;
}

interface RecordedSuccess extends Recorded {
  readonly message: Message;
  readonly finishReason: string | null;
  readonly modelId: string | null;
  readonly responseId?: string | null;
  readonly rawUsage?: unknown;
  readonly usage: Usage | null;
  readonly costNano: number | null;
  readonly providerCostNano?: number | null;
  readonly priceVersion?: string | null;
}

interface RecordedFailure extends Recorded {
  readonly failure: ModelErrorResponse;
}

/** The result of one query of the recorded run: a reply, or the failure that ended it. */
export type RecordedReply = RecordedSuccess | RecordedFailure;

export interface ReplaySource {
  /**
   * Replies in the order in which they were given; empty when the recording does not hold the instance. `earlier` attempts of the trial
   * were played before: of the recorded ones the next is given, the last again and again.
   */
  repliesFor(instanceId: string, epoch: number, earlier: number): Promise<readonly RecordedReply[]>;
  /** The calls of an installed program. */
  readonly wire?: RecordedWire;
}

/** The environment answered differently than in the recording. */
export interface Divergence {
  readonly instanceId: string;
  readonly epoch: number;
  /** Number of the query that carried the difference, 1 for the first. */
  readonly query: number;
  /** Position in the history sent. */
  readonly message: number;
  readonly recorded: string | null;
  readonly now: string | null;
  readonly difference: string;
}

interface ReplayOptions {
  readonly name: string;
  readonly source: ReplaySource;
  readonly latencyMs?: number;
  readonly onDivergence?: (divergence: Divergence) => void;
  readonly clock?: Clock;
}

const textOf = (message: Message | undefined): string | null => {
  if (!message) return null;
  return typeof message.content === 'string' ? message.content : JSON.stringify(message.content);
};

function findDivergence(
  recorded: readonly Message[],
  sent: readonly Message[],
  from: number,
): { at: number; recorded: string | null; now: string | null; difference: string } | null {
  const now = [...sent.entries()].slice(from).filter(([, message]) => message.role !== 'assistant');
  const before = recorded.filter((message) => message.role !== 'assistant');
  for (let index = 0; index < Math.max(now.length, before.length); index += 1) {
    const [was, is] = [textOf(before[index]), textOf(now[index]?.[1])];
    if (was === is) continue;
    const difference =
      was === null
        ? 'the recording has no such message'
        : is === null
          ? 'the message is missing'
          : firstDifference(was, is);
    return { at: now[index]?.[0] ?? sent.length, recorded: was, now: is, difference };
  }
  return null;
}

function answerOf(recorded: RecordedSuccess): CannedAnswer {
  const { extra: _extra, ...message } = recorded.message;
  const body = {
    id: recorded.responseId ?? null,
    object: 'chat.completion',
    model: recorded.modelId,
    choices: [{ index: 0, message, finish_reason: recorded.finishReason }],
    ...(recorded.rawUsage === undefined || recorded.rawUsage === null ? {} : { usage: recorded.rawUsage }),
  };
  return {
    body,
    usage: recorded.usage,
    costNano: recorded.costNano,
    providerCostNano: recorded.providerCostNano ?? null,
    priceVersion: replayedPrice(recorded.priceVersion),
    notes: [NOTE],
    try: recorded.failedTries?.length ?? 0,
  };
}

const NOTE = 'replayed: nothing was paid';

/** Recorded rows of the ledger, told to the listener again without their waits. Rows of a program say it by phase and price too. */
function tellTries(
  tries: readonly CallRecord[],
  listener: CallListener | undefined,
  clock: Clock,
  ofProgram: boolean,
): void {
  for (const row of tries) {
    const startedAt = clock.wall();
    void listener?.began({ try: row.try, modelAsked: row.modelAsked, startedAt, estimateNano: 0 });
    if (ofProgram) listener?.phase?.('model');
    const price = ofProgram && { priceVersion: replayedPrice(row.priceVersion) };
    listener?.ended({ ...row, startedAt, latencyMs: 0, notes: [...row.notes, NOTE], ...price });
  }
}

const replayedPrice = (version: string | null | undefined): string =>
  version ? `replayed: ${version}` : 'replayed';

function replayModel(options: ReplayOptions, attempt: ModelForAttempt): Model {
  const { name } = options;
  const clock = options.clock ?? systemClock;
  const { instanceId, epoch } = attempt;
  const { wire } = options.source;
  let replies: readonly RecordedReply[] | undefined;
  let next = 0;
  let seen = 0;

  function compare(recorded: RecordedReply, sent: readonly Message[]): void {
    if (recorded.begins) seen = 0;
    const found = recorded.observed ? findDivergence(recorded.observed, sent, seen) : null;
    seen = sent.length;
    if (!found) return;
    const { at, ...rest } = found;
    options.onDivergence?.({ instanceId, epoch, query: next + 1, message: at, ...rest });
  }

  return {
    name,
    ...(wire && { wire: replayedWire({ ...options, source: wire, clock }, attempt) }),
    templateVars: () => ({ model_name: name, model_kwargs: {} }),
    async query(messages, queryOptions = {}): Promise<ModelResponse<ModelReply>> {
      if (queryOptions.signal?.aborted) throw abortError(queryOptions.signal);
      replies ??= await options.source.repliesFor(instanceId, epoch, attempt.earlier ?? 0);
      const recorded = replies[next];
      if (!recorded) {
        const text =
          replies.length === 0
            ? `the recording holds no replies for ${instanceId} (epoch ${epoch})`
            : `the recording of ${instanceId} ends after ${replies.length} replies, and the replay asks for another: it took a different way`;
        return modelFailure('PROVIDER_NOT_CONFIGURED', text, {
          provider: 'replay',
          model: name,
          kind: 'unavailable',
        });
      }
      compare(recorded, messages);
      next += 1;
      tellTries(recorded.failedTries ?? [], queryOptions.listener, clock, false);
      if ('failure' in recorded) return recorded.failure;
      return answerFrom(answerOf(recorded), name, options.latencyMs ?? 0, queryOptions, clock);
    },
  };
}

export const createReplayFactory = (options: ReplayOptions): ModelFactory => ({
  name: options.name,
  free: true,
  create: (attempt) => replayModel(options, attempt),
  close: async () => undefined,
});

/** A call of the recorded program. */
export interface RecordedWireCall {
  /** The conversation that it belongs to. */
  readonly thread: string;
  readonly operation: WireRequest['operation'];
  readonly request: unknown;
  readonly answer: {
    readonly end: 'whole' | 'cut' | 'refused' | 'error';
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
    readonly bytes: Uint8Array;
  };
  /** The answer as a message; null where none came. */
  readonly message: Message | null;
  readonly failure: ModelErrorResponse | null;
  /** The call's rows in the ledger, in order. */
  readonly tries: readonly CallRecord[];
}

export interface RecordedProgram {
  readonly calls: readonly RecordedWireCall[];
  /** The end of the recorded attempt, where no answer tells it: the wall clock, the container. */
  readonly end: ModelErrorResponse | null;
}

export interface RecordedWire {
  readonly dialect: DialectName;
  readonly model: string;
  /** As `ReplaySource.repliesFor`. */
  programFor(instanceId: string, epoch: number, earlier: number): Promise<RecordedProgram>;
}

interface WireReplayOptions {
  readonly name: string;
  readonly source: RecordedWire;
  readonly clock: Clock;
}

function replyOf({ message, tries }: RecordedWireCall): ModelReply {
  const row = tries.at(-1);
  const said = message ?? { role: 'assistant', content: '' };
  return {
    message: said,
    content: typeof said.content === 'string' ? said.content : '',
    toolCalls: said.tool_calls ?? [],
    finishReason: row?.finishReason ?? null,
    modelId: row?.modelAnswered ?? null,
    usage: row?.usage ?? null,
    costNano: row?.costNano ?? null,
    raw: null,
  };
}

/** The recorded answer again, to its last byte. */
function answer(call: RecordedWireCall, sink: WireSink | null): WireAnswer {
  const { end, status, headers, bytes } = call.answer;
  const refused = end === 'refused' ? { status, headers, text: Buffer.from(bytes).toString('utf8') } : null;
  if (end === 'whole' || end === 'cut') {
    sink?.head(status, headers);
    sink?.data(bytes);
  }
  if (call.failure) return { response: call.failure, refused };
  return { response: modelSuccess(replyOf(call)), refused };
}

const missing = (name: string, text: string): WireAnswer => ({
  response: modelFailure('PROVIDER_NOT_CONFIGURED', text, {
    provider: 'replay',
    model: name,
    kind: 'unavailable',
  }),
  refused: null,
});

/** A recorded call that was not asked again so far. */
interface UnplayedCall {
  readonly call: RecordedWireCall;
  readonly compared: unknown;
  readonly key: string;
}

/** The request of the recording's next call, and the one that came instead. */
function mismatch(next: UnplayedCall | undefined, now: unknown, recorded: number): string {
  if (!next)
    return recorded === 0
      ? 'the recording holds no such call of the program'
      : `the recording holds ${recorded} such calls of the program, and the replay asks for another: it took a different way`;
  const found = requestDifference(next.compared, now);
  const where = found
    ? `${found.at} ${found.recorded === null ? 'is new' : found.now === null ? 'is missing' : firstDifference(found.recorded, found.now)}`
    : 'it came before in the recording';
  return `the program asks for what the recording does not hold: ${where}`;
}

const sameKind = ({ operation }: WireRequest, call: RecordedWireCall): boolean =>
  (operation === 'count_tokens') === (call.operation === 'count_tokens');

/** Several conversations may go on at a time: the call that has most of this one. */
function closest(waiting: readonly UnplayedCall[], now: unknown): UnplayedCall | undefined {
  const shared = ({ compared }: UnplayedCall): number =>
    Number(/\[(\d+)\]/.exec(requestDifference(compared, now)?.at ?? '')?.[1] ?? -1);
  return waiting.toSorted((a, b) => shared(b) - shared(a))[0];
}

const parse = (bytes: Uint8Array): unknown => JSON.parse(Buffer.from(bytes).toString('utf8')) as unknown;

export function replayedWire(options: WireReplayOptions, attempt: ModelForAttempt): Wire {
  const { name, source, clock } = options;
  const comparable = createComparison();
  const keyOf = (operation: string, compared: unknown): string =>
    createHash('sha256')
      .update(`${operation} ${JSON.stringify(compared)}`)
      .digest('base64');
  /** Recorded conversations by the speaker that goes on with each now. */
  const threads = new Map<string, string>();
  let loaded: Promise<{ waiting: UnplayedCall[]; program: RecordedProgram }> | undefined;
  const load = async () => {
    const program = await source.programFor(attempt.instanceId, attempt.epoch, attempt.earlier ?? 0);
    const waiting = program.calls.map((call) => {
      const compared = comparable(call.request);
      return { call, compared, key: keyOf(call.operation, compared) };
    });
    return { waiting, program };
  };
  return {
    dialect: source.dialect,
    model: source.model,
    async send(request, sink, { signal, listener, speaker = '' } = {}) {
      if (signal?.aborted) throw abortError(signal);
      loaded ??= load();
      const { waiting, program } = await loaded;
      const now = comparable(parse(request.body));
      const key = keyOf(request.operation, now);
      const alikeIn = (mayBe: (thread: string) => boolean): number =>
        waiting.findIndex((one) => one.key === key && mayBe(one.call.thread));
      // Sub-agents that were asked the same say the same at first: each goes on in the conversation that it began with, and begins none of another.
      const known = threads.get(speaker);
      const taken = new Set(threads.values());
      const found = [alikeIn((one) => one === known), alikeIn((one) => !taken.has(one)), alikeIn(() => true)];
      const at = found.find((index) => index >= 0) ?? -1;
      if (at >= 0) {
        const [{ call }] = waiting.splice(at, 1) as [UnplayedCall];
        threads.set(speaker, call.thread);
        tellTries(call.tries, listener, clock, true);
        return answer(call, sink);
      }
      if (program.end) return { response: program.end, refused: null };
      const alike = waiting.filter(({ call }) => sameKind(request, call));
      const recorded = program.calls.filter((call) => sameKind(request, call)).length;
      return missing(name, `${attempt.instanceId}: ${mismatch(closest(alike, now), now, recorded)}`);
    },
  };
}

// A second run of a program has other ids, dates, durations and temporary names than the recorded one: these count as equal.

/** Fields that name a session or a person, or mark a place for a cache, and hold nothing of what is said. */
const UNSAID = new Set(
  words(
    'cache_control prompt_cache_key client_metadata metadata user safety_identifier session_id sessionId user_prompt_id',
  ),
);

const MONTH = '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}';

/** From the longest form to the shortest. */
const VARIABLE: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?:Z| ?[+-]\d{2}:?\d{2})?)?/g, '‹date›'],
  [new RegExp(`\\b\\d{1,2} ${MONTH} \\d{4}\\b`, 'g'), '‹date›'],
  [new RegExp(`\\b${MONTH} {1,4}\\d{1,4}(?:,? \\d{4})?\\b`, 'g'), '‹date›'],
  [/\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6}\b/g, '‹day›'],
  [/\b\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?: ?[AP]M)?\b/g, '‹time›'],
  [/\b\d{1,9}(?:\.\d{1,9})? ?(?:ms|µs|us|ns|s|sec|secs|seconds?|min|minutes?|hours?)\b/g, '‹duration›'],
  [
    /(seconds|duration|duration_ms|elapsed|elapsed_ms|wall_time|time_ms|latency_ms)("?[:=] ?)\d{1,12}(?:\.\d{1,12})?/gi,
    '$1$2‹duration›',
  ],
  [/\b(pid|pids|pgid|process id|session id|session)(:? |=)\d{1,9}\b/gi, '$1$2‹number›'],
  [/\/tmp\/[\w.+-]{1,60}/g, '/tmp/‹name›'],
  [/\b0x[0-9a-f]{1,32}\b/gi, '‹hex›'],
  [/\bID: [0-9a-f]{6,32}\b/g, 'ID: ‹hex›'],
  [/\b\d{10,20}(?:\.\d{1,9})?\b/g, '‹number›'],
];
const HEX = /\b[0-9a-f]{6,128}\b/gi;
const TOKEN = /\b[A-Za-z0-9_-]{16,200}\b/g;

const mixed = (text: string): boolean => /\d/.test(text) && /[A-Za-z]/.test(text);
/** A nonce: no word, no path, no name in snake case has all three. */
const random = (text: string): boolean => /\d/.test(text) && /[A-Z]/.test(text) && /[a-z]/.test(text);

const UUID = [8, 4, 4, 4, 12];

/** A UUID, also behind a prefix, as in msg_…. */
function isUuid(text: string): boolean {
  const parts = text.slice(text.lastIndexOf('_') + 1).split('-');
  return parts.length === UUID.length && parts.every((part, at) => part.length === UUID[at]);
}

export function withoutVariable(text: string): string {
  let out = text.replace(TOKEN, (word) => (random(word) || isUuid(word) ? '‹id›' : word));
  for (const [pattern, name] of VARIABLE) out = out.replace(pattern, name);
  return out.replace(HEX, (word) => (mixed(word) ? '‹hex›' : word));
}

/** The call of a tool that an item answers. */
function answeredCall(item: unknown): string | null {
  const { type, role, tool_use_id, tool_call_id, call_id, functionResponse } = recordOf(item);
  const id =
    type === 'tool_result'
      ? tool_use_id
      : role === 'tool'
        ? tool_call_id
        : typeof type === 'string' && type.endsWith('_output')
          ? call_id
          : recordOf(functionResponse).id;
  return typeof id === 'string' ? id : null;
}

/** Answers of tools that ran beside each other come in the order in which these ended, which is another each time. */
function inOrderOfCalls(items: readonly unknown[]): readonly unknown[] {
  const ids = items.map(answeredCall);
  if (ids.filter((id) => id !== null).length < 2) return items;
  const out: unknown[] = [];
  for (let at = 0; at < items.length; ) {
    let end = at;
    while (end < items.length && ids[end] !== null) end += 1;
    const run = items.slice(at, Math.max(end, at + 1));
    const of = (item: unknown): string => answeredCall(item) ?? '';
    out.push(...run.toSorted((a, b) => Number(of(a) > of(b)) - Number(of(a) < of(b))));
    at += run.length;
  }
  return out;
}

/** Gives requests the form in which they are compared. Each repeats the conversation: a text is looked at once. */
export function createComparison(): (request: unknown) => unknown {
  const known = new Map<string, string>();
  const compared = (text: string): string => {
    const found = known.get(text) ?? withoutVariable(text);
    known.set(text, found);
    return found;
  };
  const comparable = (value: unknown): unknown => {
    if (typeof value === 'string') return compared(value);
    if (Array.isArray(value)) return inOrderOfCalls(value).map(comparable);
    if (!isRecord(value)) return value;
    const kept = Object.entries(value).filter(([key]) => !UNSAID.has(key));
    return Object.fromEntries(
      kept.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, one]) => [key, comparable(one)]),
    );
  };
  return comparable;
}

interface RequestDifference {
  /** messages[3].content */
  readonly at: string;
  readonly recorded: string | null;
  readonly now: string | null;
}

const shownValue = (value: unknown): string | null =>
  value === undefined ? null : typeof value === 'string' ? value : (JSON.stringify(value) ?? null);

/** The first place where two comparable requests differ. */
export function requestDifference(recorded: unknown, now: unknown, at = ''): RequestDifference | null {
  if (recorded === now) return null;
  if (Array.isArray(recorded) && Array.isArray(now)) {
    for (let index = 0; index < Math.max(recorded.length, now.length); index += 1) {
      const found = requestDifference(recorded[index], now[index], `${at}[${index}]`);
      if (found) return found;
    }
    return null;
  }
  if (isRecord(recorded) && isRecord(now)) {
    for (const key of new Set([...Object.keys(recorded), ...Object.keys(now)])) {
      const found = requestDifference(recorded[key], now[key], at === '' ? key : `${at}.${key}`);
      if (found) return found;
    }
    return null;
  }
  return { at: at || 'the request', recorded: shownValue(recorded), now: shownValue(now) };
}

const AROUND = 60;

/** The first place where two texts differ, with what stands around it. */
export function firstDifference(recorded: string, now: string): string {
  let at = 0;
  const end = Math.min(recorded.length, now.length);
  while (at < end && recorded[at] === now[at]) at += 1;
  const from = Math.max(0, at - AROUND);
  const cut = (text: string) => JSON.stringify(text.slice(from, at + AROUND).toWellFormed());
  return `differs at character ${at}: recorded ${cut(recorded)}, now ${cut(now)}`;
}
