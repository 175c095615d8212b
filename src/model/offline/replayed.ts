/**
 * `--model replay:RUN`: the replies of an earlier run again, without network and without money spent. Where they come from is
 * not known here: the runner hands in a source that reads its store, or a published trajectory.
 *
 * A replayed call carries the cost that was recorded, in the reply and in the ledger, because cost limits and budgets must end
 * an attempt at the same step and the ledger must read the same; nothing is paid, and each row says so in its notes and its
 * price version. `costs: 'none'` writes 0 instead.
 */

import { abortError, modelFailure } from '../failure.ts';
import { type Clock, systemClock } from '../limits/clock.ts';
import type {
  CallRecord,
  Message,
  Model,
  ModelErrorResponse,
  ModelFactory,
  ModelForAttempt,
  ModelReply,
  ModelResponse,
  QueryOptions,
  Usage,
} from '../model.ts';
import { answerFrom, type CannedAnswer } from './canned.ts';
import { type RecordedWire, replayedWire } from './replayedWire.ts';
import { firstDifference } from './sameRequest.ts';

interface Recorded {
  /** Ledger rows of the tries that failed before it (of a failure: all its tries); they are told to the listener again, without their waits. */
  readonly failedTries?: readonly CallRecord[];
  /** What the recorded history held since the reply before this one; compared with what the replay sends. */
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

/** What one query of the recorded run came to: a reply, or the failure that ended it. */
export type RecordedReply = RecordedSuccess | RecordedFailure;

export interface ReplaySource {
  /**
   * Replies in the order in which they were given; empty when the recording does not hold the instance. `earlier` attempts of the trial
   * were played before: of the recorded ones the next is given, the last again and again.
   */
  repliesFor(instanceId: string, epoch: number, earlier: number): Promise<readonly RecordedReply[]>;
  /** Where an installed program made the calls. */
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

export interface ReplayOptions {
  readonly name: string;
  readonly source: ReplaySource;
  readonly costs?: 'recorded' | 'none';
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

function answerOf(recorded: RecordedSuccess, free: boolean): CannedAnswer {
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
    costNano: free ? 0 : recorded.costNano,
    providerCostNano: recorded.providerCostNano ?? null,
    priceVersion: recorded.priceVersion ? `replayed: ${recorded.priceVersion}` : 'replayed',
    notes: ['replayed: nothing was paid'],
    try: recorded.failedTries?.length ?? 0,
  };
}

function tellFailedTries(tries: readonly CallRecord[], options: QueryOptions, clock: Clock): void {
  for (const row of tries) {
    const startedAt = clock.wall();
    options.listener?.began({ try: row.try, modelAsked: row.modelAsked, startedAt, estimateNano: 0 });
    options.listener?.ended({
      ...row,
      startedAt,
      latencyMs: 0,
      notes: [...row.notes, 'replayed: nothing was paid'],
    });
  }
}

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
      tellFailedTries(recorded.failedTries ?? [], queryOptions, clock);
      if ('failure' in recorded) return recorded.failure;
      const free = options.costs === 'none';
      return answerFrom(answerOf(recorded, free), name, options.latencyMs ?? 0, queryOptions, clock);
    },
  };
}

/** For one conversation whose replies are at hand. */
export const createReplayModel = (
  replies: readonly RecordedReply[],
  options: Partial<ReplayOptions> = {},
): Model =>
  replayModel(
    { name: 'replay', ...options, source: { repliesFor: async () => replies } },
    { instanceId: 'replay', epoch: 1 },
  );

export const createReplayFactory = (options: ReplayOptions): ModelFactory => ({
  name: options.name,
  free: true,
  create: (attempt) => replayModel(options, attempt),
  close: async () => undefined,
});
