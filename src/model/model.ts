/**
 * The contract between the agent and its model.
 * `query` never throws and never rejects, except for AbortError when its signal fires: failures resolve to a ModelErrorResponse.
 */

import type { ExitReason } from '../outcome.ts';
import type { DialectName } from './dialects/dialects.ts';

export type Role = 'system' | 'user' | 'assistant' | 'tool' | 'exit';

export interface ToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}

/** Provider-native message plus one `extra` namespace, which is never sent. */
export interface Message {
  readonly role: Role;
  readonly content: string | null | readonly unknown[];
  readonly tool_calls?: readonly ToolCall[];
  readonly tool_call_id?: string;
  readonly extra?: Readonly<Record<string, unknown>>;
  /** The turn as its provider sent it, where chat's form would lose some of it. Only the dialect of that name sends it back. */
  readonly native?: { readonly dialect: string; readonly content: unknown };
  readonly [key: string]: unknown;
}

export interface ToolSpec {
  readonly type: 'function';
  readonly function: {
    readonly name: string;
    readonly description: string;
    readonly parameters: Readonly<Record<string, unknown>>;
  };
}

/** Tokens by kind. `input` counts what is neither read from nor written to a cache. */
export interface Usage {
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly output: number;
  readonly reasoning: number;
}

export interface ModelReply {
  /** The assistant message as the provider sent it. */
  readonly message: Message;
  /** The text, '' when there is none. */
  readonly content: string;
  readonly toolCalls: readonly ToolCall[];
  readonly finishReason: string | null;
  /** Model id the provider says it used. */
  readonly modelId: string | null;
  readonly usage: Usage | null;
  /** Nano-dollars; null when unknown; 0 for scripted and replayed calls. */
  readonly costNano: number | null;
  /** The response body, for the trajectory. */
  readonly raw: unknown;
}

export const MODEL_ERROR_CODES = [
  'PROVIDER_NOT_CONFIGURED',
  'PROVIDER_NOT_SUPPORTED',
  'AUTHENTICATION_ERROR',
  'RATE_LIMITED',
  'MODEL_NOT_FOUND',
  'CONTEXT_LENGTH_EXCEEDED',
  'NETWORK_ERROR',
  'TIMEOUT',
  'INVALID_RESPONSE',
  'UNKNOWN',
] as const;
export type ModelErrorCode = (typeof MODEL_ERROR_CODES)[number];

/** How the message of a `bad_call` begins. */
export const BAD_CALL_SAYS = 'unreadable tool call';

/** The kind of a failure, which the ten codes do not tell: how the runner classes the end of an attempt. */
export type ModelFailureKind =
  | 'unavailable'
  | 'rejected'
  | 'refusal'
  | 'quota'
  | 'auth'
  | 'not_found'
  | 'context'
  | 'empty'
  /** A tool was called so that the server could not read it. */
  | 'bad_call'
  | 'config';

export interface ProviderErrorMetadata {
  provider?: string;
  model?: string;
  statusCode?: number;
  /** Seconds until a retry is allowed. */
  retryAfter?: number;
  originalError?: unknown;
  kind?: ModelFailureKind;
  /** A request was rejected before any answer: no call of this model has succeeded yet, so the next instance may end alike. */
  beforeAnyAnswer?: boolean;
  /** Nobody listens at the address of the model: it says nothing about the request. */
  unreachable?: boolean;
  /** The end of a replayed attempt that no reply tells. */
  recordedEnd?: RecordedEnd;
}

export interface RecordedEnd {
  readonly reason: ExitReason;
  readonly detail: string | null;
  readonly exitStatus: string;
  /** Another try followed. */
  readonly again: boolean;
}

export interface ModelSuccessResponse<T> {
  success: true;
  result: T;
  message: string;
}
export interface ModelErrorResponse {
  success: false;
  error: ModelErrorCode;
  /** For people: what happened, after how many tries, what to do. */
  message: string;
  retryAfterMs?: number;
  metadata?: ProviderErrorMetadata;
}
export type ModelResponse<T> = ModelSuccessResponse<T> | ModelErrorResponse;

/** One try: the row of the money ledger. */
export interface CallRecord {
  /** 0 for the first try of a query, then 1, 2... */
  readonly try: number;
  readonly state: 'ok' | 'failed' | 'aborted';
  readonly startedAt: number;
  readonly latencyMs: number;
  readonly statusCode: number | null;
  readonly errorCode: ModelErrorCode | null;
  readonly errorMessage: string | null;
  readonly modelAsked: string;
  readonly modelAnswered: string | null;
  readonly responseId: string | null;
  readonly fingerprint: string | null;
  readonly finishReason: string | null;
  /** As the provider sent it, null when none. */
  readonly rawUsage: unknown;
  readonly usage: Usage | null;
  readonly priceVersion: string | null;
  readonly costNano: number | null;
  /** Cost as the provider states it (OpenRouter's usage.cost), null when it does not. */
  readonly providerCostNano: number | null;
  readonly requestBytes: number;
  /** Oddities of the row: 'usage missing', 'cost estimated'... */
  readonly notes: readonly string[];
  /** A reply that breaks the rules of its dialect, as it came: its first megabyte. */
  readonly unreadable?: string | null;
}

/**
 * Called around every try, `began` before the request leaves and `ended` before its answer is used. The request waits for what `began`
 * returns. A throw here ends the run.
 */
export interface CallListener {
  /** The call asks for its turn: the time until `began` is no work of the caller's, whatever the call waits for. */
  asks?(): void;
  /**
   * A request for money, before `began`: resolves when the call may be paid, and calls `waits` where that takes a while. A model that does not
   * ask is only refused.
   */
  wanted?(estimateNano: number | null, signal: AbortSignal | undefined, waits: () => void): Promise<void>;
  began(call: {
    readonly try: number;
    readonly modelAsked: string;
    readonly startedAt: number;
    readonly estimateNano: number | null;
  }): void | Promise<void>;
  ended(call: CallRecord): void;
  /** The call now waits: 'rate_wait' for the shared limiter, 'backoff' between tries, 'model' while a request is out. */
  phase?(phase: 'rate_wait' | 'backoff' | 'model'): void;
}

export interface QueryOptions {
  readonly tools?: readonly ToolSpec[];
  readonly signal?: AbortSignal | undefined;
  readonly listener?: CallListener;
}

/** A request that another program has written in the provider's own dialect. */
export interface WireRequest {
  readonly operation: 'generate' | 'stream' | 'count_tokens';
  /** The id that stands in it. */
  readonly model: string;
  /** '' or '?beta=true'. */
  readonly query: string;
  /** Headers, without any that names a key. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** The longest answer it asks for; null when it says nothing. */
  readonly maxOutput: number | null;
}

/** Receives the answer as it comes. A try that is repeated is not reported. */
export interface WireSink {
  head(status: number, headers: Readonly<Record<string, string>>): void;
  data(bytes: Uint8Array): void;
}

export interface WireAnswer {
  readonly response: ModelResponse<ModelReply>;
  /** The last answer of the provider, where the sink has heard nothing: an error that the program itself should read. */
  readonly refused: {
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
    readonly text: string;
  } | null;
}

/** The connection to the provider for programs that write their requests themselves: limiter, retries, money and deadlines are the model's. */
export interface Wire {
  readonly dialect: DialectName;
  /** The model's id over the wire. */
  readonly model: string;
  /** Like `query`: rejects only with AbortError, and with what the listener throws. */
  send(
    request: WireRequest,
    /** null: nobody takes the bytes, and the reply alone counts. Then also an answer that was cut short is asked for again. */
    sink: WireSink | null,
    options?: WireOptions,
  ): Promise<WireAnswer>;
}

export interface WireOptions extends Pick<QueryOptions, 'signal' | 'listener'> {
  /** The program has had an answer before: a server that is away is waited for, so that what was paid is not lost. */
  readonly answered?: boolean;
  /** The speaker of the request: a sub-agent by its id, or the program itself. */
  readonly speaker?: string;
}

export interface Model {
  /** Absent where no provider is behind it: scripted, replayed, a user's module. */
  readonly wire?: Wire;
  /** The name in predictions (`model_name_or_path`). */
  readonly name: string;
  query(messages: readonly Message[], options?: QueryOptions): Promise<ModelResponse<ModelReply>>;
  /** Names for templates (model_name, ...). Never secrets. */
  templateVars(): Readonly<Record<string, unknown>>;
  close?(): Promise<void>;
}

/** Everything a model factory gets; one model is made for each attempt, the shared parts live in the factory. */
export interface ModelForAttempt {
  readonly instanceId: string;
  readonly epoch: number;
  /** Attempts of the trial that asked a model and ended as infra before this one; a replay plays the recorded ones in turn. */
  readonly earlier?: number;
}
/** The state of a model's shared limiter at this moment, for display. */
export interface ModelLoad {
  /** Requests at a time; null: as many as slots. */
  readonly limit: number | null;
  readonly inFlight: number;
  readonly waiting: number;
  /** Milliseconds until requests may start again; 0 when they may now. */
  readonly blockedMs: number;
  /** Limits a minute that are kept, configured or learned; absent where nobody shares them. */
  readonly rpm?: number | null;
  readonly tpm?: number | null;
  /** 429s and the like so far. */
  readonly rateLimited: number;
  /** The newest changes of the limit, oldest first; `at` is milliseconds since 1970. */
  readonly changes: readonly {
    readonly at: number;
    readonly limit: number | null;
    readonly reason: string;
  }[];
}
export interface ModelFactory {
  readonly name: string;
  /** Free of charge: scripted or replayed. */
  readonly free: boolean;
  create(attempt: ModelForAttempt): Model;
  load?(): ModelLoad;
  close(): Promise<void>;
}

/** Thrown while a factory is made, before anything is started or paid. */
export class ModelConfigError extends Error {
  override readonly name = 'ModelConfigError';
  readonly code: 'PROVIDER_NOT_CONFIGURED' | 'PROVIDER_NOT_SUPPORTED';
  constructor(message: string, code: ModelConfigError['code'] = 'PROVIDER_NOT_CONFIGURED') {
    super(message);
    this.code = code;
  }
}

export const modelSuccess = <T>(result: T, message = 'ok'): ModelSuccessResponse<T> => ({
  success: true,
  result,
  message,
});

export const modelFailure = (
  error: ModelErrorCode,
  message: string,
  metadata?: ProviderErrorMetadata,
): ModelErrorResponse => ({ success: false, error, message, ...(metadata ? { metadata } : {}) });

/** The error with which `query` rejects when its signal fires, whatever reason the signal carries. */
export function abortError(signal: AbortSignal): Error {
  const reason: unknown = signal.reason;
  if (reason instanceof Error && reason.name === 'AbortError') return reason;
  return new DOMException(reason instanceof Error ? reason.message : 'aborted', 'AbortError');
}
