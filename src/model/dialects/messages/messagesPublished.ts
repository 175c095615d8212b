/** Messages in a trajectory of mini-swe-agent: as litellm's chat completions. */
import {
  inCompletions,
  type Json,
  type KeptReply,
  litellmCompletion,
  type PublishedForm,
  type PublishedReply,
  storedCalls,
} from '../published/publishedForm.ts';
import { asObject } from '../shapes.ts';
import { messagesFacts, readMessagesReply } from './messagesDialect.ts';

export const messagesPublished: PublishedForm = (history) => inCompletions(history, publishedReply);

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

/** The body of a replayed reply, put together from its blocks. */
function claudeBody({ body, native }: KeptReply): Json {
  if (Array.isArray(body.content)) return body;
  const choice = asObject(Array.isArray(body.choices) ? body.choices[0] : null);
  return { ...body, content: native, stop_reason: choice?.finish_reason ?? null };
}

function publishedReply(recorded: KeptReply): PublishedReply {
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
