/** A recorded reply of any dialect in the form of chat completions, in which replies are played again. */
import type { Dialect } from './dialect.ts';
import { geminiDialect } from './gemini/geminiDialect.ts';
import { messagesDialect } from './messages/messagesDialect.ts';
import { responsesDialect } from './responses/responsesDialect.ts';
import { asObject } from './shapes.ts';

function dialectOfBody(body: Record<string, unknown>): Dialect | null {
  if (body.type === 'message' && Array.isArray(body.content)) return messagesDialect;
  if (body.object === 'response' && Array.isArray(body.output)) return responsesDialect;
  return Array.isArray(body.candidates) ? geminiDialect : null;
}

/** What is of no other dialect is given back as it is. What goes back to the provider next turn stays in `native`. */
export function asChatBody(raw: unknown): unknown {
  const body = asObject(raw);
  const dialect = body && dialectOfBody(body);
  if (!dialect) return raw;
  const read = dialect.read(body);
  if (read.kind !== 'reply') return raw;
  const { message, modelId, responseId, finishReason } = read.reply;
  return { id: responseId, model: modelId, choices: [{ index: 0, message, finish_reason: finishReason }] };
}
