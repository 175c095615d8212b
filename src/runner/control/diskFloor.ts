/**
 * Keeps a run from filling the disk under its own record. Below the floor the run holds still: what runs is ended and taken home,
 * and a file kept in reserve is given up so that the record can be written meanwhile. Above it, with some distance, the run goes on.
 */
import { closeSync, existsSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { diskFullText, isOpen } from '../../environment/images/disk/diskGate.ts';

export interface DiskFloor {
  /** Below the floor at the last look. */
  readonly low: boolean;
  /** `onLow` gets the sentence to show. Looks at once, then every few seconds. */
  watch(onLow: (message: string) => void, onRoom: () => void): void;
  /** A write found no room at all. True when there is some now. */
  relieve(): boolean;
  close(): void;
}

export interface DiskFloorParts {
  readonly floorBytes: number;
  /** The least that is free on the file systems that a run fills; undefined when none can be seen. */
  readonly free: () => number | undefined;
  readonly reserve: Reserve;
  readonly setTimer?: (look: () => void) => { cancel(): void };
}

const LOOK_EVERY_MS = 2_000;
/** Above the floor by this much before the run goes on, so that it does not flutter. */
const DISTANCE = 1.25;

const everySoOften = (look: () => void) => {
  const timer = setInterval(look, LOOK_EVERY_MS);
  return { cancel: () => clearInterval(timer) };
};

export function createDiskFloor(parts: DiskFloorParts): DiskFloor {
  const { floorBytes, free, reserve, setTimer = everySoOften } = parts;
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
    get low() {
      return !open;
    },
    watch(onLow, onRoom) {
      listeners = { onLow, onRoom };
      look();
      timer = setTimer(look);
    },
    relieve() {
      const freed = reserve.giveUp();
      // Told after the write that asked, which this call is in the middle of.
      if (freed && open) queueMicrotask(() => open && close(free() ?? 0));
      return freed;
    },
    close() {
      timer?.cancel();
      reserve.giveUp();
    },
  };
}

export interface Reserve {
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
        // Written, not only made long: a sparse file reserves nothing.
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

/** Of those folders that are here; a file system that cannot be asked says nothing. */
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
