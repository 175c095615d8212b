/**
 * The answer to one call as it comes, for whoever waits for it. A program that asked twice reads the same answer twice, and one that went
 * away does not end it. Of a very long one the beginning is kept; all of it passes.
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
  /** False: nothing more is told before it asks for it. A reader that stands still must not gather the answer in memory. */
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
  /** The bytes so far, as far as they are kept. */
  bytes(): Uint8Array;
  /** Everything that has come is kept: somebody who asks for it now gets all of it. */
  isKept(): boolean;
  /** Calls back once, when nothing more comes from the provider. */
  ended(tell: () => void): void;
  /** Tells everything that has come, then what comes. */
  read(reader: Reader): Reading;
  /** Somebody has got all of it, as far as one can tell; the result takes that back. */
  delivered(): () => void;
  isDelivered(): boolean;
}

/** The longest answers of models are a tenth of that, with all that stands around their words in a stream. */
const KEPT_BYTES = 67_108_864;

export function createAnswer(keptBytes = KEPT_BYTES): Answer {
  /** Readers, each with a function that tells it what it has not got yet, as far as it has room, and the number of its next piece. */
  const readers = new Map<() => void, () => number>();
  const kept: Uint8Array[] = [];
  let bytesKept = 0;
  /** Behind what is kept: each piece goes when everybody has it. `passedFrom` is the number of the first that is here. */
  const passing: Uint8Array[] = [];
  let passedFrom = 0;
  let isKept = true;
  const taken: (() => void)[] = [];
  const over = Promise.withResolvers<void>();
  let head: Head | null = null;
  let outcome: AnswerOutcome | null = null;
  const got = new Set<object>();

  const count = (): number => (isKept ? kept.length : passedFrom + passing.length);
  const pieceAt = (at: number): Uint8Array | undefined =>
    at < kept.length ? kept[at] : passing[at - passedFrom];
  /** Pieces that every reader has are let go, and the provider may say more. */
  const letGo = (): void => {
    const first = Math.min(count(), ...[...readers.values()].map((next) => next()));
    passedFrom += passing.splice(0, Math.max(0, first - passedFrom)).length;
    if (passing.length > 0) return;
    for (const go of taken.splice(0)) go();
  };
  const tellAll = (): void => {
    for (const tell of [...readers.keys()]) tell();
    if (!isKept) letGo();
  };
  return {
    sink: {
      head(status, headers) {
        head = { status, headers };
        tellAll();
      },
      data(bytes) {
        if (isKept && bytesKept + bytes.length > keptBytes) {
          isKept = false;
          passedFrom = kept.length;
        }
        if (isKept) bytesKept += bytes.length;
        (isKept ? kept : passing).push(bytes);
        tellAll();
        if (passing.length === 0) return undefined;
        return new Promise<void>((resolve) => taken.push(resolve));
      },
    },
    head: () => head,
    finish(end) {
      outcome = end;
      over.resolve();
      tellAll();
    },
    outcome: () => outcome,
    bytes: () => Buffer.concat(kept),
    isKept: () => isKept,
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
        while (room && next < count()) {
          next += 1;
          room = reader.data(pieceAt(next - 1)!);
        }
        if (!outcome || next < count() || !readers.delete(tell)) return;
        reader.end(outcome);
      };
      readers.set(tell, () => next);
      tell();
      return {
        leave() {
          readers.delete(tell);
          if (!isKept) letGo();
        },
        more() {
          room = true;
          if (readers.has(tell)) tell();
          if (!isKept) letGo();
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
