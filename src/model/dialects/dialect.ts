/**
 * A dialect is one provider's protocol: requests out, replies in. There is one object of this kind for each dialect.
 * Connections, deadlines, retries, limits and the ledger are shared by all of them (model/http, model/limits).
 */

import type { Message, ToolCall, ToolSpec, Usage } from '../model.ts';
import type { ModelConfig } from '../modelConfig.ts';
import type { DialectName } from './dialects.ts';

/** Facts that the ledger keeps of every answer, also of an unusable one. */
export interface AnswerFacts {
  readonly modelId: string | null;
  readonly responseId: string | null;
  readonly fingerprint: string | null;
  readonly finishReason: string | null;
  readonly rawUsage: unknown;
}

export const NO_FACTS: AnswerFacts = {
  modelId: null,
  responseId: null,
  fingerprint: null,
  finishReason: null,
  rawUsage: null,
};

/** Ends of a reply that its model made, in the words of chat completions; Gemini's for calls that came out wrong have no others. */
const WHOLE: ReadonlySet<string> = new Set([
  ...['stop', 'length', 'tool_calls', 'function_call', 'content_filter'],
  ...['MALFORMED_FUNCTION_CALL', 'MALFORMED_RESPONSE', 'UNEXPECTED_TOOL_CALL', 'TOO_MANY_TOOL_CALLS'],
]);

/**
 * The end that a reply lacks, as part of a sentence; null where its provider says that it is whole. Providers end replies that broke off with a
 * word of their own (`abort`, `network_error`, `OTHER`), with none, or with nothing at all: no part of such a reply is the model's word
 * (docs/threat-model.md, cutReplies.test.ts).
 */
export function missingEnd({ finishReason }: AnswerFacts): string | null {
  if (finishReason === null || finishReason === '') return 'a finish reason';
  return WHOLE.has(finishReason)
    ? null
    : `an end that a model makes: its finish reason is "${finishReason.slice(0, 60)}"`;
}

export interface ReadReply extends AnswerFacts {
  readonly message: Message;
  readonly content: string;
  readonly toolCalls: readonly ToolCall[];
}

export interface ProviderError {
  readonly status: number | null;
  readonly code: string | null;
  readonly type: string | null;
  readonly message: string;
  /** The field of the request that the error is about, where it says so outside of its sentence. */
  readonly param?: string | null;
  /** Milliseconds after which the body itself says to come back. */
  readonly retryMs: number | null;
}

/** The error of a reply that says so by its end. */
export const TOO_LONG: ProviderError = {
  status: null,
  code: 'context_window_exceeded',
  type: null,
  message: 'the reply reached the end of the context window',
  retryMs: null,
};

export type ReadResult =
  | { readonly kind: 'reply'; readonly reply: ReadReply }
  | {
      readonly kind: 'empty' | 'refusal' | 'malformed';
      readonly facts: AnswerFacts;
      readonly message: string;
    }
  | { readonly kind: 'error_object'; readonly facts: AnswerFacts; readonly error: ProviderError };

export interface ReadUsage {
  readonly usage: Usage | null;
  /** The part of `usage.cacheWrite` that is kept for an hour, which costs more. */
  readonly cacheWrite1h: number;
  readonly notes: readonly string[];
}

/** One server-sent event; `data` is its parsed JSON. */
export interface StreamEvent {
  readonly event: string | null;
  readonly data: unknown;
}

/** Puts the events of a stream together to the body that a plain answer would have been. */
export interface Assembly {
  add(data: unknown, event?: string | null): void;
  /** The answer so far. */
  body(): Record<string, unknown>;
  /** Characters received, for an estimate when the rest never comes. */
  characters(): number;
}

/** `own`: the provider's documented form, with our cache marks. `litellm`: the form of mini-swe-agent's requests (agent.compat). */
export type RequestStyle = 'own' | 'litellm';

export interface RequestWriter {
  /** The body for this history, good until the next call of `write`. */
  write(messages: readonly Message[], tools?: readonly ToolSpec[]): Uint8Array;
}

interface Target {
  /** The path beneath the base URL, with a leading slash; a query string where the dialect has one. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Dialect {
  readonly name: DialectName;
  /** Limits a minute leave out what a provider reads from its cache; default: they count it. */
  readonly cachedIsFree?: boolean;
  /** Tells a body that it answered with from those of the others; absent: chat completions, the common form. */
  wrote?(body: Readonly<Record<string, unknown>>): boolean;
  /** The path of a request, with the headers beside those that every request has. `apiKey` is '' where the server needs none. */
  target(config: ModelConfig, model: string, apiKey: string): Target;
  /** Every field of a request beside the model and the messages, in its order. */
  parameters(config: ModelConfig, tools: readonly ToolSpec[] | undefined): Record<string, unknown>;
  /** A writer for each conversation. Cost over a conversation is linear in its length. */
  createWriter(config: ModelConfig, model: string, style: RequestStyle): RequestWriter;
  /** Reads the body of a success. Never throws. */
  read(body: unknown): ReadResult;
  factsOf(body: Record<string, unknown>): AnswerFacts;
  /** `raw` is `AnswerFacts.rawUsage`. Never throws. */
  readUsage(raw: unknown): ReadUsage;
  assemble(): Assembly;
}
