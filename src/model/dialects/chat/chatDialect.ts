/** Chat completions: OpenAI's older interface, and the one that every compatible server speaks. */
import type { Message, ToolSpec } from '../../model.ts';
import type { ModelConfig } from '../../modelConfig.ts';
import { namedModel, OPENAI } from '../../names.ts';
import { assembleStream, chatFacts, readCompletion, readUsage } from '../completion.ts';
import type { Dialect, RequestWriter } from '../dialect.ts';
import { type CacheMark, cacheMark, extraHeaders, sentParameters } from '../kwargs.ts';
import { createGrowingBuffer, isAsWritten, stringify, type WrittenMessage } from '../listWriter.ts';

/** OpenRouter says what a call cost when it is asked to. */
const kwargsOf = (config: ModelConfig): Readonly<Record<string, unknown>> =>
  namedModel(config).provider?.prefix === 'openrouter'
    ? { usage: { include: true }, ...config.model_kwargs }
    : config.model_kwargs;

export const chatDialect: Dialect = {
  name: 'chat',
  target: (config, _model, apiKey) => ({
    path: '/chat/completions',
    headers: { authorization: `Bearer ${apiKey}`, ...extraHeaders(config.model_kwargs) },
  }),
  parameters: (config, tools) => requestParameters(kwargsOf(config), config.stream, tools),
  createWriter: (config, model, style) =>
    createRequestWriter({
      model,
      kwargs: kwargsOf(config),
      stream: config.stream,
      cacheControl: config.set_cache_control,
      cacheTtl: config.cache_ttl,
      litellm: style === 'litellm' && (namedModel(config).provider ?? OPENAI) !== OPENAI,
    }),
  read: readCompletion,
  factsOf: chatFacts,
  readUsage,
  assemble: assembleStream,
};

interface WireOptions {
  readonly model: string;
  readonly kwargs: Readonly<Record<string, unknown>>;
  readonly stream: boolean;
  readonly cacheControl: 'default_end' | null;
  readonly cacheTtl?: ModelConfig['cache_ttl'];
  /** Messages are sent as litellm sends them to providers other than OpenAI. */
  readonly litellm?: boolean;
}

/** Every field of a request beside `model` and `messages`, in its order. */
function requestParameters(
  kwargs: Readonly<Record<string, unknown>>,
  stream: boolean,
  tools: readonly ToolSpec[] | undefined,
): Record<string, unknown> {
  return {
    ...(tools && tools.length > 0 ? { tools } : {}),
    ...(stream ? { stream: true, stream_options: { include_usage: true } } : {}),
    ...sentParameters(kwargs),
  };
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * mini-swe-agent's `default_end`: the mark goes on the last message only, inside its content where that is text, beside it where there
 * is none or where it answers a call; text becomes a list of parts in both.
 */
function markForCache(message: Fields, litellm: boolean, cache_control: CacheMark): Fields {
  const { content, role } = message;
  if (content === null || content === undefined) return { ...message, cache_control };
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : (content as unknown[]);
  if (role === 'tool' && !litellm) return { ...message, content: parts, cache_control };
  const last = parts.length - 1;
  return {
    ...message,
    content: parts.map((part, index) =>
      index === last && typeof part === 'object' ? { ...part, cache_control } : part,
    ),
  };
}

const isSent = (message: Message): boolean => message.role !== 'exit';

/** The message without our own fields, and without an empty list of calls: servers send one, and OpenAI refuses to read it. */
function withoutExtra(message: Message): Fields {
  const noCalls = message.tool_calls?.length === 0;
  if (message.extra === undefined && message.native === undefined && !noCalls) return message;
  return {
    ...message,
    extra: undefined,
    native: undefined,
    ...(noCalls ? { tool_calls: undefined } : {}),
  };
}

/** A writer for each conversation. */
export function createRequestWriter(options: WireOptions): RequestWriter {
  const { headEnd, put, bytes } = createGrowingBuffer(
    `{"model":${JSON.stringify(options.model)},"messages":[`,
  );
  const written: WrittenMessage[] = [];
  const litellm = options.litellm === true;
  const shaped = (message: Message): Fields =>
    litellm ? asLitellmSends(withoutExtra(message)) : withoutExtra(message);
  let tail: { readonly tools: unknown; readonly text: string } | undefined;

  function tailFor(tools: readonly ToolSpec[] | undefined): string {
    if (tail?.tools === tools && tail) return tail.text;
    const rest = stringify(requestParameters(options.kwargs, options.stream, tools));
    tail = { tools, text: rest === '{}' ? ']}' : `],${rest.slice(1)}` };
    return tail.text;
  }

  return {
    write(messages, tools) {
      const sent = messages.filter(isSent);
      const last = options.cacheControl === 'default_end' ? sent.pop() : undefined;
      let same = 0;
      while (same < written.length && same < sent.length && isAsWritten(written[same]!, sent[same]!))
        same += 1;
      written.length = same;
      let end = written.at(-1)?.end ?? headEnd;
      for (const message of sent.slice(same)) {
        end = put((end === headEnd ? '' : ',') + stringify(shaped(message)), end);
        written.push({ message, content: message.content, toolCalls: message.tool_calls, end });
      }
      const marked = last
        ? (end === headEnd ? '' : ',') +
          stringify(markForCache(shaped(last), litellm, cacheMark(options.cacheTtl)))
        : '';
      end = put(marked + tailFor(tools), end);
      return bytes(end);
    },
  };
}

/** Fields that litellm's own message does not have. */
const SPECIFIC = ['reasoning_details', 'reasoning'] as const;

const withoutNulls = (message: Fields): Fields =>
  Object.fromEntries(Object.entries(message).filter(([, value]) => value !== null && value !== undefined));

/** Messages as litellm sends them to providers other than OpenAI, for runs under agent.compat. */
function asLitellmSends(message: Fields): Fields {
  if (message.role !== 'assistant') return message;
  const sent = withoutNulls(message);
  const specific = SPECIFIC.filter((name) => name in sent);
  if (specific.length === 0) return sent;
  const { reasoning_details: _details, reasoning, ...rest } = sent;
  return {
    ...rest,
    ...(reasoning === undefined ? {} : { reasoning_content: reasoning }),
    provider_specific_fields: Object.fromEntries(specific.map((name) => [name, sent[name]])),
  };
}
