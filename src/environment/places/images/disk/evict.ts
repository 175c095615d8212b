/** Which images may go, and in which order. Pure: the facts come in, the names come out. */

import { imageKey } from '../../../../base/imageReference.ts';
import type { ImagePolicy } from '../imagesConfig.ts';
import type { OwnImage } from './imageLedger.ts';

export interface EvictionFacts {
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

/** Ours, still what we pulled, needed by nobody; least recently used first. */
export function removable({ own, idOf, needed, inUse }: EvictionFacts): OwnImage[] {
  const keys = new Set([...needed].map(imageKey));
  return own
    .filter(({ image, id }) => idOf(image) === id && !keys.has(imageKey(image)) && !inUse.has(id))
    .sort((a, b) => a.usedAt - b.usedAt || (a.image < b.image ? -1 : 1));
}

/** `needBytes`: room that must be made on top of the policy, when the disk is low. */
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
  // What was fetched for other runs is not this run's to remove, unless its disk is full.
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
