/** Facts about the Docker engine that answers here: for the manifest, the preflight and `doctor`. */
import type Docker from 'dockerode';
import { z } from 'zod';
import { daemonAnswer } from './daemonAnswer.ts';
import { readFault } from './dockerFault.ts';
import { engineClient } from './engineClient.ts';

const text = z.string().default('');
const count = z.number().default(0);
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
  })
  .transform((info) => ({
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
