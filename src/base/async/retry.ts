import { sleep } from './timer.ts';

interface RetryOptions {
  /** How long to wait after the failure of try `tried` (1 is the first); undefined gives up. */
  readonly delayMs: (error: unknown, tried: number) => number | undefined;
  /** Said before each wait. */
  readonly onWait?: (error: unknown, ms: number) => void;
  readonly sleep?: (ms: number) => Promise<void>;
}

/** Runs work again after a failure that a wait may mend. A call of a model has its own rules: model/limits/retry.ts. */
export async function retry<T>(work: () => Promise<T>, options: RetryOptions): Promise<T> {
  for (let tried = 1; ; tried++) {
    try {
      return await work();
    } catch (error) {
      const ms = options.delayMs(error, tried);
      if (ms === undefined) throw error;
      options.onWait?.(error, ms);
      await (options.sleep ?? sleep)(ms);
    }
  }
}
