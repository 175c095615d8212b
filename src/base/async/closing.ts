/** Collects things that were opened one after the other and must be closed on every way out. */
export interface Closing {
  /** Closed after all that was added before. */
  add(close: () => unknown): void;
  /** Each is closed, whatever becomes of the others. Rejects afterwards with the first failure. */
  closeAll(): Promise<void>;
}

export function createClosing(): Closing {
  const toClose: (() => unknown)[] = [];
  return {
    add: (close) => void toClose.push(close),
    async closeAll() {
      const failures: unknown[] = [];
      for (const close of toClose.splice(0)) {
        try {
          await close();
        } catch (error) {
          failures.push(error);
        }
      }
      if (failures.length > 0) throw failures[0];
    },
  };
}
