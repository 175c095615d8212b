/** The replies that `--model replay:NAME` plays again: of a run of this results root, or of a recording file; `/ARM` picks one arm. */
import { statSync } from 'node:fs';
import { z } from 'zod';
import { DIALECT_NAMES } from '../../model/dialects/dialects.ts';
import { type StoredReply, storedReply } from '../../model/dialects/everyDialect.ts';
import {
  BAD_CALL_SAYS,
  type CallRecord,
  type Message,
  MODEL_ERROR_CODES,
  type ModelErrorCode,
  type ModelErrorResponse,
  type ModelFailureKind,
} from '../../model/model.ts';
import type {
  RecordedProgram,
  RecordedReply,
  RecordedWire,
  ReplaySource,
} from '../../model/offline/replayed.ts';
import { EXIT_REASONS, type ExitReason, exitClassOf } from '../../outcome.ts';
import type { Store } from '../../store/open.ts';
import { messagesOf } from '../../store/records/attemptBodies.ts';
import { type EndedCallRow, endedCalls, firstProgramCall } from '../../store/records/modelCalls.ts';
import {
  type PlayedAttempt,
  playedAttempts,
  playedTrialOf,
  playedTrials,
} from '../../store/records/playedAttempts.ts';
import { armsOf, type RunRow } from '../../store/records/runs.ts';
import { type AttemptRow, attemptById } from '../../store/records/trials.ts';
import type { ArmConfig } from '../plan/planRecord.ts';
import { lazyStore, requireRun } from '../resultsRoot.ts';
import { UserError } from '../userError.ts';
import { callOf } from './ledgerRow.ts';
import { programOf } from './programRecord.ts';
import { openRecording, type RecordedTrial } from './recording.ts';

const KINDS: Partial<Record<ExitReason, ModelFailureKind>> = {
  model_unavailable: 'unavailable',
  model_rejected: 'rejected',
  model_refusal: 'refusal',
  quota_exhausted: 'quota',
  auth_failed: 'auth',
  model_not_found: 'not_found',
  context_window_exceeded: 'context',
  empty_responses_exceeded: 'empty',
  format_errors_exceeded: 'bad_call',
  config_invalid: 'config',
};

/** The replies of every trial, for a recording. */
export function* recordedTrials(store: Store, run: RunRow): Generator<RecordedTrial> {
  // All ids are read first, so that no statement is open while the rows of a trial are read.
  for (const { id, ...trial } of playedTrials(store, run.id))
    for (const [attempt, played] of playedAttempts(store, id).entries())
      yield { ...trial, attempt, replies: repliesOf(store, played) };
}

/** Replies by instance and epoch: of one arm, or of the first that has the instance. */
function replaySourceOf(store: Store, run: RunRow, armId?: number): ReplaySource {
  const playedFor = (instanceId: string, epoch: number, earlier: number): PlayedAttempt | undefined => {
    const trial = playedTrialOf(store, run.id, instanceId, epoch, armId);
    const attempts = trial === undefined ? [] : playedAttempts(store, trial);
    return attempts[Math.min(earlier, attempts.length - 1)];
  };
  const wire = recordedWireOf(store, run, armId, (...trial) => {
    const played = playedFor(...trial);
    if (!played) return { calls: [], end: null };
    const end = endOf(attemptById(store, played.id), played.again)?.failure ?? null;
    return { calls: programOf(store, played.id), end };
  });
  return {
    ...(wire && { wire }),
    async repliesFor(...trial) {
      const played = playedFor(...trial);
      return played ? repliesOf(store, played) : [];
    },
  };
}

function repliesOf(store: Store, { id, again }: PlayedAttempt): RecordedReply[] {
  const kept = keptResponses(store, id);
  const attempt = attemptById(store, id);
  const failure = modelFailureOf(attempt);
  const end = endOf(attempt, again);
  let next = 0;
  let ended = false;
  const replies = queriesOf(store, id).flatMap((query): RecordedReply[] => {
    const { failedTries } = query;
    if (query.empty) return [{ failure: query.empty, failedTries }];
    if (query.answer === null) {
      ended = end !== null;
      const last = end ?? failure;
      return last ? [{ ...last, failedTries }] : [];
    }
    const response = kept[next++];
    return response
      ? [
          {
            ...replyOf(response.reply, query),
            observed: response.observed,
            ...(response.begins && { begins: true }),
          },
        ]
      : [];
  });
  return end && !ended ? [...replies, end] : replies;
}

/**
 * The response bodies of the history in order, each with the messages since the one before. The published agent drops a malformed reply
 * and keeps its response in the error message.
 */
function keptResponses(store: Store, attemptId: number) {
  const kept: { reply: StoredReply; observed: Message[]; begins: boolean }[] = [];
  let observed: Message[] = [];
  let taskStep: unknown;
  let begins = false;
  for (const stored of messagesOf(store, attemptId)) {
    const message = JSON.parse(stored.data) as Message;
    // Each step of a task has a history of its own.
    if (message.extra?.task_step !== taskStep) {
      begins = kept.length > 0;
      taskStep = message.extra?.task_step;
      observed = [];
    }
    const reply = storedReply(message.extra?.response);
    if (reply) {
      kept.push({ reply, observed, begins });
      begins = false;
      observed = message.role === 'assistant' ? [] : [message];
    } else observed = [...observed, message];
  }
  return kept;
}

/** A query of the agent: the tries that failed, and the one that answered. */
interface Query {
  readonly failedTries: CallRecord[];
  readonly answer: CallRecord | null;
  /** The answer was empty, so the agent asks again and counts. */
  readonly empty: ModelErrorResponse | null;
}

function queriesOf(store: Store, attemptId: number): Query[] {
  const queries: Query[] = [];
  let failedTries: CallRecord[] = [];
  for (const row of endedCalls(store, attemptId)) {
    const empty = emptyAnswer(row);
    if (row.state === 'ok' || empty) {
      // An empty answer was a call too, so its row is among the failed tries.
      queries.push({
        failedTries: empty ? [...failedTries, callOf(row)] : failedTries,
        answer: empty ? null : callOf(row),
        empty,
      });
      failedTries = [];
    } else failedTries.push(callOf(row));
  }
  return failedTries.length > 0 ? [...queries, { failedTries, answer: null, empty: null }] : queries;
}

/** Failures after which the agent asked on, by how their message begins. */
const ASKED_ON = [
  ['empty response', 'empty'],
  [BAD_CALL_SAYS, 'bad_call'],
] as const;

function emptyAnswer({ error_code, error_message }: EndedCallRow): ModelErrorResponse | null {
  const kind = ASKED_ON.find(([begins]) => error_message?.startsWith(begins))?.[1];
  if (error_code !== 'INVALID_RESPONSE' || error_message === null || !kind) return null;
  return { success: false, error: error_code, message: error_message, metadata: { kind } };
}

function replyOf({ message, finishReason, modelId, responseId }: StoredReply, query: Query): RecordedReply {
  const call = query.answer;
  return {
    failedTries: query.failedTries,
    message: message as Message,
    finishReason,
    modelId,
    responseId,
    rawUsage: call?.rawUsage ?? null,
    usage: call?.usage ?? null,
    costNano: call?.costNano ?? null,
    providerCostNano: call?.providerCostNano ?? null,
    priceVersion: call?.priceVersion ?? null,
  };
}

type Failure = Extract<RecordedReply, { failure: unknown }>;

/** An end without a reply: the wall clock, the container. The replay reaches it after the last recorded reply. */
function endOf(attempt: AttemptRow | undefined, again: boolean): Failure | null {
  const { exit_reason: reason, exit_detail: detail, exit_status: status, error_message } = attempt ?? {};
  if (!reason || (reason !== 'limit_wall_time' && exitClassOf(reason) !== 'infra')) return null;
  const end = { reason, detail: detail ?? null, exitStatus: status ?? 'ModelFailed', again };
  const message = error_message ?? `the recorded attempt ended here: ${EXIT_REASONS[reason].says}`;
  return failureOf(isCode(detail) ? detail : 'UNKNOWN', message, {
    kind: KINDS[reason] ?? 'unavailable',
    recordedEnd: end,
  });
}

/** The failure of the model that ended the attempt, which the replay repeats. */
function modelFailureOf(attempt: AttemptRow | undefined): Failure | null {
  const kind = attempt?.exit_reason ? KINDS[attempt.exit_reason] : undefined;
  if (!attempt || !kind || !isCode(attempt.exit_detail)) return null;
  return failureOf(attempt.exit_detail, attempt.error_message ?? '', { kind });
}

const failureOf = (
  error: ModelErrorCode,
  message: string,
  metadata: NonNullable<ModelErrorResponse['metadata']>,
): Failure => ({ failure: { success: false, error, message, metadata } });

const isCode = (text: string | null | undefined): text is ModelErrorCode =>
  (MODEL_ERROR_CODES as readonly (string | null | undefined)[]).includes(text);

const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() === true;

/**
 * The store is opened only for a run: a recording needs none. `playing` is the arm that plays it: with several recorded arms and none
 * named, it plays the arm of its own name. Arms come with the model that their predictions name.
 */
export function openReplay(name: string, store: () => Store, playing?: string) {
  const slash = name.lastIndexOf('/');
  const [target, named] =
    slash > 0 && !isFile(name) ? [name.slice(0, slash), name.slice(slash + 1)] : [name, undefined];
  const chosen = (arms: readonly { name: string }[]): string | undefined =>
    named ?? (arms.some((a) => a.name === playing) ? playing : undefined);
  const pick = <T extends { name: string }>(arms: readonly T[]): readonly T[] => {
    const arm = chosen(arms);
    const found = arm === undefined ? arms : arms.filter((a) => a.name === arm);
    if (found.length > 0) return found;
    throw new UserError(`${target} has no arm "${arm}"`, {
      hint: `it has: ${arms.map((a) => a.name).join(', ')}`,
    });
  };
  if (isFile(target)) {
    const recording = readRecording(target);
    return { arms: pick(recording.index.arms), source: recording.source(chosen(recording.index.arms)) };
  }
  if (target.includes('/')) throw new UserError(`there is no recording ${name}`);
  const db = store();
  const run = requireRun(db, target);
  const all = armsOf(db, run.id);
  const arms = pick(all);
  return { arms, source: replaySourceOf(db, run, chosen(all) === undefined ? undefined : arms[0]!.id) };
}

function readRecording(path: string) {
  try {
    return openRecording(path);
  } catch (error) {
    throw new UserError((error as Error).message);
  }
}

/** A replay predicts under the name of the model that it plays. */
export function asRecorded(arm: ArmConfig, root: string): ArmConfig {
  const name = arm.model.model_name ?? '';
  if (!name.startsWith('replay:')) return arm;
  using store = lazyStore(root);
  const { arms } = openReplay(name.slice('replay:'.length), store.get, arm.name);
  return { ...arm, predictsAs: arms[0]!.model };
}

/** undefined where no program made calls. */
function recordedWireOf(
  store: Store,
  run: RunRow,
  armId: number | undefined,
  programFor: (...trial: Parameters<RecordedWire['programFor']>) => RecordedProgram,
): RecordedWire | undefined {
  const found = firstProgramCall(store, run.id, armId ?? null);
  if (!found) return undefined;
  return {
    dialect: z.enum(DIALECT_NAMES).parse(found.dialect),
    model: found.model,
    programFor: async (...trial) => programFor(...trial),
  };
}
