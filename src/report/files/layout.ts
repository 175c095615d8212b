/** Where the exported files of a run lie: flat for one arm and one epoch, else one folder for each. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';

/** File systems end at 255 bytes. */
const LONGEST = 200;

/** A name that is one path component: official tools write "/" of a model name as "__". */
export const pathName = (name: string): string => {
  const safe = name.replaceAll('/', '__').replace(/[^A-Za-z0-9_.@+-]/g, '_');
  if (safe.length > LONGEST)
    return `${safe.slice(0, LONGEST - 13)}-${createHash('sha256').update(name).digest('hex').slice(0, 12)}`;
  return /^\.+$/.test(safe) || safe === '' ? `_${safe}` : safe;
};

export interface Part<T> {
  readonly arm: string;
  readonly epoch: number;
  /** Relative to the run's folder; '' when the run has one part only. */
  readonly folder: string;
  readonly rows: readonly T[];
}

/** Splits rows by arm and epoch in their order of appearance. */
export function partsOf<T extends { arm: string; epoch: number }>(rows: readonly T[]): Part<T>[] {
  const groups = Map.groupBy(rows, (row) => `${row.epoch}\0${row.arm}`);
  return [...groups.values()].map((group) => ({
    arm: group[0]!.arm,
    epoch: group[0]!.epoch,
    folder: groups.size === 1 ? '' : join(pathName(group[0]!.arm), `epoch-${group[0]!.epoch}`),
    rows: group,
  }));
}
