/** Facts about the engine that answers here, Docker or Podman: for the manifest, the preflight and `doctor`. */
import type Docker from 'dockerode';
import { z } from 'zod';
import { daemonAnswer } from './daemonAnswer.ts';
import { readFault } from './dockerFault.ts';
import { engineClient } from './engineClient.ts';

const text = z.string().default('');
const count = z.number().default(0);
interface LimitFacts {
  readonly BuildahVersion?: string | undefined;
  readonly Rootless: boolean;
  readonly CgroupVersion: string;
  readonly MemoryLimit: boolean;
  readonly PidsLimit: boolean;
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
    // Podman's own fields: Docker sends neither.
    BuildahVersion: z.string().optional(),
    Rootless: z.boolean().default(false),
    MemoryLimit: z.boolean().default(true),
    PidsLimit: z.boolean().default(true),
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
  }));

export type EngineInfo =
  | ({ readonly ok: true } & Readonly<z.infer<typeof infoSchema>>)
  | { readonly ok: false; readonly message: string };

export async function engineInfo(docker: Docker = engineClient(), answerMs?: number): Promise<EngineInfo> {
  try {
    return { ok: true, ...infoSchema.parse(await daemonAnswer(docker.info(), answerMs)) };
  } catch (error) {
    return { ok: false, message: readFault(error).text };
  }
}
