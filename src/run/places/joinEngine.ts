/** An engine that joins a run: reached, checked as those of the configuration are, rid of what dead processes left, and given its image service. */
import { readFile } from 'node:fs/promises';
import { reap } from '../../environment/docker/reaper.ts';
import { pooledEngine } from '../../environment/factory.ts';
import { engineInfo } from '../../environment/places/engines/engineInfo.ts';
import type { EnginePool, PooledEngine } from '../../environment/places/engines/enginePool.ts';
import type { EngineSpec } from '../../environment/places/engines/engineSpec.ts';
import { createFileEngines, type FileEngines } from '../../environment/places/engines/fileEngines.ts';
import type { ImageService } from '../../environment/places/images/imageService.ts';
import type { Variables } from '../caller.ts';
import { engineFindings, type PlatformAsked } from '../plan/engineFit.ts';
import { UserError } from '../userError.ts';
import { requireEngine } from './engines.ts';
import type { JoinEngine } from './sessionEngines.ts';

/** A machine that has just booted may still answer slowly. */
const ANSWER_MS = 20_000;

export interface JoinPorts {
  readonly env: Variables;
  readonly pool: EnginePool;
  /** One for each engine that has joined. */
  readonly services: Map<string, ImageService>;
  readonly serviceOf: (host: string) => ImageService;
  readonly platform: PlatformAsked;
  readonly note: (text: string) => void;
}

/** An engine of the run, with what is known of its machine. */
export function knownEngine(
  { env, services }: Pick<JoinPorts, 'env' | 'services'>,
  { host, slots, labels }: EngineSpec,
  origin: NonNullable<PooledEngine['origin']>,
): PooledEngine {
  return {
    ...pooledEngine({ host, slots }),
    ...{ origin, ...(labels && { labels }) },
    facts: async () => {
      const info = await engineInfo(requireEngine(env, host).docker, ANSWER_MS);
      if (!info.ok) throw new Error(info.message);
      const freeBytes = await services.get(host)?.freeBytes();
      const { architecture, memoryBytes } = info;
      return {
        platform: architecture === '' ? null : `linux/${architecture}`,
        memoryBytes: memoryBytes > 0 ? memoryBytes : null,
        freeBytes: freeBytes ?? null,
      };
    },
  };
}

export function createJoiner(ports: JoinPorts): JoinEngine {
  const { env, pool, services, serviceOf, note } = ports;
  return async (engine, origin) => {
    const { host } = engine;
    const { docker } = requireEngine(env, host);
    const info = await engineInfo(docker, ANSWER_MS);
    if (!info.ok) throw new UserError(`the engine does not answer: ${info.message}`);
    const problems = await unfit(ports, host, info);
    if (problems.length > 0) throw new UserError(problems.join('; '));
    const { removed } = await reap({ docker, limitMs: ANSWER_MS }).catch(() => ({ removed: [] }));
    if (removed.length > 0)
      note(`engine ${host}: removed ${removed.length} container(s) that a dead process had left`);
    if (!services.has(host)) services.set(host, serviceOf(host));
    pool.join(knownEngine(ports, engine, origin));
    note(`engine ${host} has joined with ${engine.slots === 0 ? 'no limit of' : engine.slots} slots`);
  };
}

/** Beside the engines that are there; one that does not answer is judged without. */
async function unfit(
  { env, pool, platform }: JoinPorts,
  host: string,
  engine: Awaited<ReturnType<typeof engineInfo>>,
): Promise<string[]> {
  const others = await Promise.all(
    pool
      .alive()
      .filter((other) => other !== host)
      .slice(0, 3)
      .map(async (other) => ({
        what: `engine ${other}`,
        engine: await engineInfo(requireEngine(env, other).docker, ANSWER_MS),
      })),
  );
  const what = `engine ${host}`;
  if (engine.ok && engine.limitsIgnored)
    return ['it takes limits of memory, processes and processors and does not enforce them'];
  return engineFindings([...others, { what, engine }], platform)
    .filter((finding) => !finding.ok && finding.what === what)
    .map(({ detail, fix }) => `${detail}; ${fix}`);
}

/** The engines that a file names, read for the first time. */
export async function openFileEngines(
  path: string,
  { pool, note }: Pick<JoinPorts, 'pool' | 'note'>,
  join: JoinEngine,
): Promise<FileEngines> {
  const ofFile = new Set<string>();
  const file = createFileEngines({
    path,
    read: () => readFile(path, 'utf8'),
    async join(engine) {
      // One that the configuration or a person brought is not the file's to change.
      if (pool.states().some(({ name }) => name === engine.host) && !ofFile.has(engine.host)) return;
      await join(engine, 'file');
      ofFile.add(engine.host);
    },
    drain(host) {
      if (!ofFile.delete(host)) return;
      const answer = pool.drain(host, true);
      if (answer.is === 'draining')
        note(`engine ${host} is not in ${path} any more: it gets no new trials, what runs on it goes on`);
    },
    warn: note,
  });
  await file.look();
  return file;
}
