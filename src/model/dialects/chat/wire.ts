/**
 * From messages to the bytes of a chat completions request. A history only grows, so what was serialised for one call is kept
 * and the next call adds its new messages: serialising all of it each time is what made other runners slow (reference/
 * performance.md), and the strings it leaves behind are what makes memory grow with the number of slots.
 */
import type { ModelConfig } from '../../config.ts';
import type { Message, ToolSpec } from '../../model.ts';

interface WireOptions {
  readonly model: string;
  readonly kwargs: Readonly<Record<string, unknown>>;
  readonly stream: boolean;
  readonly cacheControl: 'default_end' | null;
}

/** Parameters of litellm's client, not of the wire: configs of mini-swe-agent carry them, and servers reject what they do not know. */
const CLIENT_ONLY = new Set([
  'drop_params',
  'additional_drop_params',
  'allowed_openai_params',
  'custom_llm_provider',
  'num_retries',
  'max_retries',
  'timeout',
  'extra_headers',
  'extra_body',
]);

type Kwargs = Readonly<Record<string, unknown>>;

const objectOf = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};

/** The parameters as they stand in the body; `extra_body` is how the Python SDK names those that it does not know itself. */
export function sentParameters(kwargs: Kwargs): Record<string, unknown> {
  const named = Object.entries(kwargs).filter(([name]) => !CLIENT_ONLY.has(name));
  return { ...Object.fromEntries(named), ...objectOf(kwargs.extra_body) };
}

/** Every field of a request beside `model` and `messages`, in its order. */
export function requestParameters(
  kwargs: Kwargs,
  stream: boolean,
  tools: readonly ToolSpec[] | undefined,
): Record<string, unknown> {
  return {
    ...(tools && tools.length > 0 ? { tools } : {}),
    ...(stream ? { stream: true, stream_options: { include_usage: true } } : {}),
    ...sentParameters(kwargs),
  };
}

/** litellm's names carry a provider in front, which OpenAI itself does not know; a server of one's own may mean it (`openai/gpt-oss-120b`). */
export function sentModel(config: Pick<ModelConfig, 'model_name' | 'base_url'>): string {
  const name = config.model_name ?? '';
  return config.base_url === undefined ? name.replace(/^openai\//, '') : name;
}

export const extraHeaders = (kwargs: Kwargs): Record<string, string> =>
  Object.fromEntries(
    Object.entries(objectOf(kwargs.extra_headers)).map(([name, value]) => [name, String(value)]),
  );

const EPHEMERAL = { type: 'ephemeral' };

/**
 * mini-swe-agent's `default_end`: the mark goes on the last message only, inside its content where that is text, beside it where there
 * is none or where it answers a call; text becomes a list of parts in both.
 */
function markForCache(message: Record<string, unknown>): Record<string, unknown> {
  const { content, role } = message;
  if (content === null || content === undefined) return { ...message, cache_control: EPHEMERAL };
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : (content as unknown[]);
  if (role === 'tool') return { ...message, content: parts, cache_control: EPHEMERAL };
  const last = parts.length - 1;
  return {
    ...message,
    content: parts.map((part, index) =>
      index === last && typeof part === 'object' ? { ...part, cache_control: EPHEMERAL } : part,
    ),
  };
}

const isSent = (message: Message): boolean => message.role !== 'exit';

function withoutExtra(message: Message): Record<string, unknown> {
  if (message.extra === undefined) return message;
  const { extra: _never, ...sent } = message;
  return sent;
}

/**
 * JSON.stringify writes a lone surrogate as an escape that many servers cannot decode (T-16). The escape is rare and cheap
 * to look for, so the second pass happens only where one may be.
 */
function stringify(value: unknown): string {
  const text = JSON.stringify(value);
  if (!/\\ud[89a-f]/.test(text)) return text;
  return JSON.stringify(value, (_key, item: unknown) =>
    typeof item === 'string' ? item.toWellFormed() : item,
  );
}

/** A message as it was when it was written, so that one that was changed in place is noticed. */
interface Written {
  readonly message: Message;
  readonly content: unknown;
  readonly toolCalls: unknown;
  /** Where its bytes end. */
  readonly end: number;
}

const isAsWritten = (written: Written, message: Message): boolean =>
  written.message === message &&
  written.content === message.content &&
  written.toolCalls === message.tool_calls;

export interface RequestWriter {
  /** The body for this history. Its bytes are good until the next call of `write`. */
  write(messages: readonly Message[], tools?: readonly ToolSpec[]): Uint8Array;
}

const SPARE = 1.5;

/** One for each conversation. */
export function createRequestWriter(options: WireOptions): RequestWriter {
  const head = `{"model":${JSON.stringify(options.model)},"messages":[`;
  let buffer = Buffer.from(head);
  const headEnd = buffer.length;
  const written: Written[] = [];
  let tail: { readonly tools: unknown; readonly text: string } | undefined;

  /** Returns where the text ends. */
  function put(text: string, at: number): number {
    const end = at + Buffer.byteLength(text);
    if (end > buffer.length) {
      const larger = Buffer.allocUnsafeSlow(Math.ceil(end * SPARE));
      buffer.copy(larger, 0, 0, at);
      buffer = larger;
    }
    buffer.write(text, at);
    return end;
  }

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
        end = put((end === headEnd ? '' : ',') + stringify(withoutExtra(message)), end);
        written.push({ message, content: message.content, toolCalls: message.tool_calls, end });
      }
      const marked = last ? (end === headEnd ? '' : ',') + stringify(markForCache(withoutExtra(last))) : '';
      end = put(marked + tailFor(tools), end);
      return buffer.subarray(0, end);
    },
  };
}
