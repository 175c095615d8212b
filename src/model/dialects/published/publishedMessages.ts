/**
 * A recorded history as mini-swe-agent 2.4.6 writes it to its trajectory file. Its model classes keep what their client made of a
 * reply: litellm's form of chat completions for Messages and Gemini, and the response itself for Responses. Chat is kept as it came.
 */

import type { AnswerFacts } from '../dialect.ts';
import type { DialectName } from '../dialects.ts';
import { geminiFacts, readGenerated } from '../gemini/geminiDialect.ts';
import { messagesFacts, readMessagesReply } from '../messages/messagesDialect.ts';
import { asLitellm, type Item } from '../responses/responsesDialect.ts';
import { asObject, contentText } from '../shapes.ts';

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

type Json = Record<string, unknown>;

/** A reply, from its body or from what the history kept of it. */
interface KeptReply {
  /** The body; of a replay it has chat's form, and `native` holds what the provider sent. */
  readonly body: Json;
  readonly native: unknown;
  /** The assistant message of the history; null for a reply that the history does not have. */
  readonly message: Json | null;
  /** Seconds since 1970. */
  readonly at: number;
}

interface Published {
  /** null: the reply is not in the history. */
  readonly message: Json | null;
  readonly response: Json;
}

const litellmCompletion = (
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
function storedCalls(built: unknown, stored: Json): unknown {
  if (!Array.isArray(stored.tool_calls)) return null;
  const first: unknown[] = Array.isArray(built) ? built : [];
  return stored.tool_calls.map((call: Json, index) => {
    const { function: called, id } = call;
    const { name, arguments: written } = asObject(called) ?? {};
    return { ...asObject(first[index]), function: { arguments: written, name }, id, type: 'function' };
  });
}

const count = (value: unknown): number => (typeof value === 'number' ? value : 0);

/** litellm counts thought with a tokenizer of its own. The provider does not say, so neither does the file. */
function claudeUsage(raw: unknown, thinks: boolean): Json {
  const usage = asObject(raw) ?? {};
  const output = count(usage.output_tokens);
  const [input, read, written] = [
    count(usage.input_tokens),
    count(usage.cache_read_input_tokens),
    count(usage.cache_creation_input_tokens),
  ];
  const prompt = input + read + written;
  const details = asObject(usage.cache_creation);
  const tools = asObject(usage.server_tool_use);
  return {
    completion_tokens: output,
    prompt_tokens: prompt,
    total_tokens: prompt + output,
    completion_tokens_details: thinks
      ? { reasoning_tokens: null, text_tokens: null }
      : { reasoning_tokens: 0, text_tokens: output },
    prompt_tokens_details: {
      audio_tokens: null,
      cache_write_tokens: written,
      cached_tokens: read,
      text_tokens: input,
      image_tokens: null,
      video_tokens: null,
      cache_creation_tokens: written,
      ...(details ? { cache_creation_token_details: details } : {}),
    },
    ...(tools
      ? { server_tool_use: { ...tools, tool_search_requests: tools.tool_search_requests ?? null } }
      : {}),
    cache_creation_input_tokens: written,
    cache_read_input_tokens: read,
    iterations: usage.iterations ?? null,
    inference_geo: usage.inference_geo ?? null,
    speed: usage.speed ?? null,
    service_tier: usage.service_tier ?? null,
  };
}

/** Of a replay only the blocks are there; the body is put together from them. */
function claudeBody({ body, native }: KeptReply): Json {
  if (Array.isArray(body.content)) return body;
  const choice = asObject(Array.isArray(body.choices) ? body.choices[0] : null);
  return { ...body, content: native, stop_reason: choice?.finish_reason ?? null };
}

function publishedClaude(recorded: KeptReply): Published {
  const body = claudeBody(recorded);
  const read = readMessagesReply(body);
  const { native: _ours, ...own } = (read.kind === 'reply' ? read.reply.message : {}) as Json;
  const said: Json = read.kind === 'reply' ? own : { content: null, role: 'assistant', tool_calls: null };
  const stored = recorded.message;
  return {
    message: stored && { ...said, content: stored.content, tool_calls: storedCalls(said.tool_calls, stored) },
    response: litellmCompletion(
      messagesFacts(body),
      recorded.at,
      said,
      claudeUsage(body.usage, 'thinking_blocks' in said),
    ),
  };
}

const SIGNATURE = '__thought__';

/** Of a replay only the parts are there; the body is put together from them. */
function geminiBody({ body, native }: KeptReply): Json {
  if (Array.isArray(body.candidates)) return body;
  const choice = asObject(Array.isArray(body.choices) ? body.choices[0] : null);
  const reason = choice?.finish_reason === 'length' ? 'MAX_TOKENS' : 'STOP';
  return {
    candidates: [{ content: { role: 'model', parts: native }, finishReason: reason }],
    usageMetadata: body.usage,
    modelVersion: body.model,
    responseId: body.id,
  };
}

const partsOf = (body: Json): readonly Json[] => {
  const candidate = asObject(Array.isArray(body.candidates) ? body.candidates[0] : null);
  const parts = asObject(candidate?.content)?.parts;
  return Array.isArray(parts) ? (parts as Json[]) : [];
};

const callsIn = (parts: readonly Json[]): readonly Json[] =>
  parts.filter((part) => asObject(part.functionCall) !== null);

/** litellm appends the signature of a call to its id. Adds the ids of a turn to `into`. */
function thoughtIds(recorded: KeptReply, into: Map<string, string>): void {
  const signatures = callsIn(partsOf(geminiBody(recorded))).map((part) => part.thoughtSignature);
  const calls = recorded.message?.tool_calls;
  for (const [index, call] of (Array.isArray(calls) ? (calls as Json[]) : []).entries()) {
    const signature = signatures[index];
    if (typeof signature === 'string')
      into.set(String(call.id), `${String(call.id)}${SIGNATURE}${signature}`);
  }
}

const withSignature = (call: Json, index: number, signature: unknown): Json =>
  typeof signature === 'string'
    ? {
        index,
        provider_specific_fields: { thought_signature: signature },
        ...call,
        id: `${String(call.id)}${SIGNATURE}${signature}`,
      }
    : { index, ...call };

function messageFrom(content: unknown, calls: unknown, parts: readonly Json[]): Json {
  const signatures = parts.flatMap((part) =>
    typeof part.thoughtSignature === 'string' ? [part.thoughtSignature] : [],
  );
  const ofCalls = callsIn(parts).map((part) => part.thoughtSignature);
  const thoughts = parts.filter((part) => part.thought === true && typeof part.text === 'string');
  return {
    content,
    role: 'assistant',
    tool_calls: Array.isArray(calls)
      ? calls.map((call: Json, index) => withSignature(call, index, ofCalls[index]))
      : null,
    function_call: null,
    images: [],
    ...(thoughts.length > 0 ? { reasoning_content: thoughts.map((part) => part.text).join('') } : {}),
    thinking_blocks: thoughts.map((part) => ({
      type: 'thinking',
      thinking: part.text,
      ...(part.thoughtSignature === undefined ? {} : { signature: part.thoughtSignature }),
    })),
    ...(signatures.length > 0 ? { provider_specific_fields: { thought_signatures: signatures } } : {}),
  };
}

function geminiUsage(raw: unknown): Json {
  const usage = asObject(raw) ?? {};
  const count = (name: string): number | null => (typeof usage[name] === 'number' ? usage[name] : null);
  const [thought, said, cached] = [
    count('thoughtsTokenCount'),
    count('candidatesTokenCount') ?? 0,
    count('cachedContentTokenCount'),
  ];
  const details: unknown[] = Array.isArray(usage.promptTokensDetails) ? usage.promptTokensDetails : [];
  const text = details.map(asObject).find((detail) => detail?.modality === 'TEXT')?.tokenCount;
  return {
    completion_tokens: said + (thought ?? 0),
    prompt_tokens: count('promptTokenCount') ?? 0,
    total_tokens: count('totalTokenCount') ?? 0,
    completion_tokens_details: {
      ...(thought === null ? {} : { reasoning_tokens: thought }),
      text_tokens: said,
    },
    prompt_tokens_details: {
      audio_tokens: null,
      cached_tokens: cached,
      text_tokens: typeof text === 'number' ? text - (cached ?? 0) : null,
      image_tokens: null,
      video_tokens: null,
    },
    cache_read_input_tokens: cached,
  };
}

/** What litellm says of every reply of Google, used or not. */
const GOOGLE = {
  vertex_ai_grounding_metadata: [],
  vertex_ai_url_context_metadata: [],
  vertex_ai_safety_results: [],
  vertex_ai_citation_metadata: [],
};

function publishedGemini(recorded: KeptReply): Published {
  const body = geminiBody(recorded);
  const read = readGenerated(body);
  const parts = partsOf(body);
  const calls = read.kind === 'reply' && read.reply.toolCalls.length > 0 ? read.reply.toolCalls : null;
  const content = read.kind === 'reply' ? (read.reply.content === '' ? null : read.reply.content) : null;
  const dumped = calls?.map(({ id, function: { name, arguments: written } }) => ({
    function: { arguments: written, name },
    id,
    type: 'function',
  }));
  const stored = recorded.message;
  const said = stored && messageFrom(stored.content, storedCalls(dumped, stored), parts);
  const candidate = asObject(Array.isArray(body.candidates) ? body.candidates[0] : null);
  return {
    message: said && { ...said, provider_specific_fields: said.provider_specific_fields ?? null },
    response: {
      ...litellmCompletion(
        geminiFacts(body),
        recorded.at,
        messageFrom(content, dumped, parts),
        geminiUsage(body.usageMetadata),
        { provider_specific_fields: { native_finish_reason: candidate?.finishReason ?? null } },
      ),
      ...GOOGLE,
    },
  };
}

/** litellm's fields, in its order, where the reply does not say them. */
const FIELDS: Json = {
  id: null,
  created_at: 0,
  error: null,
  incomplete_details: null,
  instructions: null,
  metadata: null,
  model: null,
  object: 'response',
  output: [],
  parallel_tool_calls: null,
  temperature: null,
  tool_choice: null,
  tools: null,
  top_p: null,
  max_output_tokens: null,
  previous_response_id: null,
  reasoning: null,
  status: null,
  text: null,
  truncation: null,
  usage: null,
  user: null,
  store: null,
};

const INPUT_DETAILS = {
  audio_tokens: null,
  cached_tokens: null,
  cached_tokens_details: null,
  image_tokens: null,
  text_tokens: null,
  video_tokens: null,
};
const OUTPUT_DETAILS = { audio_tokens: null, reasoning_tokens: null, text_tokens: null };

function litellmUsage(raw: unknown): unknown {
  const usage = asObject(raw);
  if (!usage) return raw ?? null;
  const {
    input_tokens,
    input_tokens_details: input,
    output_tokens,
    output_tokens_details: output,
    ...rest
  } = usage;
  return {
    input_tokens,
    input_tokens_details: input ? { ...INPUT_DETAILS, ...asObject(input) } : null,
    output_tokens,
    output_tokens_details: output ? { ...OUTPUT_DETAILS, ...asObject(output) } : null,
    ...rest,
    cost: usage.cost ?? null,
  };
}

/** litellm's id says where the response can be continued. */
const litellmId = (id: unknown): string =>
  `resp_${Buffer.from(`litellm:custom_llm_provider:openai;model_id:None;response_id:${String(id)}`).toString('base64')}`;

const withoutNull = (item: Item): Item =>
  Object.fromEntries(Object.entries(item).filter(([, value]) => value !== null));

const litellmItem = (item: Item): Item => asLitellm(item.type === 'reasoning' ? withoutNull(item) : item);

/** Of a replay only the items are there; the response is put together from them. */
function responseBody({ body, native, at }: KeptReply): Json {
  if (Array.isArray(body.output)) return body;
  const choice = asObject(Array.isArray(body.choices) ? body.choices[0] : null);
  const cut = choice?.finish_reason === 'length';
  return {
    id: body.id,
    created_at: at,
    object: 'response',
    status: cut ? 'incomplete' : 'completed',
    incomplete_details: cut ? { reason: 'max_output_tokens' } : null,
    model: body.model,
    output: native,
    usage: body.usage,
  };
}

/** Calls as the history has them: the agent may have shortened or renamed them. */
function withStoredCalls(output: readonly Item[], message: Json | null): readonly Item[] {
  const calls = Array.isArray(message?.tool_calls) ? [...(message.tool_calls as Json[])] : [];
  return output.map((item) => {
    const call = item.type === 'function_call' ? calls.shift() : undefined;
    if (!call) return item;
    return { ...item, call_id: call.id, arguments: asObject(call.function)?.arguments ?? item.arguments };
  });
}

function publishedResponse(recorded: KeptReply, raw: boolean): Json {
  const body = responseBody(recorded);
  const output = withStoredCalls((Array.isArray(body.output) ? body.output : []) as Item[], recorded.message);
  if (raw) return { ...body, output };
  return {
    ...FIELDS,
    ...body,
    id: litellmId(body.id),
    output: output.map(litellmItem),
    usage: litellmUsage(body.usage),
  };
}
