/**
 * An attempt as the writers of trajectories take it, and its conversations: of an agent that is a program of others its own, and beside it those of
 * sub-agents and titles. The built-in agent has one.
 */
import type { ExitClass, ExitReason } from '../outcome.ts';

/** The attempt that a trajectory is made from; attempts of the store fit. */
export interface TrajectorySource {
  readonly number: number;
  readonly final: boolean;
  readonly run: string;
  readonly arm: string;
  readonly instanceId: string;
  readonly epoch: number;
  readonly startedAt: string;
  readonly endedAt: string | null;
  readonly exitReason: ExitReason | null;
  readonly exitClass: ExitClass | null;
  readonly exitStatus: string | null;
  readonly errorMessage: string | null;
  readonly submission: Uint8Array | null;
  readonly steps: number;
  readonly costNano: number | null;
  readonly unknownCalls: number;
  readonly config: { readonly agent?: unknown; readonly model?: unknown; readonly environment?: unknown };
  /** `data` is the whole message as JSON, without the output of commands. */
  readonly messages: readonly {
    readonly seq: number;
    readonly role?: string;
    readonly data: string;
    readonly created_at: string;
  }[];
  readonly commands: readonly ShownCommand[];
  /** The calls of an agent that is a program: whose messages are whose. */
  readonly programCalls?: readonly ThreadCall[];
}

export interface ShownCommand {
  /** The message that shows its output; null where none does. */
  readonly message_seq: number | null;
  readonly output: Uint8Array;
  /** Null where nobody told it. */
  readonly exit_code: number | null;
  readonly omitted_bytes: number;
}

/** A call of a program, in the order in which the calls came to their ends. */
export interface ThreadCall {
  readonly call: number;
  /** subagent:ID, title, count_tokens; null for the agent's own turns. */
  readonly label: string | null;
  readonly thread: string;
  /** The first message that it added, and its answer. */
  readonly first_message: number;
  readonly reply_message: number | null;
}

export interface Thread<M> {
  readonly name: string;
  readonly label: string | null;
  readonly calls: readonly number[];
  readonly messages: readonly M[];
}

const MAIN = 'main';
const COUNTED = 'count_tokens';

/** The agent's own conversation first, then the others in the order in which they began. */
export function threadsOf<M extends { readonly seq: number; readonly role?: unknown }>(
  messages: readonly M[],
  calls: readonly ThreadCall[],
): [Thread<M>, ...Thread<M>[]] {
  const all = new Set(calls.map(({ thread }) => thread));
  // A program that has no tools for its model talks in calls that look like titles.
  const own = all.has(MAIN) ? MAIN : (calls.find(({ label }) => label !== COUNTED)?.thread ?? MAIN);
  const nameOf = namesBySeq(calls, own);
  const said = Map.groupBy(messages, (message) => (message.role === 'exit' ? own : nameOf(message.seq)));
  const thread = (name: string): Thread<M> => {
    const its = calls.filter((call) => call.thread === name);
    return {
      name,
      label: its[0]?.label ?? null,
      calls: its.map(({ call }) => call),
      messages: said.get(name) ?? [],
    };
  };
  all.delete(own);
  return [thread(own), ...[...all].map(thread)];
}

/** The name of the conversation of each message, by its number; empty for the built-in agent. */
export function namesOfMessages(
  messages: readonly { readonly seq: number; readonly role?: unknown }[],
  calls: readonly ThreadCall[],
): string[] {
  if (calls.length === 0) return [];
  const names: string[] = [];
  for (const thread of threadsOf(messages, calls))
    for (const { seq } of thread.messages) names[seq] = thread.name;
  return names;
}

/** The agent to whose conversation a message belongs. The messages that a call adds lie together. */
function namesBySeq(calls: readonly ThreadCall[], own: string): (seq: number) => string {
  // Counting tokens adds no messages; of two calls with the same beginning, the first added none.
  const adding = calls
    .filter(({ label }) => label !== COUNTED)
    .toSorted((a, b) => a.first_message - b.first_message);
  let at = 0;
  return (seq) => {
    if (at > 0 && adding[at - 1]!.first_message > seq) at = 0;
    while (at < adding.length && adding[at]!.first_message <= seq) at += 1;
    return adding[at - 1]?.thread ?? own;
  };
}
