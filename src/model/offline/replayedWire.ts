/**
 * The provider of a program that is played again: each request is answered as it was in the recording, byte for byte, without network
 * and without money spent. A request that the recording does not hold ends the attempt, because nobody knows its answer.
 */
import { createHash } from 'node:crypto';
import type { DialectName } from '../dialects/dialects.ts';
import { abortError, modelFailure, modelSuccess } from '../failure.ts';
import type { Clock } from '../limits/clock.ts';
import type {
  CallListener,
  CallRecord,
  Message,
  ModelErrorResponse,
  ModelForAttempt,
  ModelReply,
  Wire,
  WireAnswer,
  WireRequest,
  WireSink,
} from '../model.ts';
import { createComparison, firstDifference, requestDifference } from './sameRequest.ts';

/** A call of the recorded program. */
export interface RecordedWireCall {
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
  /** Its rows in the ledger, in order. */
  readonly tries: readonly CallRecord[];
}

export interface RecordedProgram {
  readonly calls: readonly RecordedWireCall[];
  /** How the recorded attempt ended, where no answer tells it: the wall clock, the container. */
  readonly end: ModelErrorResponse | null;
}

export interface RecordedWire {
  readonly dialect: DialectName;
  readonly model: string;
  /** As `ReplaySource.repliesFor`. */
  programFor(instanceId: string, epoch: number, earlier: number): Promise<RecordedProgram>;
}

export interface WireReplayOptions {
  readonly name: string;
  readonly source: RecordedWire;
  readonly costs?: 'recorded' | 'none';
  readonly clock: Clock;
}

const NOTE = 'replayed: nothing was paid';

function tellTries(
  { tries }: RecordedWireCall,
  free: boolean,
  listener: CallListener | undefined,
  clock: Clock,
): void {
  for (const row of tries) {
    const startedAt = clock.wall();
    listener?.began({ try: row.try, modelAsked: row.modelAsked, startedAt, estimateNano: 0 });
    listener?.phase?.('model');
    listener?.ended({
      ...row,
      ...{ startedAt, latencyMs: 0, notes: [...row.notes, NOTE] },
      costNano: free ? 0 : row.costNano,
      priceVersion: row.priceVersion === null ? 'replayed' : `replayed: ${row.priceVersion}`,
    });
  }
}

function replyOf({ message, tries }: RecordedWireCall, free: boolean): ModelReply {
  const row = tries.at(-1);
  const said = message ?? { role: 'assistant', content: '' };
  return {
    message: said,
    content: typeof said.content === 'string' ? said.content : '',
    toolCalls: said.tool_calls ?? [],
    finishReason: row?.finishReason ?? null,
    modelId: row?.modelAnswered ?? null,
    usage: row?.usage ?? null,
    costNano: free ? 0 : (row?.costNano ?? null),
    raw: null,
  };
}

/** The recorded answer again, to its last byte. */
function answer(call: RecordedWireCall, sink: WireSink | null, free: boolean): WireAnswer {
  const { end, status, headers, bytes } = call.answer;
  const refused = end === 'refused' ? { status, headers, text: Buffer.from(bytes).toString('utf8') } : null;
  if (end === 'whole' || end === 'cut') {
    sink?.head(status, headers);
    sink?.data(bytes);
  }
  if (call.failure) return { response: call.failure, refused };
  return { response: modelSuccess(replyOf(call, free)), refused };
}

const missing = (name: string, text: string): WireAnswer => ({
  response: modelFailure('PROVIDER_NOT_CONFIGURED', text, {
    ...{ provider: 'replay', model: name, kind: 'unavailable' },
  }),
  refused: null,
});

/** Not asked again so far. */
interface Waiting {
  readonly call: RecordedWireCall;
  readonly compared: unknown;
  readonly key: string;
}

/** What the next call of the recording asked, and what is asked instead. */
function mismatch(next: Waiting | undefined, now: unknown, recorded: number): string {
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
function closest(waiting: readonly Waiting[], now: unknown): Waiting | undefined {
  const shared = ({ compared }: Waiting): number =>
    Number(/\[(\d+)\]/.exec(requestDifference(compared, now)?.at ?? '')?.[1] ?? -1);
  return waiting.toSorted((a, b) => shared(b) - shared(a))[0];
}

const parse = (bytes: Uint8Array): unknown => JSON.parse(Buffer.from(bytes).toString('utf8')) as unknown;

export function replayedWire(options: WireReplayOptions, attempt: ModelForAttempt): Wire {
  const { name, source, clock } = options;
  const free = options.costs === 'none';
  const comparable = createComparison();
  const keyOf = (operation: string, compared: unknown): string =>
    createHash('sha256')
      .update(`${operation} ${JSON.stringify(compared)}`)
      .digest('base64');
  let loaded: Promise<{ waiting: Waiting[]; program: RecordedProgram }> | undefined;
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
    async send(request, sink, { signal, listener } = {}) {
      if (signal?.aborted) throw abortError(signal);
      loaded ??= load();
      const { waiting, program } = await loaded;
      const now = comparable(parse(request.body));
      const key = keyOf(request.operation, now);
      const at = waiting.findIndex((one) => one.key === key);
      if (at >= 0) {
        const [{ call }] = waiting.splice(at, 1) as [Waiting];
        tellTries(call, free, listener, clock);
        return answer(call, sink, free);
      }
      if (program.end) return { response: program.end, refused: null };
      const alike = waiting.filter(({ call }) => sameKind(request, call));
      const recorded = program.calls.filter((call) => sameKind(request, call)).length;
      return missing(name, `${attempt.instanceId}: ${mismatch(closest(alike, now), now, recorded)}`);
    },
  };
}
