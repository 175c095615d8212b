/** Where the storage driver has no quota, the size of the writable layer is polled while commands run. */

import type Docker from 'dockerode';
import { z } from 'zod';
import { startTimer, type Timer } from '../../base/async/timer.ts';
import { parseSize } from '../../base/text/units.ts';
import { daemonAnswer } from '../places/dockerFault.ts';
import { engineFacts } from '../places/engineInfo.ts';

const POLL_MS = 3000;
const sized = z.object({ SizeRw: z.number().optional() });

/** The daemon walks the layer. */
const LOOK_LIMIT_MS = 600_000;

/** Bytes in the container's writable layer, which holds only what the container changed. By the list, which needs no lock of the container. */
export const writtenBytes = (docker: Docker, id: string) => async (): Promise<number> => {
  const listed = { all: true, size: true, filters: { id: [id] } };
  const [info] = await daemonAnswer(docker.listContainers(listed), LOOK_LIMIT_MS);
  return sized.parse(info ?? {}).SizeRw ?? 0;
};

/**
 * Calls `onFull` once when the layer is over the limit. A look may take longer than the command beside which it began: what it found is
 * then told to the next one, else commands of some milliseconds could write without limit.
 */
export function createDiskWatch(
  measure: () => Promise<number>,
  limitBytes: number,
  pollMs: number = POLL_MS,
): (onFull: (usedBytes: number) => void) => () => void {
  if (limitBytes <= 0) return () => () => undefined;
  let lastLook = performance.now();
  let found = 0;
  let looking: Promise<void> | undefined;
  const look = () => {
    lastLook = performance.now();
    looking ??= measure()
      .catch(() => 0)
      .then((used) => {
        looking = undefined;
        if (used > limitBytes) found = used;
      });
    return looking;
  };
  return (onFull) => {
    let stopped = false;
    let timer: Timer | undefined;
    const next = () => {
      if (stopped) return;
      if (found > 0) return onFull(found);
      const wait = lastLook + pollMs - performance.now();
      timer = startTimer(Math.max(1, wait), () => void look().then(next), { idle: true });
    };
    next();
    return () => {
      stopped = true;
      timer?.cancel();
    };
  };
}

const infoSchema = z.object({
  Driver: z.string().default(''),
  DriverStatus: z.array(z.array(z.string())).nullish(),
});

const QUOTA_DRIVERS = new Set(['btrfs', 'zfs', 'devicemapper', 'windowsfilter']);

/**
 * Bytes to pass as `--storage-opt size`, 0 where the driver has no quota. overlay2 has one only on xfs mounted with pquota, which
 * cannot be seen from outside: it is tried, and `refused` remembers the answer.
 */
export interface QuotaProbe {
  bytes(): Promise<number>;
  /** True when this error says that the driver has no quota: create again without. */
  refused(error: unknown): boolean;
}

export function createQuotaProbe(docker: Docker, disk: string): QuotaProbe {
  const limit = parseSize(disk);
  let supported: Promise<boolean> | undefined;
  const probe = async () => {
    const info = infoSchema.safeParse(await engineFacts(docker));
    if (!info.success) return false;
    const backing = info.data.DriverStatus?.find(([name]) => name === 'Backing Filesystem')?.[1] ?? '';
    return QUOTA_DRIVERS.has(info.data.Driver) || (info.data.Driver === 'overlay2' && backing === 'xfs');
  };
  return {
    async bytes() {
      if (limit <= 0) return 0;
      supported ??= probe();
      try {
        return (await supported) ? limit : 0;
      } catch {
        // Without an answer this container is watched, and the engine is asked again for the next.
        supported = undefined;
        return 0;
      }
    },
    refused(error) {
      if (!/storage-opt|pquota|storage option/i.test(String(error))) return false;
      supported = Promise.resolve(false);
      return true;
    },
  };
}
