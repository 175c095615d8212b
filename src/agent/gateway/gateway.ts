/**
 * The contract between a program that brings its own agent and the model of its arm. One gateway serves a process; a session is one
 * attempt. The gateway listens nowhere: connections are handed to it (Environment.listen).
 */
import type { Duplex } from 'node:stream';
import type { DialectName } from '../../model/dialects/dialects.ts';
import type {
  CallListener,
  Message,
  Model,
  ModelErrorResponse,
  ModelReply,
  WireRequest,
} from '../../model/model.ts';
import type { NanoDollars } from '../../money.ts';
import type { CallLimits, ReachedLimit } from '../limitsTold.ts';
import type { GatewayConfig } from './gatewayConfig.ts';

/** The gateway with the rules of an arm. */
export interface ArmGateway {
  open(spec: Omit<SessionSpec, 'config'>): GatewaySession;
}

export interface Gateway {
  /** Throws where the model has no connection to a provider (scripted, replayed, a user's module). */
  open(spec: SessionSpec): GatewaySession;
  close(): Promise<void>;
}

/** The kind of a call. A title is a call without tools: a heading, a summary. */
export type CallLabel =
  | { readonly kind: 'main' }
  | { readonly kind: 'subagent'; readonly id: string }
  | { readonly kind: 'title' }
  | { readonly kind: 'count_tokens' };

export interface CallFacts {
  /** 0, 1, ... in the order in which calls began. */
  readonly index: number;
  /** The step of a call with tools; of the others the step in which they came. */
  readonly step: number;
  readonly label: CallLabel;
}

export interface SessionSpec {
  /** Names the attempt in messages. */
  readonly attempt: string;
  readonly model: Model;
  /** 0 is off. */
  readonly limits: CallLimits;
  readonly config: GatewayConfig;
  /** Every name of a model means this one. */
  readonly anyModel?: boolean;
  /** The ledger's side of each call; several calls may be out at a time. */
  listener(call: CallFacts): CallListener;
  /** The record of the calls: an error of it ends the session. */
  onCall?(call: GatewayCall): void;
  /** A request that is not made, and why. */
  onRefused?(message: string): void;
  /** A sentence that stays with the attempt; each is told once. */
  onNote?(text: string): void;
  readonly signal?: AbortSignal | undefined;
}

/** A call that was answered, or that failed for good. */
export interface GatewayCall extends CallFacts {
  readonly dialect: DialectName;
  /** The provider's protocol, where it is another and the call was translated; else null. */
  readonly translated: DialectName | null;
  /** The model's name in the program's request, then in the provider's. */
  readonly modelAsked: string;
  readonly model: string;
  readonly streamed: boolean;
  /** The status that the program got. */
  readonly status: number;
  readonly operation: WireRequest['operation'];
  /** The body as the program sent it. */
  readonly request: unknown;
  /** The body as it went out: without what the policy takes away. */
  readonly sent: Uint8Array;
  /** The answer that the program got, as it came. */
  readonly answer: ProgramAnswer;
  /** The body of the answer, of a stream as it comes to; null where there is none. */
  readonly response: unknown;
  readonly reply: ModelReply | null;
  readonly failure: ModelErrorResponse | null;
  /** Messages that this call adds to its conversation: the new ones of the request, then the reply. */
  readonly newMessages: readonly Message[];
  /** The conversation: main, main-2 after a history that was rewritten, the id of a sub-agent, title. */
  readonly thread: string;
  /** Tools of the provider that were taken out. */
  readonly stripped: readonly string[];
  readonly startedAt: number;
  readonly endedAt: number;
}

export interface ProgramAnswer {
  /** `cut`: the answer broke off; `refused`: an error in the provider's words; `error`: an error in the gateway's, without bytes of a provider. */
  readonly end: 'whole' | 'cut' | 'refused' | 'error';
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes: Uint8Array;
}

/** The reasons why the gateway wants the attempt to end. */
export type GatewayEnd =
  | ({ readonly kind: 'limit' } & ReachedLimit)
  | { readonly kind: 'model'; readonly failure: ModelErrorResponse }
  /** The error of a listener: the budget of the run, or a record that cannot be written. */
  | { readonly kind: 'thrown'; readonly error: unknown };

export interface GatewaySummary {
  /** Calls with tools; where there were none, calls without. */
  readonly steps: number;
  readonly calls: number;
  /** The program asked for an answer, and not for counts of tokens alone. */
  readonly asked: boolean;
  /** null once the cost of any call is unknown. */
  readonly costNano: NanoDollars | null;
  /** Cost with estimates where one is unknown: limits are checked against it. */
  readonly spentNano: NanoDollars;
  readonly tokens: number;
  /** The failure that the program was shown at last, and gave up on; null where its newest turn went well. */
  readonly lastFailure: ModelErrorResponse | null;
  /** The reason why the gateway refused the first request that it refused, before it was asked anything; null where it refused none. */
  readonly refusal: string | null;
}

export interface GatewaySession {
  /** The key that stands for the provider's inside, and is worth nothing after `close`. */
  readonly key: string;
  /** The model that the program must ask for. */
  readonly model: string;
  readonly dialect: DialectName;
  /** One connection of the program. Never throws. */
  handle(connection: Duplex): void;
  /** No call that has not begun is made any more; the program is told why. */
  refuse(why: string): void;
  /** May never resolve; never rejects. */
  readonly ended: Promise<GatewayEnd>;
  state(): GatewaySummary;
  /** Safe to call twice. Calls that are out are read to their end for a while, then broken off; what they cost is in the ledger. */
  close(): Promise<GatewaySummary>;
}
