/** The images that the policy takes from an engine: only those that swebatch pulled, that still mean the same, and that nobody needs. */
import { familiarName, imageKey } from '../../base/imageReference.ts';
import type { ImageBook, OwnImage } from './imageBook.ts';
import type { ImageEngine } from './imageEngine.ts';
import { type ImagePolicy, parsePolicy } from './imagesConfig.ts';

interface EvictionFacts {
  readonly own: readonly OwnImage[];
  /** Id that each name has on the engine today. */
  readonly idOf: (image: string) => string | undefined;
  /** No queued trial or grading of any living process may lose its image. */
  readonly needed: ReadonlySet<string>;
  /** Images of containers, running or not. */
  readonly inUse: ReadonlySet<string>;
  /** See `CollectOptions`. */
  readonly among?: readonly string[] | undefined;
}

/** Images of ours, still as we pulled them, needed by nobody; least recently used first. */
function removable({ own, idOf, needed, inUse }: EvictionFacts): OwnImage[] {
  const keys = new Set([...needed].map(imageKey));
  return own
    .filter(({ image, id }) => idOf(image) === id && !keys.has(imageKey(image)) && !inUse.has(id))
    .sort((a, b) => a.usedAt - b.usedAt || (a.image < b.image ? -1 : 1));
}

/**
 * The images that may go, in their order. Pure: the facts come in, the names come out. `needBytes`: room that must be made on top of the
 * policy, when the disk is low.
 */
export function chooseEvictions(policy: ImagePolicy, facts: EvictionFacts, needBytes = 0): OwnImage[] {
  const candidates = removable(facts);
  // `keep` keeps even when the disk is low: then new starts pause, and a person decides.
  if (policy.kind === 'keep') return [];
  if (policy.kind === 'lru') {
    const held = facts.own
      .filter(({ image, id }) => facts.idOf(image) === id)
      .reduce((sum, i) => sum + i.bytes, 0);
    return oldest(candidates, Math.max(held - policy.bytes, needBytes));
  }
  if (!facts.among) return candidates;
  // Images of other runs are not this run's to remove, unless its disk is full.
  const ours = new Set(facts.among.map(imageKey));
  const [mine, others] = [true, false].map((is) =>
    candidates.filter(({ image }) => ours.has(imageKey(image)) === is),
  ) as [OwnImage[], OwnImage[]];
  return [...mine, ...oldest(others, needBytes - mine.reduce((sum, i) => sum + i.bytes, 0))];
}

/** As few of them, from the front, as make so much room. */
function oldest(candidates: readonly OwnImage[], bytes: number): OwnImage[] {
  const chosen: OwnImage[] = [];
  let freed = 0;
  for (const candidate of candidates) {
    if (freed >= bytes) break;
    chosen.push(candidate);
    freed += candidate.bytes;
  }
  return chosen;
}

export interface Collected {
  readonly removed: readonly OwnImage[];
  readonly kept: readonly { readonly image: string; readonly reason: string }[];
}

export interface CollectOptions {
  readonly engine: ImageEngine;
  readonly book: ImageBook;
  readonly policy: string;
  readonly now: number;
  readonly needBytes?: number;
  readonly dryRun?: boolean;
  /** The images of a run, which `remove-after` removes. Others are removed only to make room; without this list all may be removed. */
  readonly among?: readonly string[] | undefined;
}

/** Carries out an eviction on an engine. */
export async function collectImages(options: CollectOptions): Promise<Collected> {
  const { engine, book, now, needBytes = 0, dryRun = false, among } = options;
  const { id: engineId } = await engine.info();
  // The book is read before the engine: an image that arrives between the two must not look removed (collect.test.ts).
  const own = await book.own(engineId);
  const [needed, list] = await Promise.all([book.needed(), engine.list()]);
  const byName = new Map(list.flatMap((image) => image.tags.map((tag) => [tag, image.id] as const)));
  const ids = new Map<string, string>();
  for (const { image } of own) {
    // Only a name with a digest is not in the list; one question for all the others.
    const id =
      byName.get(familiarName(image)) ??
      (image.includes('@') ? (await engine.inspect(image))?.id : undefined);
    if (id !== undefined) ids.set(image, id);
  }
  // An attempt runs in the sealed copy of its image: both are in use, and space is freed only when both are removed (registry.test.ts).
  const inUse = new Set(
    list.filter((image) => image.containers > 0).flatMap(({ id, sealedFrom }) => [id, sealedFrom ?? id]),
  );
  const copiesOf = (id: string) => list.filter((image) => image.sealedFrom === id);
  // One image may have several names: what is needed under one is not removed under another (observed:
  // tests/environment/places/images/pure.test.ts).
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
      await book.removed({ engine: engineId, image: image.image, at: now });
    } else kept.push({ image: image.image, reason: result.reason ?? 'the engine keeps it' });
  }
  // Names that somebody else removed, or that now point to another image, are no longer ours (observed:
  // tests/environment/places/images/registry.test.ts).
  for (const { image, id } of own)
    if (ids.get(image) !== id) await book.removed({ engine: engineId, image, at: now });
  return { removed, kept };
}
