/**
 * Plays a recorded trajectory through the agent that `run` uses and compares every message. Replies and command outputs come from the
 * recording (or the commands run for real in a given environment); all other text is rendered anew.
 */
import { isRecord } from '../../base/isRecord.ts';
import type { Environment } from '../../environment/environment.ts';
import type { Model, ModelReply } from '../../model/model.ts';
import { nanoToDollars } from '../../money.ts';
import type { AgentResult } from '../contract.ts';
import { createAgent } from '../loop/agent.ts';
import { timeExceeded } from '../loop/deadline.ts';
import { type RecordedMessage, type RecordedTrajectory, readRecording } from './readRecording.ts';
import { OWN_ENDS, type Script, scriptOf } from './script.ts';

interface Difference {
  /** Index of the message, or what differs at the end. */
  readonly where: number | 'exit_status' | 'submission' | 'cost' | 'replay';
  readonly recorded: string;
  readonly replayed: string;
}

export interface ReplayResult {
  readonly instance_id: string;
  readonly messages: { readonly equal: number; readonly total: number };
  readonly exit_status_equal: boolean;
  readonly submission_equal: boolean;
  readonly cost_equal: boolean;
  readonly differences: readonly Difference[];
  /** Observations whose middle the recording left out; they were played with as many other characters. */
  readonly elided: readonly { readonly message: number; readonly characters: number }[];
  /** Messages whose reply the recording does not hold; one that earns the same answer stood in. */
  readonly standIns: readonly number[];
}

interface PlayOptions {
  /** Runs the recorded commands for real instead of answering with recorded outputs. */
  readonly environment?: Environment;
}

/** Dollars; the sum of many calls may differ in its last digits. */
const SAME_COST = 1e-9;

export const isEqual = (result: ReplayResult): boolean => result.differences.length === 0;

export async function replayTrajectory(json: unknown, options: PlayOptions = {}): Promise<ReplayResult> {
  const recording = readRecording(json);
  const script = scriptOf(recording);
  const played = await play(recording, script, options.environment);
  return compare(recording, script, played);
}

interface Played {
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  readonly result: AgentResult | null;
  readonly failure: string | null;
}

class RecordingEnded extends Error {}

async function play(
  recording: RecordedTrajectory,
  script: Script,
  real: Environment | undefined,
): Promise<Played> {
  const messages: Record<string, unknown>[] = [];
  let asked = 0;
  const model: Model = {
    name: recording.modelName,
    templateVars: () => recording.modelVars,
    async query() {
      const reply: ModelReply | undefined = script.replies[asked++];
      if (!reply) throw new RecordingEnded();
      return { success: true, result: reply, message: 'recorded' };
    },
  };
  const agent = createAgent({
    instanceId: recording.instanceId,
    model,
    environment: real ?? recordedEnvironment(recording, script),
    config: recording.config,
    callbacks: { onMessage: (_ctx, message) => messages.push(message) },
    // A recorded wall-clock end comes when the replies are used up, and never before.
    now: () =>
      recording.exitStatus === 'TimeExceeded' && asked >= script.replies.length ? Number.MAX_VALUE : 0,
  });
  try {
    return { messages, result: await agent.run(script.task), failure: null };
  } catch (error) {
    const ended = error instanceof RecordingEnded;
    return { messages, result: null, failure: ended ? null : (error as Error).message };
  }
}

function recordedEnvironment(recording: RecordedTrajectory, script: Script): Environment {
  let next = 0;
  return {
    info: { kind: 'recorded', transport: 'local', history: 'absent', notes: [] },
    templateVars: () => recording.environmentVars,
    async execute() {
      const result = script.results[next++];
      if (result) return result;
      if (recording.exitStatus === 'TimeExceeded')
        throw timeExceeded(recording.config.wall_time_limit_seconds);
      throw new RecordingEnded();
    },
    capturePatch: async () => ({ patch: new Uint8Array(), state: 'empty', warnings: [] }),
    putFile: async () => {},
    getFile: async () => new Uint8Array(),
    close: async () => {},
  };
}

function compare(recording: RecordedTrajectory, script: Script, played: Played): ReplayResult {
  const differences: Difference[] = script.notes.map((note) => ({
    where: 'replay',
    recorded: note,
    replayed: '',
  }));
  if (played.failure !== null)
    differences.push({ where: 'replay', recorded: '', replayed: `the replay failed: ${played.failure}` });
  const outside = !OWN_ENDS.has(recording.exitStatus);
  const recorded = outside ? recording.messages.filter((m) => m.role !== 'exit') : recording.messages;
  const total = Math.max(recorded.length, played.messages.length);
  let equal = 0;
  for (let i = 0; i < total; i++) {
    const [a, b] = [comparable(recorded[i]), comparable(played.messages[i])];
    if (a === b) equal += 1;
    else differences.push({ where: i, recorded: a, replayed: b });
  }
  const { result } = played;
  const lastSays = recording.messages.at(-1)?.extra?.exit_status;
  const ended = typeof lastSays === 'string' ? lastSays : recording.exitStatus;
  const status = result?.exitStatus ?? (outside && played.failure === null ? ended : '');
  const submission = result?.submission ?? '';
  // Version 1 kept the text of an exception where the submission belongs.
  const handedIn = outside && recording.format === 'mini-swe-agent-1' ? '' : recording.submission;
  const cost =
    result === null || result.costNano === null ? sumOfReplies(script) : nanoToDollars(result.costNano);
  const { costDollars } = recording;
  const costEqual =
    cost === null || costDollars === null ? cost === costDollars : Math.abs(cost - costDollars) <= SAME_COST;
  if (status !== recording.exitStatus)
    differences.push({ where: 'exit_status', recorded: recording.exitStatus, replayed: status });
  if (submission !== handedIn)
    differences.push({ where: 'submission', recorded: handedIn, replayed: submission });
  if (!costEqual)
    differences.push({
      where: 'cost',
      recorded: String(costDollars ?? 'unknown'),
      replayed: String(cost ?? 'unknown'),
    });
  return {
    instance_id: recording.instanceId,
    messages: { equal, total },
    exit_status_equal: status === recording.exitStatus,
    submission_equal: submission === handedIn,
    cost_equal: costEqual,
    differences,
    elided: script.elided,
    standIns: script.standIns,
  };
}

function sumOfReplies(script: Script): number | null {
  let total = 0;
  for (const { costNano } of script.replies) {
    if (costNano === null) return null;
    total += costNano;
  }
  return nanoToDollars(total);
}

/** What of a message must be the same: everything but bookkeeping, and fields that are not there or null, which clients add and drop. */
function comparable(message: RecordedMessage | Readonly<Record<string, unknown>> | undefined): string {
  if (!message) return '(no message)';
  const { extra: _, timestamp: __, native: ___, ...own } = message as Record<string, unknown>;
  const said = Array.isArray(own.tool_calls) ? { ...own, tool_calls: own.tool_calls.map(calledWith) } : own;
  const kept = Object.entries(said).filter(([, value]) => value !== null && value !== undefined);
  return JSON.stringify(Object.fromEntries(kept.sort(([a], [b]) => (a < b ? -1 : 1))), sortedKeys);
}
/** Clients add to a call where in the reply it stood, and what its provider signed. */
function calledWith(call: unknown): unknown {
  const { id, function: called } = (call ?? {}) as Record<string, unknown>;
  return { id, function: called };
}
const sortedKeys = (_key: string, value: unknown): unknown =>
  isRecord(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value;
