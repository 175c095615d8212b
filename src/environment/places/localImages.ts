/** The images that an engine has, and whether it can run them natively. */

import {
  candidatesOf,
  canonicalName,
  imageKey,
  parseReference,
  sourceOf,
} from '../../base/imageReference.ts';
import type { ImageEngine, LocalImage } from './imageEngine.ts';
import type { ImageLedger } from './imageLedger.ts';
import type { ImagesConfig } from './imagesConfig.ts';
import { pullError } from './pullFailure.ts';

export interface ReadyImage {
  /** As the caller named it. */
  readonly image: string;
  /** The name that the engine has for it: another one only for a digest that came from a mirror. */
  readonly heldAs: string;
  readonly id: string;
  /** Repo digest, else the id: what is recorded. */
  readonly digest: string;
  readonly architecture: string;
  readonly pulled: boolean;
  readonly from: string;
  readonly bytes: number;
  /** Time of the pull alone; for the record, charged to nobody. */
  readonly pullMs: number;
  /** What people should hear: emulation. */
  readonly warnings: readonly string[];
}

export interface LocalImages {
  /** Undefined when the engine has no image of that name. */
  find(image: string): Promise<ReadyImage | undefined>;
  /** Warnings to show before it runs; throws when it must not run here. */
  warningsOf(image: string, built: Built, how: 'pulled' | 'found'): Promise<readonly string[]>;
  /** Asked once. */
  engine(): ReturnType<ImageEngine['info']>;
}
type Built = Pick<LocalImage, 'os' | 'architecture'>;

export function localImages(parts: {
  engine: ImageEngine;
  config: Pick<ImagesConfig, 'rewrite' | 'mirrors' | 'allow_emulation'>;
  platform?: string | undefined;
  ledger?: ImageLedger | undefined;
}): LocalImages {
  const { engine, config, platform, ledger } = parts;
  let info: ReturnType<ImageEngine['info']> | undefined;
  const engineInfo = () => {
    info ??= engine.info().catch((error: unknown) => {
      info = undefined; // it may come back
      throw error;
    });
    return info;
  };

  /** An image with a digest is the same whatever its source, and keeps the name of its source. */
  function namesHere(image: string): string[] {
    const wanted = sourceOf(image, config.rewrite);
    if (!wanted.ok || wanted.reference.digest === undefined) return [image];
    return [image, ...candidatesOf(wanted.reference, config.mirrors).map(canonicalName)];
  }

  /** The engine forgets the digest of an image from a mirror when the mirror's name is removed. */
  async function digestPulled(image: string, id: string): Promise<string | undefined> {
    const own = (await ledger?.own((await engineInfo()).id)) ?? [];
    return own.find((one) => one.id === id && imageKey(one.image) === imageKey(image))?.digest;
  }

  async function warningsOf(
    image: string,
    local: Built,
    how: 'pulled' | 'found',
  ): Promise<readonly string[]> {
    const built = `${local.os}/${local.architecture}`;
    const parsed = parseReference(image);
    const registry = parsed.ok ? parsed.reference.registry : '';
    const facts = { image, registry, hasCredentials: false, platform, local: how === 'found' };
    if (platform !== undefined && !`${platform}/`.startsWith(`${built}/`))
      throw pullError('wrong_platform', { ...facts, engineMessage: `the local copy is built for ${built}` });
    const own = await engineInfo();
    if (own.architecture === local.architecture) return [];
    const words = `image ${image} is built for ${built}, this engine runs ${own.os}/${own.architecture}`;
    if (!config.allow_emulation) throw pullError('wrong_platform', { ...facts, engineMessage: words });
    return [`${words}: it is EMULATED, many times slower, and limits of time may hit`];
  }

  return {
    engine: engineInfo,
    warningsOf,
    async find(image) {
      for (const heldAs of namesHere(image)) {
        const local = await engine.inspect(heldAs);
        if (!local) continue;
        const warnings = await warningsOf(image, local, 'found');
        const digest = local.digests[0] ?? (await digestPulled(image, local.id)) ?? local.id;
        const { id, architecture } = local;
        const nothing = { pulled: false, from: image, bytes: 0, pullMs: 0 };
        return { image, heldAs, id, digest, architecture, ...nothing, warnings };
      }
      return undefined;
    },
  };
}
