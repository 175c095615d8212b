/** litellm's own form of a chat completion, in the order in which it writes its fields. */
import { asObject } from '../shapes.ts';
import type { Json } from './publishedReply.ts';

interface Parts {
  readonly id: string | null;
  readonly model: string | null;
  readonly created: number;
  readonly finishReason: string | null;
  readonly message: Json;
  readonly usage: Json;
  /** Fields of the choice that only this provider has. */
  readonly ofChoice?: Json;
  readonly ofProvider?: Json;
}

export const litellmCompletion = (parts: Parts): Json => ({
  id: parts.id,
  created: parts.created,
  model: parts.model,
  object: 'chat.completion',
  system_fingerprint: null,
  choices: [{ finish_reason: parts.finishReason, index: 0, message: parts.message, ...parts.ofChoice }],
  usage: parts.usage,
  ...parts.ofProvider,
});

/** The calls as litellm builds them, with ids and arguments as the history has them: the agent may have shortened or renamed them. */
export function storedCalls(built: unknown, stored: Json): unknown {
  if (!Array.isArray(stored.tool_calls)) return null;
  const first: unknown[] = Array.isArray(built) ? built : [];
  return stored.tool_calls.map((call: Json, index) => {
    const { function: called, id } = call;
    const { name, arguments: written } = asObject(called) ?? {};
    return { ...asObject(first[index]), function: { arguments: written, name }, id, type: 'function' };
  });
}
