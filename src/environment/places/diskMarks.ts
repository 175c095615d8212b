/** Two marks of a disk: below the low one it closes, above the high one it opens. Apart from diskRoom.ts, so that no engine is loaded for a disk. */
import { formatLimit } from '../../base/text/units.ts';

export const diskFullText = (freeBytes: number, floorBytes: number): string =>
  `disk_full ${formatLimit(freeBytes)} < ${formatLimit(floorBytes)} floor`;

/** Hysteresis. An unknown amount of space closes nothing. */
export function isOpen(wasOpen: boolean, free: number | undefined, low: number, high: number): boolean {
  if (free === undefined) return true;
  return wasOpen ? free >= low : free >= Math.max(low, high);
}
