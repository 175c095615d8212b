/**
 * Keeps a run from filling the disk of its own record (T-33). Below the floor, running instances are stopped and captured, and a reserve file is
 * deleted so that the record can be written. With enough room again, the run goes on.
 */
import { closeSync, existsSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { formatLimit } from '../../base/text/units.ts';
import { diskFullText, isOpen } from '../../environment/places/diskMarks.ts';

export type DiskFloor = ReturnType<typeof createDiskFloor>;

const LOOK_EVERY_MS = 2_000;
/** The run goes on at this multiple of the floor, so that it does not alternate. */
const DISTANCE = 1.25;

const everySoOften = (look: () => void) => {
  const timer = setInterval(look, LOOK_EVERY_MS);
  return { cancel: () => clearInterval(timer) };
};

export function createDiskFloor({
  floorBytes,
  free,
  reserve,
  setTimer = everySoOften,
}: {
  readonly floorBytes: number;
  /** The least that is free on the file systems that a run fills; undefined when none can be seen. */
  readonly free: () => number | undefined;
  readonly reserve: Reserve;
  readonly setTimer?: (look: () => void) => { cancel(): void };
}) {
  let open = true;
  let listeners = { onLow: (_message: string) => {}, onRoom: () => {} };
  let timer: { cancel(): void } | null = null;
  const close = (freeBytes: number) => {
    open = false;
    reserve.giveUp();
    listeners.onLow(diskFullText(freeBytes, floorBytes));
  };
  const look = () => {
    const freeBytes = free();
    const now = isOpen(open, freeBytes, floorBytes, floorBytes * DISTANCE);
    if (now && (freeBytes ?? 0) > floorBytes + reserve.bytes) reserve.keep();
    if (now && !open) {
      open = true;
      listeners.onRoom();
    } else if (!now && open) close(freeBytes ?? 0);
  };
  return {
    /** Whether the last check found less than the floor. */
    get low(): boolean {
      return !open;
    },
    /** `onLow` gets the sentence to show. Checks at once, then every few seconds. */
    watch(onLow: (message: string) => void, onRoom: () => void): void {
      listeners = { onLow, onRoom };
      look();
      timer = setTimer(look);
    },
    /** Called when a write found no room. True when it made some. */
    relieve(): boolean {
      const freed = reserve.giveUp();
      // Announced after the write that called this.
      if (freed && open) queueMicrotask(() => open && close(free() ?? 0));
      return freed;
    },
    close() {
      timer?.cancel();
      reserve.giveUp();
    },
  };
}

interface Reserve {
  readonly bytes: number;
  keep(): void;
  /** True when it was there. */
  giveUp(): boolean;
}

const BLOCK = 2 ** 20;
const LARGEST_RESERVE = 32 * BLOCK;

/** A file of the size that an attempt's end needs at most: the last messages, the captured patch, the row that ends it. */
export function reserveFile(folder: string, floorBytes: number): Reserve {
  const path = join(folder, '.reserve');
  const bytes = Math.min(LARGEST_RESERVE, Math.floor(floorBytes / 8));
  const giveUp = () => {
    const there = existsSync(path);
    rmSync(path, { force: true });
    return there;
  };
  return {
    bytes,
    giveUp,
    keep() {
      if (existsSync(path)) return;
      const file = openSync(path, 'w');
      try {
        // Written in full, because a sparse file reserves nothing.
        const block = Buffer.alloc(BLOCK, 0x5a);
        for (let at = 0; at < bytes; at += BLOCK) writeSync(file, block, 0, Math.min(BLOCK, bytes - at));
      } catch {
        giveUp();
      } finally {
        closeSync(file);
      }
    },
  };
}

/** The reason why nothing could ever start where this folder is; undefined where there may be room. */
export function neverRoom(folder: string, floorBytes: number): string | undefined {
  try {
    const { blocks, bsize } = statfsSync(folder);
    const all = blocks * bsize;
    if (all === 0 || all >= floorBytes) return undefined;
    return `disk has ${formatLimit(all)} in all, and run.disk_floor keeps ${formatLimit(floorBytes)} free: nothing could ever start; lower run.disk_floor`;
  } catch {
    return undefined;
  }
}

/** The least free space of these folders; those that cannot be checked are skipped. */
export function leastFree(folders: readonly string[]): number | undefined {
  const seen = folders.flatMap((folder) => {
    try {
      const { bavail, bsize } = statfsSync(folder);
      return [bavail * bsize];
    } catch {
      return [];
    }
  });
  return seen.length > 0 ? Math.min(...seen) : undefined;
}
