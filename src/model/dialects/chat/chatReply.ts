/** Reads a chat completion, whatever a server calls one: validated by zod before anything uses it (servers answer 200 with anything). */
import { z } from 'zod';
import type { Message, ToolCall } from '../../model.ts';
import { type AnswerFacts, NO_FACTS, type ReadResult } from '../dialect.ts';
import { providerError } from '../providerError.ts';
import { asObject, asText, contentText, firstIssue } from '../shapes.ts';

const text = z.string().nullish().catch(null);

const toolCallSchema = z.looseObject({
  id: text,
  function: z.looseObject({ name: z.string(), arguments: z.unknown().optional() }),
});

const choiceSchema = z.looseObject({
  message: z.looseObject({
    content: z.union([z.string(), z.array(z.unknown())]).nullish(),
    tool_calls: z.array(toolCallSchema).nullish(),
    refusal: text,
  }),
  finish_reason: text,
});

const completionSchema = z.looseObject({
  id: text,
  model: text,
  system_fingerprint: text,
  choices: z.array(choiceSchema),
});

/** Some servers leave ids out or send arguments as an object; the answer to the call must carry the same id, so both are set here once. */
function normaliseCall(
  call: z.infer<typeof toolCallSchema>,
  index: number,
  responseId: string | null,
): ToolCall {
  const args = call.function.arguments;
  return {
    ...call,
    id: call.id || `call_${responseId ?? 'local'}_${index}`,
    type: 'function',
    function: {
      ...call.function,
      arguments: typeof args === 'string' ? args : args === undefined ? '' : JSON.stringify(args),
    },
  };
}

export function factsOf(body: Record<string, unknown>): AnswerFacts {
  const first = asObject(Array.isArray(body.choices) ? body.choices[0] : null);
  return {
    modelId: asText(body.model),
    responseId: asText(body.id),
    fingerprint: asText(body.system_fingerprint),
    finishReason: asText(first?.finish_reason),
    rawUsage: body.usage ?? null,
  };
}

/** A choice that ended with an error and does not say which: no part of it may be executed. */
const CUT_BY_ERROR = { message: 'the reply ended with finish_reason "error"' };

export function readCompletion(body: unknown): ReadResult {
  const object = asObject(body);
  if (!object) return { kind: 'malformed', facts: NO_FACTS, message: 'the reply is not a JSON object' };
  const facts = factsOf(object);
  const first = asObject(Array.isArray(object.choices) ? object.choices[0] : null);
  // OpenRouter reports an upstream failure inside the choice, also beside the part of a message that came before it.
  const failed = object.error ?? first?.error ?? (facts.finishReason === 'error' ? CUT_BY_ERROR : undefined);
  if (failed !== undefined && failed !== null) {
    const error = providerError({ error: failed });
    if (error) return { kind: 'error_object', facts, error };
  }
  const parsed = completionSchema.safeParse(object);
  if (!parsed.success) {
    const error = object.object === 'error' || object.type === 'error' ? providerError(object) : null;
    if (error) return { kind: 'error_object', facts, error };
    return { kind: 'malformed', facts, message: firstIssue(parsed.error) };
  }
  const choice = parsed.data.choices[0];
  if (!choice) return { kind: 'empty', facts, message: 'the reply has no choices' };
  const { message } = choice;
  if (message.refusal) return { kind: 'refusal', facts, message: message.refusal };
  if (choice.finish_reason === 'content_filter')
    return { kind: 'refusal', facts, message: 'the reply was stopped by a content filter' };
  const content = contentText(message.content);
  const toolCalls = (message.tool_calls ?? []).map((call, index) =>
    normaliseCall(call, index, facts.responseId),
  );
  // A reply cut by its length limit is for the agent to explain to the model, also when nothing was said yet.
  if (toolCalls.length === 0 && content.trim() === '' && choice.finish_reason !== 'length')
    return { kind: 'empty', facts, message: 'the reply has neither text nor tool calls' };
  // From the body and not from zod's copy, which has another order of keys: the message goes back to its provider.
  const sent = {
    ...asObject(first?.message),
    role: 'assistant',
    content: message.content ?? null,
    ...(message.tool_calls ? { tool_calls: toolCalls } : {}),
  } as Message;
  return { kind: 'reply', reply: { ...facts, message: sent, content, toolCalls } };
}
