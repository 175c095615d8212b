/** Which calls of a program are turns of its agent, and whether it got past the last of them. */
import type { ModelErrorResponse } from '../../model/model.ts';
import type { CallFacts, CallLabel } from './gateway.ts';
import type { Allowed, Ask } from './policy.ts';
import { subAgentOf } from './requestHeaders.ts';

export const isStep = (label: CallLabel): boolean => label.kind === 'main' || label.kind === 'subagent';

export function labelOf({ operation, headers }: Ask, { hasTools }: Allowed): CallLabel {
  if (operation === 'count_tokens') return { kind: 'count_tokens' };
  const id = subAgentOf(headers);
  if (id !== null) return { kind: 'subagent', id };
  return hasTools ? { kind: 'main' } : { kind: 'title' };
}

interface Newest {
  readonly index: number;
  readonly failure: ModelErrorResponse | null;
  /** The model called no tool: nothing more is asked for. */
  readonly done: boolean;
}
const NONE: Newest = { index: -1, failure: null, done: false };

export interface Turns {
  ended(call: CallFacts, failure: ModelErrorResponse | null, calledTools: boolean): void;
  /** What the program was told by the newest call of its own; by one of a sub-agent only where its own did not end the work. */
  lastFailure(): ModelErrorResponse | null;
}

export function createTurns(): Turns {
  const newest = { main: NONE, subagent: NONE, title: NONE };
  return {
    ended({ index, label: { kind } }, said, calledTools) {
      // Calls end in any order: the one that began last knows most.
      if (kind === 'count_tokens' || index < newest[kind].index) return;
      // An empty answer is how some models say that they are done, and the program has read it.
      const failure = said?.metadata?.kind === 'empty' ? null : said;
      newest[kind] = { index, failure, done: failure === null && !calledTools };
    },
    lastFailure() {
      const { main, subagent, title } = newest;
      // A program that has no tools for its model talks in calls that look like titles.
      if (main === NONE && subagent === NONE) return title.failure;
      return main.failure ?? (main.done ? null : subagent.failure);
    },
  };
}
