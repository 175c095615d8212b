/**
 * Holds back new starts and pulls while the disk is low, and lets them continue when there is room again. Two marks keep it from fluttering:
 * below the low one it closes, above the high one it opens.
 */
import { formatLimit } from '../../../../base/text/units.ts';

export interface DiskGateOptions {
  /** Free bytes of the file system that fills up; undefined when it is not known. */
  readonly free: () => Promise<number | undefined>;
  readonly lowBytes: number;
  readonly highBytes: number;
  readonly clock: { sleep(ms: number, signal: AbortSignal): Promise<void> };
  readonly intervalMs?: number;
  /** Tries to make room, by the image policy; called each time the gate is found closed. */
  readonly makeRoom?: (missingBytes: number) => Promise<void>;
  readonly onChange?: (state: DiskGateState) => void;
}
export interface DiskGateState {
  readonly open: boolean;
  readonly freeBytes: number | undefined;
  /** "disk_full 1.9 GiB < 2 GiB floor"; empty while open. */
  readonly message: string;
}

export interface DiskGate {
  check(): Promise<DiskGateState>;
  /** Returns when there is room, or when the signal aborts. */
  pass(signal: AbortSignal): Promise<void>;
}

const INTERVAL_MS = 5_000;

export const diskFullText = (freeBytes: number, floorBytes: number): string =>
  `disk_full ${formatLimit(freeBytes)} < ${formatLimit(floorBytes)} floor`;

/** Hysteresis. An unknown amount of space closes nothing. */
export function isOpen(wasOpen: boolean, free: number | undefined, low: number, high: number): boolean {
  if (free === undefined) return true;
  return wasOpen ? free >= low : free >= Math.max(low, high);
}

export function createDiskGate(options: DiskGateOptions): DiskGate {
  const { lowBytes, highBytes, clock, intervalMs = INTERVAL_MS } = options;
  let open = true;
  async function check(): Promise<DiskGateState> {
    let freeBytes = await options.free();
    if (!isOpen(open, freeBytes, lowBytes, highBytes) && freeBytes !== undefined && options.makeRoom) {
      await options.makeRoom(Math.max(lowBytes, highBytes) - freeBytes);
      freeBytes = await options.free();
    }
    const now = isOpen(open, freeBytes, lowBytes, highBytes);
    const floor = open ? lowBytes : Math.max(lowBytes, highBytes);
    const message = now ? '' : diskFullText(freeBytes ?? 0, floor);
    const state = { open: now, freeBytes, message };
    const changed = now !== open;
    open = now;
    if (changed) options.onChange?.(state);
    return state;
  }
  return {
    check,
    async pass(signal) {
      while (!signal.aborted && !(await check()).open) await clock.sleep(intervalMs, signal);
    },
  };
}
