/**
 * A recorded history as mini-swe-agent 2.4.6 writes it to its trajectory file. Its model classes keep what their client made of a
 * reply: litellm's form of chat completions for Messages and Gemini, and the response itself for Responses. Chat is kept as it came.
 */
import type { DialectName } from '../dialects.ts';
import { asObject, contentText } from '../shapes.ts';
import { publishedClaude } from './publishedClaude.ts';
import { publishedGemini, thoughtIds } from './publishedGemini.ts';
import type { Json, KeptReply } from './publishedReply.ts';
import { publishedResponse } from './publishedResponse.ts';

/** The first messages are the prompt. */
const PROMPT = 2;

/** Classes that ask a service themselves keep its bodies as they are; the others have litellm's. */
const isKeptRaw = (model: unknown): boolean => {
  const { base_url: address, model_name: name } = asObject(model) ?? {};
  return (
    /openrouter\.ai|portkey\.ai/.test(String(address ?? '')) || String(name ?? '').startsWith('openrouter/')
  );
};

function dialectOfReply(body: Json, native: Json | null): DialectName {
  if (native) return native.dialect as DialectName;
  if (body.type === 'message' && Array.isArray(body.content)) return 'messages';
  if (body.object === 'response' && Array.isArray(body.output)) return 'responses';
  return Array.isArray(body.candidates) ? 'gemini' : 'chat';
}

const withoutNative = (message: Json): Json => {
  const { native: _ours, ...rest } = message;
  return rest;
};

interface Turn {
  readonly dialect: DialectName;
  readonly recorded: KeptReply;
}

function turnOf(message: Json): Turn | null {
  const extra = asObject(message.extra);
  const body = asObject(extra?.response);
  const choice = asObject(asObject(Array.isArray(body?.choices) ? body.choices[0] : null)?.message);
  const native = asObject(message.native) ?? asObject(choice?.native);
  if (!body && !native) return null;
  const timestamp = extra?.timestamp;
  return {
    dialect: dialectOfReply(body ?? {}, native),
    recorded: {
      body: body ?? {},
      native: native?.content,
      message: message.role === 'assistant' ? withoutNative(message) : null,
      at: typeof timestamp === 'number' ? Math.floor(timestamp) : 0,
    },
  };
}

/** `model` is the configuration of the model. Messages of chat are given back as they are. */
export function publishedMessages(messages: readonly Json[], model: unknown): readonly Json[] {
  const turns = messages.map(turnOf);
  const dialect = turns.find((turn) => turn !== null)?.dialect ?? 'chat';
  if (dialect === 'chat') return messages;
  const raw = isKeptRaw(model);
  const ids = new Map<string, string>();
  const inText = !messages.some(({ tool_calls: calls }) => Array.isArray(calls));
  return messages.map((stored, index) => {
    const turn = turns[index];
    const message = withPublishedExtra(stored, index, inText);
    if (dialect === 'responses') return inResponses(message, index, turn ?? null, raw);
    if (!turn) return withIds(message, ids);
    if (dialect === 'gemini') thoughtIds(turn.recorded, ids);
    const published = (dialect === 'gemini' ? publishedGemini : publishedClaude)(turn.recorded);
    const extra = asObject(message.extra) ?? {};
    const kept = 'response' in extra ? { ...extra, response: published.response } : extra;
    return withIds({ ...(published.message ?? withoutNative(message)), extra: kept }, ids);
  });
}

/** What is said to the model has no time there, and a format error has its own facts in each protocol. */
function withPublishedExtra(message: Json, index: number, inText: boolean): Json {
  const { extra: stored, ...said } = message;
  if (index < PROMPT) return said;
  const extra = asObject(stored);
  if (!extra || (message.role !== 'exit' && extra.interrupt_type === undefined)) return message;
  const { timestamp: _when, n_actions: found, ...rest } = extra;
  if (message.role === 'exit' || !inText) return { ...said, extra: rest };
  return { ...said, extra: { ...rest, n_actions: found, model_response: textOfReply(rest.response) } };
}

function textOfReply(response: unknown): string {
  const body = asObject(response);
  const parts =
    body?.content ??
    asObject(asObject(Array.isArray(body?.candidates) ? body.candidates[0] : null)?.content)?.parts;
  return contentText(parts);
}

/** Gemini's calls have other ids there; answers and actions name the same. */
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

const asInput = (message: Json): Json => ({
  type: 'message',
  role: message.role,
  content: [{ type: 'input_text', text: contentText(message.content) }],
  ...('extra' in message ? { extra: message.extra } : {}),
});

function inResponses(message: Json, index: number, turn: Turn | null, raw: boolean): Json {
  const { role } = message;
  const extra = asObject(message.extra) ?? {};
  if (role === 'exit') return message;
  if (role === 'assistant') {
    if (!turn) return message;
    const { response: _itself, ...rest } = extra;
    return { ...publishedResponse(turn.recorded, raw), extra: rest };
  }
  const kept = turn ? { ...extra, response: publishedResponse(turn.recorded, raw) } : extra;
  if (role === 'tool')
    return {
      extra: kept,
      type: 'function_call_output',
      call_id: message.tool_call_id,
      output: contentText(message.content),
    };
  // The prompt is plain in litellm's class and a list of parts in the others.
  if (index < PROMPT && !raw) return message;
  return asInput({ ...message, ...('extra' in message ? { extra: kept } : {}) });
}
