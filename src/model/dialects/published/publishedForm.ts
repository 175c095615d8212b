/** mini-swe-agent's form of a history of one protocol: its contract, and the common parts of the forms in litellm's chat completions. */
import type { AnswerFacts } from '../dialect.ts';
import { asObject } from '../shapes.ts';

export type Json = Record<string, unknown>;

/** The first messages are the prompt. */
export const PROMPT = 2;

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

/** A message of a recorded history, with the reply that it holds. */
export interface KeptMessage {
  readonly message: Json;
  readonly recorded: KeptReply | null;
}

/** `raw`: its class asked a service itself, and kept its bodies as they are. */
export type PublishedForm = (history: readonly KeptMessage[], raw: boolean) => readonly Json[];

export interface PublishedReply {
  /** null: the reply is not in the history. */
  readonly message: Json | null;
  readonly response: Json;
}

/** Messages of litellm's form. `ids`: other names of calls there; answers and actions name the same. */
export const inCompletions = (
  history: readonly KeptMessage[],
  publishedReply: (recorded: KeptReply) => PublishedReply,
  ids: ReadonlyMap<string, string> = new Map(),
): readonly Json[] =>
  history.map(({ message, recorded }) => {
    if (!recorded) return withIds(message, ids);
    const published = publishedReply(recorded);
    const extra = asObject(message.extra) ?? {};
    const kept = 'response' in extra ? { ...extra, response: published.response } : extra;
    return withIds({ ...(published.message ?? withoutNative(message)), extra: kept }, ids);
  });

function withIds(message: Json, ids: ReadonlyMap<string, string>): Json {
  const renamed = (id: unknown): unknown => ids.get(String(id)) ?? id;
  const extra = asObject(message.extra);
  const actions = Array.isArray(extra?.actions)
    ? {
        extra: {
          ...extra,
          actions: extra.actions.map((action: Json) =>
            'tool_call_id' in action ? { ...action, tool_call_id: renamed(action.tool_call_id) } : action,
          ),
        },
      }
    : {};
  const answer = 'tool_call_id' in message ? { tool_call_id: renamed(message.tool_call_id) } : {};
  return ids.size === 0 ? message : { ...message, ...actions, ...answer };
}

export const withoutNative = (message: Json): Json => {
  const { native: _ours, ...rest } = message;
  return rest;
};

export const litellmCompletion = (
  facts: AnswerFacts,
  created: number,
  message: Json,
  usage: Json,
  ofChoice?: Json,
) => ({
  id: facts.responseId,
  created,
  model: facts.modelId,
  object: 'chat.completion',
  system_fingerprint: null,
  choices: [{ finish_reason: facts.finishReason, index: 0, message, ...ofChoice }],
  usage,
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
