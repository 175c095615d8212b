/** OpenAI's Responses API: the one in which its models keep their reasoning from turn to turn. */
import { createHash } from 'node:crypto';
import { knownModel } from '../../knownModels.ts';
import type { Message, ToolSpec } from '../../model.ts';
import type { ModelConfig } from '../../modelConfig.ts';
import type { Dialect, RequestStyle, RequestWriter } from '../dialect.ts';
import { extraHeaders, sentParameters } from '../kwargs.ts';
import { createListWriter, createTail, stringify } from '../listWriter.ts';
import { asObject, contentText } from '../shapes.ts';
import { readUsage } from '../usage.ts';
import { assembleResponse, readResponse, responsesFacts } from './responsesReply.ts';
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
 * Nothing is kept at the provider: what was thought comes encrypted and goes back with the next request. Only models that think take
 * the word for it, and who names `store` or `include` wants another way.
 */
function statelessly(kwargs: Readonly<Record<string, unknown>>, name: string): Record<string, unknown> {
  if ('store' in kwargs || 'include' in kwargs || !knownModel(name)?.reasoning) return {};
  return { store: false, include: ['reasoning.encrypted_content'] };
}

/** Every field beside `model` and `input`. */
export function responsesParameters(
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
