/** Where the storage driver has no quota, the size of the writable layer on the disk is polled while commands run. */

import type Docker from 'dockerode';
import { z } from 'zod';
import { startTimer, type Timer, within } from '../../base/async/timer.ts';
import { parseSize } from '../../base/text/units.ts';
import type { StartRequest } from '../environment.ts';
import { daemonAnswer } from '../places/dockerFault.ts';
import { engineFacts } from '../places/engineInfo.ts';
import type { Discard } from './container.ts';
import { attachedTo, createOwnContainer } from './ownImage.ts';
import { createDemux } from './startProcess.ts';
import { writtenPaths } from './systemChanges.ts';

const POLL_MS = 3000;
const sized = z.object({ SizeRw: z.number().optional() });

/** The daemon walks the layer. */
const LOOK_LIMIT_MS = 600_000;

/**
 * How long the files of the container's writable layer are, which holds only what the container changed: holes are counted too. By the list, which
 * needs no lock of the container.
 */
export const writtenBytes = (docker: Docker, id: string) => async (): Promise<number> => {
  const listed = { all: true, size: true, filters: { id: [id] } };
  const [info] = await daemonAnswer(docker.listContainers(listed), LOOK_LIMIT_MS);
  return sized.parse(info ?? {}).SizeRw ?? 0;
};

/** The line that blocks.c prints. */
const lookSchema = z
  .tuple([z.number(), z.number(), z.number()])
  .transform(([bytes, holes, attributes]) => ({ bytes, holes, attributes }));
type Look = z.infer<typeof lookSchema>;
const BLOCKS_LIMIT_MS = 120_000;
const TRIES = 3;
/** proc(5) asks for the first; the second leads through folders that are closed to others. */
const RIGHTS = ['SYS_PTRACE', 'DAC_READ_SEARCH'];

/**
 * The layer's bytes on the disk: `truncate -s 50G` takes none. The engine counts lengths, so only where these are over the limit does a program
 * of ours beside the container look at the blocks. A file that it did not find (somebody renamed it meanwhile) counts by its length,
 * and so does every file where the program cannot run.
 */
export function takenBytes(
  { docker, discard }: { readonly docker: Docker; readonly discard: Discard },
  container: Docker.Container,
  request: Pick<StartRequest, 'owner' | 'instanceId'>,
  limitBytes: number,
): () => Promise<number> {
  const lengths = writtenBytes(docker, container.id);
  return async () => {
    const length = await lengths();
    if (length <= limitBytes) return length;
    // Whatever ends all processes there ends it too, at the end of a command for one (observed: "killing who looks" in dockerFaults.test.ts).
    for (let tried = 1; tried <= TRIES; tried += 1)
      try {
        const { bytes, holes } = await lookAtLayer({ docker, discard }, container, request);
        return Math.max(bytes, length - holes);
      } catch {
        // The next try follows, or the length counts.
      }
    return length;
  };
}

/** A look by a program of ours beside the container. Rejects where the program cannot run, or was ended. */
export async function lookAtLayer(
  { docker, discard }: { readonly docker: Docker; readonly discard: Discard },
  container: Docker.Container,
  request: Pick<StartRequest, 'owner' | 'instanceId'>,
): Promise<Look> {
  const paths = await writtenPaths(container);
  const reach = { PidMode: `container:${container.id}`, NetworkMode: 'none', CapAdd: RIGHTS };
  const beside = await createOwnContainer(docker, 'blocks', request, { args: [], user: '0:0', reach });
  try {
    const stream = await attachedTo(beside);
    const said = Promise.withResolvers<string>();
    let text = '';
    stream.on(
      'data',
      createDemux((_, data) => {
        text += data.toString('latin1');
        if (text.includes('\n')) said.resolve(text);
      }),
    );
    for (const event of ['end', 'close', 'error']) stream.on(event, () => said.resolve(text));
    await daemonAnswer(beside.start());
    stream.write(`${paths.map((path) => `${path}\0`).join('')}\0`);
    const answer = await within(said.promise, BLOCKS_LIMIT_MS);
    stream.destroy();
    return lookSchema.parse(answer?.trim().split(' ').map(Number));
  } finally {
    await discard(beside);
  }
}

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
