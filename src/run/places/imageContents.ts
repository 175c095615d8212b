/** Which content the engines of a run have under each image name: for the manifest, and to find images that have changed. */
import { join } from 'node:path';
import { imageKey } from '../../base/imageReference.ts';
import { dockerImageEngine } from '../../environment/places/dockerImageEngine.ts';
import { type ImageLedger, openImageLedger } from '../../environment/places/imageLedger.ts';
import type { Variables } from '../caller.ts';
import type { ArmConfig } from '../plan/planRecord.ts';
import { type EngineConnected, requireEngine, stateDir } from './engines.ts';
import { enginesOf } from './openImages.ts';

export interface ImageContent {
  readonly id: string;
  /** Digests in registries; empty for an image that was built here. */
  readonly digests: readonly string[];
}

/** For each name the content on every engine that has it; engines that do not answer are skipped. */
export async function contentsHere(
  env: Variables,
  arms: readonly ArmConfig[],
  names: readonly string[],
): Promise<ReadonlyMap<string, readonly ImageContent[]>> {
  const ledger = openImageLedger(join(stateDir(env), 'images.jsonl'));
  const engines = await Promise.all(
    enginesOf(arms).map((host) =>
      contentsOn(requireEngine(env, host), names, ledger).catch(() => new Map<string, ImageContent>()),
    ),
  );
  return new Map(names.map((name) => [name, engines.flatMap((found) => found.get(name) ?? [])]));
}

async function contentsOn(
  { docker }: EngineConnected,
  names: readonly string[],
  ledger: ImageLedger,
): Promise<Map<string, ImageContent>> {
  const engine = dockerImageEngine(docker);
  const own = await ledger.own((await engine.info()).id);
  const found = new Map<string, ImageContent>();
  for (const name of new Set(names)) {
    const local = await engine.inspect(name);
    if (!local) continue;
    // The engine forgets the digest of what came from a mirror when the mirror's name goes.
    const pulled = own.filter((o) => imageKey(o.image) === imageKey(name) && o.id === local.id);
    found.set(name, { id: local.id, digests: [...local.digests, ...pulled.flatMap((o) => o.digest ?? [])] });
  }
  return found;
}
