/** Which conversation a call of a program goes on with, what it adds to it, and what its newest calls came to. Pure. */
import { createHash } from 'node:crypto';
import type { Message, ModelErrorResponse } from '../../model/model.ts';
import type { CallFacts, CallLabel } from './gateway.ts';

interface Thread {
  readonly name: string;
  /** Digests of the messages so far; null for a reply, which comes back in a form of the program's own. */
  readonly known: (string | null)[];
}

/** Marks of a cache move from turn to turn; they are no part of what was said. */
const withoutMarks = (key: string, value: unknown): unknown => (key === 'cache_control' ? undefined : value);

const digest = (message: Message): string =>
  createHash('sha256').update(JSON.stringify(message, withoutMarks)).digest('base64');

/** Names of conversations that are no sub-agent's. The id of a sub-agent is the program's own word. */
const RESERVED = /^(main|title|count_tokens)(-\d+)?$/;

function nameOf(label: CallLabel): string {
  if (label.kind !== 'subagent') return label.kind;
  return RESERVED.test(label.id) ? `subagent-${label.id}` : label.id;
}

/** The number of messages of the request that are known in this order. */
function common({ known }: Thread, request: readonly Message[], digests: readonly string[]): number {
  let same = 0;
  while (same < known.length && same < request.length) {
    const expected = known[same];
    if (expected === null ? request[same]!.role !== 'assistant' : expected !== digests[same]) break;
    same += 1;
  }
  return same;
}

const opening = (request: readonly Message[]): number => {
  const first = request.findIndex(({ role }) => role !== 'system');
  return first < 0 ? request.length : first + 1;
};

export function createThreads() {
  const threads = new Map<string, Thread[]>();
  return {
    /** Messages that a call adds to its conversation, and the name of that. */
    add(label: CallLabel, request: readonly Message[], reply: Message | null) {
      const base = nameOf(label);
      const siblings = threads.get(base) ?? [];
      threads.set(base, siblings);
      const digests = request.map(digest);
      const found = siblings
        .map((thread) => ({ thread, same: common(thread, request, digests) }))
        .sort((a, b) => b.same - a.same)[0];
      // The same task at the beginning is the same conversation, also when what came later was rewritten (observed:
      // tests/agent/gateway/threads.test.ts).
      const goesOn =
        found !== undefined && found.same >= Math.min(opening(request), found.thread.known.length);
      const thread = goesOn
        ? found.thread
        : { name: siblings.length === 0 ? base : `${base}-${siblings.length + 1}`, known: [] };
      if (!goesOn) siblings.push(thread);
      const same = goesOn ? found.same : 0;
      thread.known.splice(same, thread.known.length, ...digests.slice(same), ...(reply ? [null] : []));
      const added = request.slice(same);
      return { thread: thread.name, messages: reply ? [...added, reply] : added };
    },
  };
}

interface Newest {
  readonly index: number;
  readonly failure: ModelErrorResponse | null;
  /** The model called no tool: nothing more is asked for. */
  readonly done: boolean;
}
const NONE: Newest = { index: -1, failure: null, done: false };

export function createTurns() {
  const newest = { main: NONE, subagent: NONE, title: NONE };
  return {
    ended(
      { index, label: { kind } }: CallFacts,
      said: ModelErrorResponse | null,
      calledTools: boolean,
    ): void {
      // Calls end in any order: the one that began last knows most (observed: tests/agent/gateway/agentTurns.test.ts).
      if (kind === 'count_tokens' || index < newest[kind].index) return;
      // An empty answer is how some models say that they are done, and the program has read it (observed: tests/agent/gateway/agentTurns.test.ts).
      const failure = said?.metadata?.kind === 'empty' ? null : said;
      newest[kind] = { index, failure, done: failure === null && !calledTools };
    },
    /** The failure that the newest call of the program's own told it; that of one of a sub-agent only where its own did not end the work. */
    lastFailure(): ModelErrorResponse | null {
      const { main, subagent, title } = newest;
      // A program that has no tools for its model talks in calls that look like titles (observed: tests/agent/gateway/agentTurns.test.ts).
      if (main === NONE && subagent === NONE) return title.failure;
      return main.failure ?? (main.done ? null : subagent.failure);
    },
  };
}
