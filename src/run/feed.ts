/** A queue that one side pushes to and the other reads as an async iterable. */
export interface Feed<T> extends AsyncIterable<T> {
  push(value: T): void;
  end(): void;
}

/** Unread values must not fill the memory during a long run. */
const KEPT = 10_000;

/** Keeps at most `kept` unread values; the oldest are dropped. */
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
