/** Where the exported files of a run lie: flat for one arm and one epoch, else one folder for each. */
import { join } from 'node:path';
import { pathName } from '../../base/text/fileName.ts';

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
