/** Facts about the engine that answers here, Docker or Podman: for the manifest, the preflight and `doctor`. */

import type Docker from 'dockerode';
import { z } from 'zod';
import { engineClient } from './chosenEngine.ts';
import { daemonAnswer, readFault } from './dockerFault.ts';

const text = z.string().default('');
const count = z.number().default(0);
interface LimitFacts {
  readonly BuildahVersion?: string | undefined;
  readonly Rootless: boolean;
  readonly CgroupVersion: string;
  readonly MemoryLimit: boolean;
  readonly PidsLimit: boolean;
}

const CDI_GPU = /^nvidia\.com\/gpu=(?!all$)/;

/** By the ids of the Container Device Interface; `any` where NVIDIA's own runtime chooses, which names none. */
function gpusOf({
  Runtimes,
  DiscoveredDevices,
}: {
  readonly Runtimes?: Readonly<Record<string, unknown>> | null | undefined;
  readonly DiscoveredDevices?: readonly { readonly ID: string }[] | null | undefined;
}): readonly string[] | 'any' {
  if (Runtimes && Object.hasOwn(Runtimes, 'nvidia')) return 'any';
  const ids = (DiscoveredDevices ?? []).map(({ ID }) => ID).filter((id) => CDI_GPU.test(id));
  // One device may be named by its index and by its UUID.
  const numbered = ids.filter((id) => /=\d{1,4}$/.test(id));
  return numbered.length > 0 ? numbered : ids;
}

/** Rootless Podman on cgroup v1 says that it has limits, takes them, and starts the container without. */
const ignoresLimits = ({ BuildahVersion, Rootless, CgroupVersion, MemoryLimit, PidsLimit }: LimitFacts) =>
  BuildahVersion !== undefined && ((Rootless && CgroupVersion === '1') || !MemoryLimit || !PidsLimit);

const infoSchema = z
  .object({
    ServerVersion: text,
    Driver: text,
    CgroupVersion: text,
    DockerRootDir: text,
    NCPU: count,
    MemTotal: count,
    Architecture: text,
    OperatingSystem: text,
    SystemTime: text,
    // Podman's own fields: Docker sends neither.
    BuildahVersion: z.string().optional(),
    Rootless: z.boolean().default(false),
    MemoryLimit: z.boolean().default(true),
    PidsLimit: z.boolean().default(true),
    Runtimes: z.record(z.string(), z.unknown()).nullish(),
    // Since Docker 28.2.
    DiscoveredDevices: z.array(z.object({ Source: text, ID: text })).nullish(),
  })
  .transform((info) => ({
    name: info.BuildahVersion === undefined ? ('Docker' as const) : ('Podman' as const),
    rootless: info.Rootless,
    limitsIgnored: ignoresLimits(info),
    version: info.ServerVersion,
    storageDriver: info.Driver,
    cgroupVersion: info.CgroupVersion,
    rootDir: info.DockerRootDir,
    cpus: info.NCPU,
    memoryBytes: info.MemTotal,
    architecture: info.Architecture,
    os: info.OperatingSystem,
    gpus: gpusOf(info),
    time: Date.parse(info.SystemTime),
  }));

export type EngineInfo =
  | ({
      readonly ok: true;
      /** How far its clock is ahead of ours, at least; 0 where it tells no time. */
      readonly clockAheadMs: number;
    } & Readonly<Omit<z.infer<typeof infoSchema>, 'time'>>)
  | { readonly ok: false; readonly message: string };

/** An answer that took long says less: whatever lies between question and answer is right. */
function clockAhead(time: number, asked: number, answered: number): number {
  if (time > answered) return time - answered;
  return time < asked ? time - asked : 0;
}

export async function engineInfo(docker: Docker = engineClient(), answerMs?: number): Promise<EngineInfo> {
  try {
    const asked = Date.now();
    const { time, ...facts } = infoSchema.parse(await daemonAnswer(docker.info(), answerMs));
    return { ok: true, ...facts, clockAheadMs: clockAhead(time, asked, Date.now()) };
  } catch (error) {
    return { ok: false, message: readFault(error).text };
  }
}
