/** What an installed agent needs of the gateway: a session for its attempt, which answers the program's calls of models and ends it at limits. */
import type { Duplex } from 'node:stream';
import type { DialectName } from '../../model/dialects/dialectName.ts';
import type { CallListener, Message, Model, ModelErrorResponse } from '../../model/model.ts';

/** A call that came to its end, as far as the record of the attempt goes. */
export interface AnsweredCall {
  readonly index: number;
  readonly step: number;
  /** `main`, or whose conversation it belongs to: that of a sub-agent, of a title. */
  readonly thread: string;
  /** What the call adds to its thread, its answer included. */
  readonly newMessages: readonly Message[];
  readonly startedAt: number;
  readonly endedAt: number;
}

/** The gateway decided that the attempt must end. */
export type GatewayEnd =
  | { readonly kind: 'limit'; readonly limit: 'steps' | 'cost' | 'tokens'; readonly message: string }
  | { readonly kind: 'model'; readonly failure: ModelErrorResponse }
  /** The budget of the run, or a record that cannot be written. */
  | { readonly kind: 'thrown'; readonly error: unknown };

export interface GatewaySummary {
  readonly steps: number;
  readonly costNano: number | null;
  readonly calls: number;
  /** The newest call of the main conversation failed, and the program was told so. */
  readonly lastFailure: ModelErrorResponse | null;
}

export interface GatewaySession {
  /** Names the attempt, and is worth nothing elsewhere. */
  readonly key: string;
  /** What the program must call the model. */
  readonly model: string;
  readonly dialect: DialectName;
  handle(connection: Duplex): void;
  /** May never resolve. */
  readonly ended: Promise<GatewayEnd>;
  close(): Promise<GatewaySummary>;
}

export interface SessionCall {
  readonly index: number;
  readonly step: number;
  readonly label?: { readonly kind: string; readonly id?: string };
}

export interface SessionRequest {
  readonly attempt: string;
  readonly model: Model;
  /** 0 is off. */
  readonly limits: { readonly steps: number; readonly costDollars: number; readonly tokens: number };
  readonly listener: (call: SessionCall) => CallListener;
  readonly onCall: (call: AnsweredCall) => void;
  readonly onNote: (text: string) => void;
  readonly signal?: AbortSignal | undefined;
}

export interface GatewayPort {
  open(request: SessionRequest): GatewaySession;
}
