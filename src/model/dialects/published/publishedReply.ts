/** What a reply is made of for a trajectory file of mini-swe-agent, and what comes of it. */

import { asObject } from '../shapes.ts';

export type Json = Record<string, unknown>;

/** A reply, from its body or from what the history kept of it. */
export interface KeptReply {
  /** The body; of a replay it has chat's form, and `native` holds what the provider sent. */
  readonly body: Json;
  readonly native: unknown;
  /** The assistant message of the history; null for a reply that the history does not have. */
  readonly message: Json | null;
  /** Seconds since 1970. */
  readonly at: number;
}

export interface Published {
  /** null: the reply is not in the history. */
  readonly message: Json | null;
  readonly response: Json;
}

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
