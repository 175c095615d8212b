/**
 * The answer to one call as it comes, for every waiter. A program that asked twice reads the same answer twice, and one that went
 * away does not end it (observed: tests/agent/gateway/gateway.test.ts).
 */
import type { Refusal } from '../../model/dialects/programSide.ts';
import type { WireSink } from '../../model/model.ts';

export type AnswerOutcome =
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

interface Head {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Reader {
  head(head: Head): void;
  /** False: nothing more is told before it asks for it. */
  data(bytes: Uint8Array): boolean;
  end(outcome: AnswerOutcome): void;
}

interface Reading {
  /** The reader has room again. */
  more(): void;
  leave(): void;
}

export interface Answer {
  readonly sink: WireSink;
  head(): Head | null;
  finish(outcome: AnswerOutcome): void;
  outcome(): AnswerOutcome | null;
  /** The bytes so far. */
  bytes(): Uint8Array;
  /** Calls back once, when nothing more comes from the provider. */
  ended(tell: () => void): void;
  /** Tells everything that has come, then what comes. */
  read(reader: Reader): Reading;
  /** Somebody has got all of it, as far as one can tell; the result takes that back (observed: tests/agent/gateway/gateway.test.ts). */
  delivered(): () => void;
  isDelivered(): boolean;
}

export function createAnswer(): Answer {
  /** Readers, each told what it has not got yet, as far as it has room. */
  const readers = new Set<() => void>();
  const pieces: Uint8Array[] = [];
  const over = Promise.withResolvers<void>();
  let head: Head | null = null;
  let outcome: AnswerOutcome | null = null;
  const got = new Set<object>();
  const tellAll = (): void => {
    for (const tell of [...readers]) tell();
  };
  return {
    sink: {
      head(status, headers) {
        head = { status, headers };
        tellAll();
      },
      data(bytes) {
        pieces.push(bytes);
        tellAll();
      },
    },
    head: () => head,
    finish(end) {
      outcome = end;
      over.resolve();
      tellAll();
    },
    outcome: () => outcome,
    bytes: () => Buffer.concat(pieces),
    ended: (tell) => void over.promise.then(tell),
    read(reader) {
      let begun = false;
      let next = 0;
      let room = true;
      const tell = (): void => {
        if (!begun && head) {
          begun = true;
          reader.head(head);
        }
        while (room && next < pieces.length) {
          next += 1;
          room = reader.data(pieces[next - 1]!);
        }
        if (!outcome || next < pieces.length || !readers.delete(tell)) return;
        reader.end(outcome);
      };
      readers.add(tell);
      tell();
      return {
        leave: () => void readers.delete(tell),
        more() {
          room = true;
          if (readers.has(tell)) tell();
        },
      };
    },
    delivered() {
      const one = {};
      got.add(one);
      return () => void got.delete(one);
    },
    isDelivered: () => got.size > 0,
  };
}
