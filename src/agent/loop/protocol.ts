/**
 * How a reply becomes commands and a result becomes an answer: `bash-block` (one fenced block in the text) and `tool-call`
 * (one or more calls of the bash tool).
 */

import { strip } from '../../base/python/text.ts';
import type { Message, ModelReply, ToolSpec } from '../../model/model.ts';
import type { Call } from '../action.ts';
import { BASH_TOOL } from '../tool.ts';
import { actionPattern } from './actionPattern.ts';
import { readToolCall } from './toolCall.ts';

/** What a reply asks for. `error` is set when nothing in it can run. */
export interface Turn {
  readonly calls: readonly Call[];
  readonly error: string | null;
  /** What the text held, for a template that says how many blocks it found. */
  readonly found: readonly string[];
}

export interface Protocol {
  readonly tools?: readonly ToolSpec[];
  parse(reply: ModelReply): Turn;
  /** The message that answers a call; without one, a message of the user. */
  answer(content: string, call: Call | null, extra: Readonly<Record<string, unknown>>): Message;
}

/** One capture group around the command. Python's findall with DOTALL is matchAll with the s flag. */
export function bashBlock(actionRegex: string): Protocol {
  const commandsIn = actionPattern(actionRegex);
  return {
    parse(reply) {
      const found = commandsIn(reply.content).map(strip);
      const error = found.length === 1 ? null : `Expected exactly 1 action, found ${found.length}.`;
      return { calls: error ? [] : found.map((command) => ({ command })), error, found };
    },
    answer: (content, _call, extra) => ({ role: 'user', content, extra }),
  };
}

export const NO_TOOL_CALLS =
  'No tool calls found in the response. Every response MUST include at least one tool call.';

export function toolCall(maxCommandBytes: number): Protocol {
  return {
    tools: [BASH_TOOL],
    parse(reply) {
      const calls = reply.toolCalls.map((call) => readToolCall(call, maxCommandBytes));
      const errors = calls.flatMap((call) => ('error' in call ? [call.error] : []));
      const nothing = calls.every((call) => 'error' in call);
      return {
        calls,
        error: calls.length === 0 ? NO_TOOL_CALLS : nothing ? errors.join(' ') : null,
        found: [],
      };
    },
    answer: (content, call, extra) =>
      call?.callId === undefined
        ? { role: 'user', content, extra }
        : { role: 'tool', tool_call_id: call.callId, content, extra },
  };
}
