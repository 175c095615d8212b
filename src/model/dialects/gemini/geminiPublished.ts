/** Gemini in a trajectory of mini-swe-agent: as litellm's chat completions, with the signatures of thoughts in the ids of calls. */
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
import { geminiFacts, readGenerated } from './geminiDialect.ts';

export const geminiPublished: PublishedForm = (history) => {
  const ids = new Map<string, string>();
  const reply = (recorded: KeptReply) => {
    thoughtIds(recorded, ids);
    return publishedReply(recorded);
  };
  return inCompletions(history, reply, ids);
};

const SIGNATURE = '__thought__';

/** The body of a replayed reply, put together from its parts. */
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

/** Fields that litellm adds to every reply of Google, used or not. */
const GOOGLE = {
  vertex_ai_grounding_metadata: [],
  vertex_ai_url_context_metadata: [],
  vertex_ai_safety_results: [],
  vertex_ai_citation_metadata: [],
};

function publishedReply(recorded: KeptReply): PublishedReply {
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
