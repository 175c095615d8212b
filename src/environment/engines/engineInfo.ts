/** Facts about the Docker engine that answers here: for the manifest, the preflight and `doctor`. */
import type Docker from 'dockerode';
import { z } from 'zod';
import { daemonAnswer } from './daemonAnswer.ts';
import { readFault } from './dockerFault.ts';
import { engineClient } from './engineClient.ts';

const infoSchema = z.object({
  ServerVersion: z.string().default(''),
  Driver: z.string().default(''),
  CgroupVersion: z.string().default(''),
  DockerRootDir: z.string().default(''),
  NCPU: z.number().default(0),
  MemTotal: z.number().default(0),
  Architecture: z.string().default(''),
  OperatingSystem: z.string().default(''),
});

export type EngineInfo =
  | {
      readonly ok: true;
      readonly version: string;
      readonly storageDriver: string;
      readonly cgroupVersion: string;
      readonly rootDir: string;
      readonly cpus: number;
      readonly memoryBytes: number;
      readonly architecture: string;
      readonly os: string;
    }
  | { readonly ok: false; readonly message: string };

export async function engineInfo(docker: Docker = engineClient(), answerMs?: number): Promise<EngineInfo> {
  try {
    const info = infoSchema.parse(await daemonAnswer(docker.info(), answerMs));
    return {
      ok: true,
      version: info.ServerVersion,
      storageDriver: info.Driver,
      cgroupVersion: info.CgroupVersion,
      rootDir: info.DockerRootDir,
      cpus: info.NCPU,
      memoryBytes: info.MemTotal,
      architecture: info.Architecture,
      os: info.OperatingSystem,
    };
  } catch (error) {
    return { ok: false, message: readFault(error).text };
  }
}
