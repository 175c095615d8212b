/** Carries out an eviction on an engine. */

import { familiarName, imageKey } from '../../../../base/imageReference.ts';
import type { ImageEngine } from '../imageEngine.ts';
import { parsePolicy } from '../imagesConfig.ts';
import { chooseEvictions } from './evict.ts';
import type { ImageLedger, OwnImage } from './imageLedger.ts';

export interface Collected {
  readonly removed: readonly OwnImage[];
  readonly kept: readonly { readonly image: string; readonly reason: string }[];
}

export interface CollectOptions {
  readonly engine: ImageEngine;
  readonly ledger: ImageLedger;
  readonly policy: string;
  readonly now: number;
  readonly needBytes?: number;
  readonly dryRun?: boolean;
  /** The images of a run, which `remove-after` removes. Others are removed only to make room; without this list all may be removed. */
  readonly among?: readonly string[] | undefined;
}

export async function collectImages(options: CollectOptions): Promise<Collected> {
  const { engine, ledger, now, needBytes = 0, dryRun = false, among } = options;
  const { id: engineId } = await engine.info();
  // The ledger is read before the engine: an image that arrives between the two must not look removed.
  const own = await ledger.own(engineId);
  const [needed, list] = await Promise.all([ledger.needed(), engine.list()]);
  const byName = new Map(list.flatMap((image) => image.tags.map((tag) => [tag, image.id] as const)));
  const ids = new Map<string, string>();
  for (const { image } of own) {
    // Only a name with a digest is not in the list; one question for all the others.
    const id =
      byName.get(familiarName(image)) ??
      (image.includes('@') ? (await engine.inspect(image))?.id : undefined);
    if (id !== undefined) ids.set(image, id);
  }
  // An attempt runs in the sealed copy of its image: both are in use, and space is freed only when both are removed.
  const inUse = new Set(
    list.filter((image) => image.containers > 0).flatMap(({ id, sealedFrom }) => [id, sealedFrom ?? id]),
  );
  const copiesOf = (id: string) => list.filter((image) => image.sealedFrom === id);
  // One image may have several names: what is needed under one is not removed under another.
  const neededKeys = new Set([...needed].map(imageKey));
  for (const { id, tags, digests } of list)
    if ([...tags, ...digests].some((name) => neededKeys.has(imageKey(name)))) inUse.add(id);
  const facts = { own, needed, inUse, idOf: (image: string) => ids.get(image), among };
  const chosen = chooseEvictions(parsePolicy(options.policy), facts, needBytes);
  if (dryRun) return { removed: chosen, kept: [] };
  const removed: OwnImage[] = [];
  const kept: { image: string; reason: string }[] = [];
  for (const image of chosen) {
    for (const copy of copiesOf(image.id)) await engine.remove(copy.tags[0] ?? copy.id);
    const result = await engine.remove(image.image);
    if (result.removed) {
      removed.push(image);
      await ledger.removed({ engine: engineId, image: image.image, at: now });
    } else kept.push({ image: image.image, reason: result.reason ?? 'the engine keeps it' });
  }
  // Names that somebody else removed, or that now point to another image, are no longer ours.
  for (const { image, id } of own)
    if (ids.get(image) !== id) await ledger.removed({ engine: engineId, image, at: now });
  return { removed, kept };
}
