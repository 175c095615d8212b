/**
 * Copies the database every hour and at the end of a sitting. A copy that fails is logged and stops nothing. A copy that shows the database
 * to be damaged stops the run, because work paid for from then on may be lost.
 */
import { backUp, DamagedCopy, newestBackup } from '../../store/backup.ts';
import { StorageError, type Store } from '../../store/open.ts';
import { written } from '../../store/writing.ts';
import type { Log } from './runLog.ts';

const EVERY_MS = 3_600_000;

export function keepBackups(
  store: Store,
  log: Log,
  onDamage: (error: StorageError) => void,
): { finish(): Promise<void> } {
  let last: Promise<void> = Promise.resolve();
  let damage: StorageError | null = null;
  const copy = async () => {
    try {
      await written(store);
      const path = await backUp(store.name, new Date().toISOString());
      if (!path) log('warn', 'no backup of the record: the disk has no room for one');
    } catch (error) {
      log('warn', 'no backup of the record', { message: (error as Error).message });
      if (!(error instanceof DamagedCopy)) return;
      const earlier = newestBackup(store.name);
      damage = new StorageError(
        'corrupt',
        `${error.message}; ${earlier ? `the last whole backup is ${earlier}` : 'there is no backup of it'}`,
      );
      onDamage(damage);
    }
  };
  const next = () => {
    last = last.then(copy);
  };
  const timer = setInterval(next, EVERY_MS);
  return {
    /** Rejects when the record is damaged. */
    async finish() {
      clearInterval(timer);
      next();
      await last;
      if (damage) throw damage;
    },
  };
}
