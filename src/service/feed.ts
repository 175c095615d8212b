/** Values that are pushed by one and read by another as an async iterable. */
export interface Feed<T> extends AsyncIterable<T> {
  push(value: T): void;
  end(): void;
}

/** What nobody reads must not fill the memory of a long night. */
const KEPT = 10_000;

/** Keeps what has not been read yet; of more than `kept` values the oldest go. */
export function createFeed<T>(kept = KEPT): Feed<T> {
  const waiting: T[] = [];
  let ended = false;
  let wake = () => {};
  return {
    push(value) {
      waiting.push(value);
      if (waiting.length > kept) waiting.shift();
      wake();
    },
    end() {
      ended = true;
      wake();
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        while (waiting.length > 0) yield waiting.shift()!;
        if (ended) return;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}
