/**
 * Holds back new starts and pulls while the disk is low, and lets them continue when there is room again. Two marks keep it from fluttering:
 * below the low one it closes, above the high one it opens (T-33).
 */
import { randomBytes } from 'node:crypto';
import type Docker from 'dockerode';
import { within } from '../../base/async/timer.ts';
import { currentOwner, ownerLabels } from '../owner.ts';
import { diskFullText, isOpen } from './diskMarks.ts';
import { daemonAnswer } from './dockerFault.ts';

interface DiskRoomOptions {
  /** Free bytes of the file system that fills up; undefined when it is not known. */
  readonly free: () => Promise<number | undefined>;
  readonly lowBytes: number;
  readonly highBytes: number;
  readonly clock: { sleep(ms: number, signal: AbortSignal): Promise<void> };
  /** Tries to make room, by the image policy; called each time too little is found. */
  readonly makeRoom?: (missingBytes: number) => Promise<void>;
  readonly onChange?: ((state: DiskRoomState) => void) | undefined;
}
export interface DiskRoomState {
  readonly open: boolean;
  readonly freeBytes: number | undefined;
  /** "disk_full 1.9 GiB < 2 GiB floor"; empty while open. */
  readonly message: string;
}

const INTERVAL_MS = 5_000;

export function createDiskRoom(options: DiskRoomOptions) {
  const { lowBytes, highBytes, clock } = options;
  let open = true;
  async function check(): Promise<DiskRoomState> {
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
    /** Returns when there is room, or when the signal aborts. */
    async pass(signal: AbortSignal): Promise<void> {
      while (!signal.aborted && !(await check()).open) await clock.sleep(INTERVAL_MS, signal);
    },
  };
}

interface MeasuredDiskOptions {
  readonly docker: Docker;
  /** Images that the engine may have, the likeliest first. */
  readonly images: () => Promise<readonly string[]>;
  readonly now?: () => number;
}

/** A pull of 100 MB/s takes 1.5 GB in this time. */
const AGAIN_MS = 15_000;
/** An older measurement says nothing (observed: tests/environment/places/images/measuredDisk.test.ts). */
const KEPT_MS = 5 * 60_000;
const LIMIT_MS = 20_000;
/** An image may have no `df`, or be gone (observed: tests/environment/places/images/measuredDisk.test.ts). */
const TRIED = 3;

/**
 * Free space of an engine whose disk cannot be seen from here: `df` in a container of ours there, whose file system lies where the images
 * lie. Never in the container of an agent, which could put another `df` there. Undefined until something could be measured.
 */
export function measuredDisk(options: MeasuredDiskOptions): () => Promise<number | undefined> {
  const { now = () => performance.now() } = options;
  let last: { readonly at: number; readonly bytes: number } | undefined;
  let asked = Number.NEGATIVE_INFINITY;
  let running: Promise<void> | undefined;
  const measure = async () => {
    asked = now();
    const bytes = await within(
      freeOf(options).catch(() => undefined),
      LIMIT_MS,
    );
    if (bytes !== undefined) last = { at: now(), bytes };
  };
  return async () => {
    if (now() - asked >= AGAIN_MS)
      running ??= measure().finally(() => {
        running = undefined;
      });
    await running;
    return last && now() - last.at < KEPT_MS ? last.bytes : undefined;
  };
}

async function freeOf({ docker, images }: MeasuredDiskOptions): Promise<number | undefined> {
  for (const image of (await images()).slice(0, TRIED)) {
    const bytes = await freeSeenFrom(docker, image).catch(() => undefined);
    if (bytes !== undefined) return bytes;
  }
  return undefined;
}

async function freeSeenFrom(docker: Docker, image: string): Promise<number | undefined> {
  const name = `swebatch-disk-${randomBytes(6).toString('hex')}`;
  try {
    const container = await daemonAnswer(docker.createContainer(specOf(image, name)), LIMIT_MS);
    await container.start();
    const { StatusCode } = (await container.wait()) as { StatusCode: number };
    if (StatusCode !== 0) return undefined;
    return availableOf((await container.logs({ stdout: true })).toString());
  } finally {
    // An answer that never came may still have made the container.
    await docker
      .getContainer(name)
      .remove({ force: true })
      .catch(() => undefined);
  }
}

const specOf = (image: string, name: string): Docker.ContainerCreateOptions => ({
  name,
  Image: image,
  Entrypoint: ['df', '-Pk', '/'],
  Cmd: [],
  User: '0',
  WorkingDir: '/',
  Labels: ownerLabels(currentOwner('disk', name), 'disk', new Date(), name),
  // Without a terminal the log would be in frames.
  Tty: true,
  Healthcheck: { Test: ['NONE'] },
  NetworkDisabled: true,
  HostConfig: {
    NetworkMode: 'none',
    SecurityOpt: ['no-new-privileges'],
    CapDrop: ['ALL'],
    PidsLimit: 16,
    LogConfig: { Type: 'json-file', Config: {} },
  },
});

/**
 * The fourth column of the last line, in blocks of 1024 bytes. Undefined where it is something else (observed:
 * tests/environment/places/images/measuredDisk.test.ts).
 */
export function availableOf(text: string): number | undefined {
  const fields = text.trim().split('\n').at(-1)!.trim().split(/\s+/);
  const [size, used, available] = fields.slice(-5, -2).map(Number);
  if (fields.length < 6 || !fields.at(-2)!.endsWith('%')) return undefined;
  const all = [size, used, available];
  return all.every((one) => Number.isSafeInteger(one) && one! >= 0) ? available! * 1024 : undefined;
}
