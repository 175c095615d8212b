/** The seeds' graceful degradation: when something that is not critical fails, the agent says so to onDebug and goes on with less. */

import { codePoints, sliceText } from '../../base/python/text.ts';
import type { Message } from '../../model/model.ts';
import type { AgentCallbacks, SelectHistory, Summarize } from '../contract.ts';
import { debugData } from './listeners.ts';

/** The result of an operation, or the fallback with a debug message. */
export async function withFallback<T>(
  operation: () => T | Promise<T>,
  fallback: () => T,
  message: string,
  callbacks: Pick<AgentCallbacks, 'onDebug'>,
): Promise<T> {
  try {
    return await operation();
  } catch (error) {
    callbacks.onDebug?.(message, debugData(error));
    return fallback();
  }
}

/** The messages of the next request. Without a selection all of them; when the selection fails, only the task and the open turn. */
export function fullHistory(
  messages: readonly Message[],
  select: SelectHistory | undefined,
  callbacks: Pick<AgentCallbacks, 'onDebug'>,
): readonly Message[] {
  if (!select) return messages;
  try {
    return select(messages);
  } catch (error) {
    callbacks.onDebug?.('History selection failed, going on without context', debugData(error));
    return withoutContext(messages);
  }
}

function withoutContext(messages: readonly Message[]): readonly Message[] {
  const opening = messages.slice(0, 2);
  const lastReply = messages.findLastIndex((message) => message.role === 'assistant');
  return lastReply < 2 ? messages : [...opening, ...messages.slice(lastReply)];
}

/** Longer texts go to the summarizer, if the agent has one. */
const SUMMARIZE_ABOVE = 10_000;

export async function shortened(
  text: string,
  summarize: Summarize | undefined,
  callbacks: Pick<AgentCallbacks, 'onDebug'>,
): Promise<string> {
  if (!summarize || codePoints(text) < SUMMARIZE_ABOVE) return text;
  return withFallback(
    () => summarize(text),
    () => truncate(text, SUMMARIZE_ABOVE - 1),
    'Summary failed, using truncation',
    callbacks,
  );
}

/** Head and tail of a text, the middle counted. */
export function truncate(text: string, maxLength: number): string {
  const length = codePoints(text);
  if (length <= maxLength) return text;
  const note = `\n… ${length - maxLength} characters elided …\n`;
  const kept = Math.max(0, maxLength - note.length);
  const head = sliceText(text, 0, Math.ceil(kept / 2));
  const tail = Math.floor(kept / 2) > 0 ? sliceText(text, -Math.floor(kept / 2), null) : '';
  return head + note + tail;
}
