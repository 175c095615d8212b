/** One HTTP attempt: its deadlines, what has come of it so far, and how it can fail. */

export interface Deadlines {
  /** Milliseconds; 0 is off. */
  readonly connectMs: number;
  readonly firstByteMs: number;
  readonly idleMs: number;
  readonly totalMs: number;
}

export type TransportFault =
  | 'connect_timeout'
  | 'connect'
  | 'first_byte'
  | 'idle'
  | 'total'
  | 'cut'
  | 'reset'
  | 'too_large'
  | 'aborted';

export class TransportError extends Error {
  readonly fault: TransportFault;
  constructor(fault: TransportFault, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'TransportError';
    this.fault = fault;
  }
}

/** One HTTP attempt, as far as it has come. The client of the SDK hands it through to `fetch` in its fetch options. */
export interface Exchange {
  readonly signal: AbortSignal | undefined;
  status: number | null;
  headers: Readonly<Record<string, string>>;
  /** The body when it is read whole; streams are read by the caller. */
  text: string;
  streaming: boolean;
  /** Stream events seen, for the text of the idle deadline. */
  chunks: number;
  failure: TransportError | null;
  /** Which credentials of a cloud it was sent with. */
  credentials?: number;
  /** Bytes of the answer, to distinguish a lost answer from no answer. */
  received: number;
}

export const newExchange = (signal?: AbortSignal): Exchange => ({
  signal,
  status: null,
  headers: {},
  text: '',
  streaming: false,
  chunks: 0,
  failure: null,
  received: 0,
});
