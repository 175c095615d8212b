/** Responses in a trajectory of mini-swe-agent: items of the API, in litellm's form or as they came. */
import { contentText } from '../../../base/text/contentText.ts';
import { type Json, type KeptReply, PROMPT, type PublishedForm } from '../published/publishedForm.ts';
import { asObject } from '../shapes.ts';
import { asLitellm, type Item } from './responsesDialect.ts';

export const responsesPublished: PublishedForm = (history, raw) =>
  history.map(({ message, recorded }, index) => publishedMessage(message, index, recorded, raw));

const asInput = (message: Json): Json => ({
  type: 'message',
  role: message.role,
  content: [{ type: 'input_text', text: contentText(message.content) }],
  ...('extra' in message ? { extra: message.extra } : {}),
});

function publishedMessage(message: Json, index: number, recorded: KeptReply | null, raw: boolean): Json {
  const { role } = message;
  const extra = asObject(message.extra) ?? {};
  if (role === 'exit') return message;
  if (role === 'assistant') {
    if (!recorded) return message;
    const { response: _itself, ...rest } = extra;
    return { ...publishedResponse(recorded, raw), extra: rest };
  }
  const kept = recorded ? { ...extra, response: publishedResponse(recorded, raw) } : extra;
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

/** The response of a replayed reply, put together from its items. */
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
