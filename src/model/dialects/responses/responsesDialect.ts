/** OpenAI's Responses API: the one in which its models keep their reasoning from turn to turn. */

import { createHash } from 'node:crypto';
import { z } from 'zod';
import { contentText } from '../../../base/text/contentText.ts';
import { knownModel } from '../../knownModels.ts';
import type { Message, ToolCall, ToolSpec } from '../../model.ts';
import type { ModelConfig } from '../../modelConfig.ts';
import { readUsage } from '../completion.ts';
import {
  type AnswerFacts,
  type Assembly,
  type Dialect,
  NO_FACTS,
  type ReadResult,
  type RequestStyle,
  type RequestWriter,
  TOO_LONG,
} from '../dialect.ts';
import { finishOf, TOO_LONG_END } from '../finish.ts';
import { extraHeaders, sentParameters } from '../kwargs.ts';
import { createListWriter, createTail, stringify } from '../listWriter.ts';
import { providerError } from '../providerError.ts';
import { asObject, asText, firstIssue } from '../shapes.ts';
export const responsesDialect: Dialect = {
  name: 'responses',
  wrote: ({ object, output }) => object === 'response' && Array.isArray(output),
  target: (config, _model, apiKey) => ({
    path: '/responses',
    headers: { authorization: `Bearer ${apiKey}`, ...extraHeaders(config.model_kwargs) },
  }),
  parameters: (config, tools) => responsesParameters(config, tools, 'own'),
  createWriter: createResponsesWriter,
  read: readResponse,
  factsOf: responsesFacts,
  readUsage,
  assemble: assembleResponse,
};

const toolOf = ({ function: { name, description, parameters } }: ToolSpec) => ({
  type: 'function',
  name,
  description,
  parameters,
});

const choiceOf = (choice: unknown): unknown => {
  const named = asObject(asObject(choice)?.function);
  return named ? { type: 'function', name: named.name } : choice;
};

/**
 * Nothing is kept at the provider: thought comes encrypted and goes back with the next request. Only models that think take
 * the word for it, and a configuration that names `store` or `include` wants another way.
 */
function statelessly(kwargs: Readonly<Record<string, unknown>>, name: string): Record<string, unknown> {
  if ('store' in kwargs || 'include' in kwargs || !knownModel(name)?.reasoning) return {};
  return { store: false, include: ['reasoning.encrypted_content'] };
}

/** Every field beside `model` and `input`. */
function responsesParameters(
  config: ModelConfig,
  tools: readonly ToolSpec[] | undefined,
  style: RequestStyle,
): Record<string, unknown> {
  const kwargs = sentParameters(config.model_kwargs);
  const {
    max_tokens: longest,
    max_completion_tokens: longestToo,
    reasoning_effort: effort,
    tool_choice: choice,
    ...rest
  } = kwargs;
  const limit = longest ?? longestToo;
  return {
    ...(style === 'own' ? statelessly(kwargs, config.model_name ?? '') : {}),
    ...(limit === undefined ? {} : { max_output_tokens: limit }),
    ...(effort === undefined ? {} : { reasoning: { effort } }),
    ...rest,
    ...(tools && tools.length > 0 ? { tools: tools.map(toolOf) } : {}),
    ...(choice === undefined ? {} : { tool_choice: choiceOf(choice) }),
    ...(config.stream ? { stream: true } : {}),
  };
}

/** A reasoning item that the provider did not keep and did not encrypt cannot be found again. */
const isLost = (item: Item): boolean => item.type === 'reasoning' && !item.encrypted_content;

function assistantItems(message: Message, style: RequestStyle, stateless: boolean): Item[] {
  if (message.native?.dialect === 'responses') {
    const items = message.native.content as Item[];
    if (style === 'litellm') return items.map(asLitellm);
    return stateless ? items.filter((item) => !isLost(item)) : [...items];
  }
  const said = contentText(message.content);
  const calls = (message.tool_calls ?? []).map((call) => ({
    type: 'function_call',
    call_id: call.id,
    name: call.function.name,
    arguments: call.function.arguments,
  }));
  return [...(said === '' ? [] : [{ role: 'assistant', content: said }]), ...calls];
}

/** mini-swe-agent's response classes tell the model of a malformed reply by an item of their own. */
const isTold = (message: Message): boolean => message.extra?.interrupt_type !== undefined;

function itemsOf(message: Message, style: RequestStyle, stateless: boolean): Item[] {
  switch (message.role) {
    case 'exit':
      return [];
    case 'assistant':
      return assistantItems(message, style, stateless);
    case 'tool':
      return [
        {
          type: 'function_call_output',
          call_id: message.tool_call_id ?? '',
          output: contentText(message.content),
        },
      ];
    default: {
      const text = contentText(message.content);
      if (style === 'litellm' && isTold(message))
        return [{ type: 'message', role: message.role, content: [{ type: 'input_text', text }] }];
      return [{ role: message.role, content: text }];
    }
  }
}

/** Attempts of one task begin alike, and their requests go where that beginning is cached already. */
const cacheKey = (messages: readonly Message[]): string =>
  createHash('sha256')
    .update(JSON.stringify(messages.slice(0, 2).map(({ content }) => content)))
    .digest('hex')
    .slice(0, 32);

function createResponsesWriter(config: ModelConfig, model: string, style: RequestStyle): RequestWriter {
  const list = createListWriter(`{"model":${JSON.stringify(model)},"input":[`);
  const stateless = responsesParameters(config, undefined, style).store === false;
  let key: string | undefined;
  const tail = createTail(([tools, prompt_cache_key]) => {
    const parameters = responsesParameters(config, tools as readonly ToolSpec[] | undefined, style);
    const keyed = prompt_cache_key === undefined ? parameters : { prompt_cache_key, ...parameters };
    const rest = stringify(keyed);
    return rest === '{}' ? ']}' : `],${rest.slice(1)}`;
  });
  return {
    write(messages, tools) {
      if (style === 'own') key ??= cacheKey(messages);
      const units = messages.flatMap((message) => {
        const hasItems = message.role !== 'exit' && (message.role !== 'assistant' || says(message));
        if (!hasItems) return [];
        const json = () => itemsOf(message, style, stateless).map(stringify).join(',');
        return [{ from: [message], json }];
      });
      return list.write(units, units.length, tail(tools, key));
    },
  };
}

/** An assistant message without an item would leave a comma in the list. */
function says(message: Message): boolean {
  if (message.native?.dialect === 'responses')
    return (message.native.content as Item[]).some((item) => item.type !== 'reasoning');
  return (message.tool_calls?.length ?? 0) > 0 || contentText(message.content) !== '';
}

/** Output items of the Responses API as litellm's types have them. */

export type Item = Readonly<Record<string, unknown>>;

/** The fields that litellm's types add to items of these kinds, all null. */
const LITELLM_FIELDS: Readonly<Record<string, Item>> = {
  function_call: { caller: null, namespace: null },
  message: { phase: null },
};

export function asLitellm(item: Item): Item {
  const added = { ...LITELLM_FIELDS[String(item.type)], ...item };
  if (item.type !== 'message' || !Array.isArray(item.content)) return added;
  const content = (item.content as Item[]).map((part) =>
    part.type === 'output_text' ? { logprobs: null, ...part } : part,
  );
  return { ...added, content };
}

const partSchema = z.looseObject({
  type: z.string(),
  text: z.string().optional(),
  refusal: z.string().optional(),
});
const messageSchema = z.looseObject({ content: z.array(partSchema) });
const callSchema = z.looseObject({ call_id: z.string(), name: z.string(), arguments: z.string() });
const reasoningSchema = z.looseObject({
  summary: z.array(z.looseObject({ text: z.string().optional() })).nullish(),
});
const responseSchema = z.looseObject({
  status: z.string().nullish(),
  output: z.array(z.looseObject({ type: z.string() })),
  incomplete_details: z.looseObject({ reason: z.string().nullish() }).nullish(),
});
type Response = z.output<typeof responseSchema>;

/** The end in the words of chat completions. */
function endOf(body: Record<string, unknown>): string | null {
  const status = asText(body.status);
  if (status === 'completed') {
    const items = Array.isArray(body.output) ? (body.output as unknown[]) : [];
    return items.some((item) => asObject(item)?.type === 'function_call') ? 'tool_calls' : 'stop';
  }
  if (status !== 'incomplete') return status;
  return finishOf(asText(asObject(body.incomplete_details)?.reason) ?? 'incomplete');
}

function responsesFacts(body: Record<string, unknown>): AnswerFacts {
  return {
    modelId: asText(body.model),
    responseId: asText(body.id),
    fingerprint: null,
    finishReason: endOf(body),
    rawUsage: body.usage ?? null,
  };
}

interface Read {
  readonly texts: string[];
  readonly refusals: string[];
  readonly thoughts: string[];
  readonly calls: ToolCall[];
}

/** Returns the fault of an item of a kind that matters here. */
function readItem(item: Response['output'][number], into: Read): string | null {
  if (item.type === 'message') {
    const parsed = messageSchema.safeParse(item);
    if (!parsed.success) return firstIssue(parsed.error);
    for (const part of parsed.data.content) {
      if (part.type === 'output_text') into.texts.push(part.text ?? '');
      if (part.type === 'refusal') into.refusals.push(part.refusal ?? '');
    }
  } else if (item.type === 'function_call') {
    const parsed = callSchema.safeParse(item);
    if (!parsed.success) return firstIssue(parsed.error);
    const { call_id: id, name, arguments: written } = parsed.data;
    into.calls.push({ id, type: 'function', function: { name, arguments: written } });
  } else if (item.type === 'reasoning') {
    const parsed = reasoningSchema.safeParse(item);
    if (parsed.success) into.thoughts.push(...(parsed.data.summary ?? []).map((part) => part.text ?? ''));
  }
  return null;
}

/** A reply that failed, was cancelled or still runs does not count as an answer: the provider's error says which. */
const UNFINISHED = new Set(['failed', 'cancelled', 'in_progress', 'queued']);

function readResponse(body: unknown): ReadResult {
  const object = asObject(body);
  if (!object) return { kind: 'malformed', facts: NO_FACTS, message: 'the reply is not a JSON object' };
  const facts = responsesFacts(object);
  const status = asText(object.status);
  const failed =
    object.error ?? (UNFINISHED.has(status ?? '') ? { message: `the response is ${status}` } : null);
  if (failed !== null && failed !== undefined) {
    const error = providerError({ error: failed });
    if (error) return { kind: 'error_object', facts, error };
  }
  const parsed = responseSchema.safeParse(object);
  if (!parsed.success) return { kind: 'malformed', facts, message: firstIssue(parsed.error) };
  const read: Read = { texts: [], refusals: [], thoughts: [], calls: [] };
  for (const [index, item] of parsed.data.output.entries()) {
    const problem = readItem(item, read);
    if (problem !== null) return { kind: 'malformed', facts, message: `output.${index}.${problem}` };
  }
  if (facts.finishReason === TOO_LONG_END) return { kind: 'error_object', facts, error: TOO_LONG };
  if (read.refusals.length > 0) return { kind: 'refusal', facts, message: read.refusals.join('\n') };
  if (facts.finishReason === 'content_filter')
    return { kind: 'refusal', facts, message: 'the reply was stopped by a content filter' };
  const content = read.texts.join('');
  if (read.calls.length === 0 && content.trim() === '' && facts.finishReason !== 'length')
    return { kind: 'empty', facts, message: 'the reply has neither text nor tool calls' };
  const message = {
    role: 'assistant',
    content: content === '' ? null : content,
    ...(read.calls.length > 0 ? { tool_calls: read.calls } : {}),
    ...(read.thoughts.length > 0 ? { reasoning_content: read.thoughts.join('\n') } : {}),
    native: { dialect: 'responses', content: object.output },
  } as Message;
  return { kind: 'reply', reply: { ...facts, message, content, toolCalls: read.calls } };
}

const FINAL = new Set(['response.completed', 'response.incomplete', 'response.failed']);

function assembleResponse(): Assembly {
  let final: Record<string, unknown> | null = null;
  let begun: Record<string, unknown> = {};
  let error: unknown = null;
  let characters = 0;
  const items = new Map<number, unknown>();
  return {
    add(data) {
      const event = asObject(data);
      const type = asText(event?.type) ?? '';
      if (!event) return;
      if (FINAL.has(type)) final = { status: type.slice('response.'.length), ...asObject(event.response) };
      else if (type === 'response.created' || type === 'response.in_progress')
        begun = asObject(event.response) ?? begun;
      else if (type === 'response.output_item.done') items.set(Number(event.output_index), event.item);
      else if (type.endsWith('.delta')) characters += asText(event.delta)?.length ?? 0;
      else if (type === 'error' || 'error' in event) error = event.error ?? event;
    },
    body() {
      const output = [...items.entries()].sort(([a], [b]) => a - b).map(([, item]) => item);
      const { status: _underWay, ...facts } = begun;
      // Some gateways leave the output out of the last event, since every item came before.
      const whole = final ?? { ...facts, output };
      const stated = Array.isArray(whole.output) && whole.output.length > 0 ? whole : { ...whole, output };
      return error === null ? stated : { ...stated, error };
    },
    characters: () => characters,
  };
}
