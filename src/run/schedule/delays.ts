/** Delayed work. When the run stops, all of it is done at once. */
import { startTimer } from '../../base/async/timer.ts';

export interface Delays {
  after(ms: number, work: () => void): void;
  endAll(): void;
}

export function createDelays(): Delays {
  const pending = new Set<() => void>();
  return {
    after(ms, work) {
      const fire = () => {
        if (!pending.delete(fire)) return;
        timer.cancel();
        work();
      };
      const timer = startTimer(Math.max(1, ms), fire);
      pending.add(fire);
    },
    endAll() {
      for (const fire of [...pending]) fire();
    },
  };
}
