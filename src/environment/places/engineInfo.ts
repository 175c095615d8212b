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

/** Ids of the Container Device Interface; `any` where NVIDIA's own runtime chooses, which names none. */
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
    DefaultRuntime: text,
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
    runtime: info.DefaultRuntime,
    time: Date.parse(info.SystemTime),
  }));

export type EngineInfo =
  | ({
      readonly ok: true;
      /** Milliseconds that its clock is ahead of ours, at least; 0 where it tells no time. */
      readonly clockAheadMs: number;
    } & Readonly<Omit<z.infer<typeof infoSchema>, 'time'>>)
  | { readonly ok: false; readonly message: string };

/** An answer that took long says less: whatever lies between question and answer is right. */
function clockAhead(time: number, asked: number, answered: number): number {
  if (time > answered) return time - answered;
  return time < asked ? time - asked : 0;
}

interface Answer {
  readonly askedAt: number;
  readonly answer: Promise<{ readonly facts: unknown; readonly answeredAt: number }>;
}

/** Answers by address, because every part of a run makes its own client. */
const kept = new Map<unknown, Answer>();
/** The engine starts runc, containerd and docker-init for an answer: 36 ms of processor time, and a run of three trials asked 16 times. */
const KEPT_MS = 10_000;

/** A client that a test made has none: it stands for itself. */
function addressOf(docker: Docker): unknown {
  const modem = docker.modem as object | undefined;
  if (!modem) return docker;
  const { protocol, socketPath, host, port } = modem as Readonly<Record<string, unknown>>;
  return JSON.stringify([protocol, socketPath, host, port]);
}

function ask(docker: Docker, again: boolean): Answer {
  const address = addressOf(docker);
  const now = Date.now();
  const known = kept.get(address);
  if (known && !again && now >= known.askedAt && now < known.askedAt + KEPT_MS) return known;
  const answer = docker.info().then((facts: unknown) => ({ facts, answeredAt: Date.now() }));
  const asked = { askedAt: now, answer };
  kept.set(address, asked);
  answer.catch(() => {
    if (kept.get(address) === asked) kept.delete(address);
  });
  return asked;
}

/** An engine's facts about itself, in its own words. Nothing of them changes while the engine runs, so an answer is good for ten seconds. */
export const engineFacts = async (docker: Docker): Promise<unknown> =>
  (await daemonAnswer(ask(docker, false).answer)).facts;

/** `again`: whether it answers now is what is asked. */
export async function engineInfo(
  docker: Docker = engineClient(),
  { answerMs, again = false }: { readonly answerMs?: number; readonly again?: boolean } = {},
): Promise<EngineInfo> {
  try {
    const { askedAt, answer } = ask(docker, again);
    const told = await daemonAnswer(answer, answerMs);
    const { time, ...facts } = infoSchema.parse(told.facts);
    return { ok: true, ...facts, clockAheadMs: clockAhead(time, askedAt, told.answeredAt) };
  } catch (error) {
    return { ok: false, message: readFault(error).text };
  }
}
