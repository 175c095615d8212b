/** A copy of the record every hour and at the end of a sitting. A copy that cannot be made is told and stops nothing. */
import { backUp } from '../store/backup.ts';
import type { Store } from '../store/open.ts';
import type { Batch } from './slot.ts';

const EVERY_MS = 3_600_000;

export function keepBackups(store: Store, log: Batch['log']): { finish(): Promise<void> } {
  let last: Promise<void> = Promise.resolve();
  const copy = async () => {
    try {
      const path = await backUp(store, new Date().toISOString());
      if (!path) log('warn', 'no backup of the record: the disk has no room for one');
    } catch (error) {
      log('warn', 'no backup of the record', { message: (error as Error).message });
    }
  };
  const next = () => {
    last = last.then(copy);
  };
  const timer = setInterval(next, EVERY_MS);
  return {
    async finish() {
      clearInterval(timer);
      next();
      await last;
    },
  };
}
