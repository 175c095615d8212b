/**
 * The answer to one call as it comes, for whoever waits for it. A program that asked twice reads the same answer twice, and one that went
 * away does not end it.
 */
import type { WireSink } from '../model/model.ts';
import type { Refusal } from './errorBodies.ts';

export type Outcome =
  | { readonly kind: 'whole' }
  /** The provider's stream broke after its beginning had left for the program. */
  | { readonly kind: 'cut' }
  | {
      readonly kind: 'refused';
      readonly status: number;
      readonly headers: Readonly<Record<string, string>>;
      readonly text: string;
    }
  | { readonly kind: 'error'; readonly refusal: Refusal; readonly message: string };

export interface Head {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Reader {
  head(head: Head): void;
  data(bytes: Uint8Array): void;
  end(outcome: Outcome): void;
}

export interface Answer {
  readonly sink: WireSink;
  head(): Head | null;
  finish(outcome: Outcome): void;
  outcome(): Outcome | null;
  /** What has come so far. */
  bytes(): Uint8Array;
  /** Calls back once, when nothing more comes from the provider. */
  ended(tell: () => void): void;
  /** Tells everything that has come, then what comes. Returns the end of it. */
  read(reader: Reader): () => void;
  /** Somebody has got all of it. */
  delivered(): void;
  isDelivered(): boolean;
}

export function createAnswer(): Answer {
  const readers = new Set<Reader>();
  const chunks: Uint8Array[] = [];
  const over = Promise.withResolvers<void>();
  let head: Head | null = null;
  let outcome: Outcome | null = null;
  let delivered = false;
  return {
    sink: {
      head(status, headers) {
        head = { status, headers };
        for (const reader of readers) reader.head(head);
      },
      data(bytes) {
        chunks.push(bytes);
        for (const reader of readers) reader.data(bytes);
      },
    },
    head: () => head,
    finish(end) {
      outcome = end;
      over.resolve();
      for (const reader of readers) reader.end(end);
      readers.clear();
    },
    outcome: () => outcome,
    bytes: () => Buffer.concat(chunks),
    ended: (tell) => void over.promise.then(tell),
    read(reader) {
      if (head) reader.head(head);
      for (const bytes of chunks) reader.data(bytes);
      if (outcome) reader.end(outcome);
      else readers.add(reader);
      return () => void readers.delete(reader);
    },
    delivered() {
      delivered = true;
    },
    isDelivered: () => delivered,
  };
}
