/**
 * A sample that can grow: the place of each instance depends only on its id, its stratum and the seed, and a sample of N is the first N
 * places. So a larger sample contains every smaller one, and runs with different N can be compared on the common part.
 */
import { sha256 } from '../../base/sha256.ts';

export interface Stratum {
  /** Values of the stratify fields, in their order. */
  readonly key: readonly string[];
  readonly size: number;
  readonly sampled: number;
}

export interface Sampled<T> {
  /** In the order the items were given. */
  readonly items: readonly { readonly item: T; readonly weight: number }[];
  /** Largest first; a stratum with `sampled: 0` is not represented, and the weights then speak for the rest only. */
  readonly strata: readonly Stratum[];
}

interface Placed<T> {
  readonly item: T;
  readonly place: number;
  readonly size: number;
  readonly hash: string;
  readonly stratum: string;
}

/**
 * Within a stratum of size n the k-th instance by hash stands at (k + 1/2) / n, which is Webster's apportionment: proportional,
 * and never taking a seat back as N grows, as largest remainders would. The first of each stratum stands at 0, before all others,
 * so that every stratum is represented as soon as N reaches their number; without that the weighted estimate would be biased.
 */
function placesOf<T>(stratum: string, members: readonly { item: T; hash: string }[]): Placed<T>[] {
  return members
    .toSorted((a, b) => (a.hash < b.hash ? -1 : 1))
    .map(({ item, hash }, k) => ({
      item,
      hash,
      stratum,
      size: members.length,
      place: k === 0 ? 0 : (k + 0.5) / members.length,
    }));
}

export function stratifiedSample<T>(
  items: readonly T[],
  n: number,
  seed: number,
  idOf: (item: T) => string,
  stratumOf: (item: T) => readonly string[],
): Sampled<T> {
  const groups = Map.groupBy(
    items.map((item) => ({
      item,
      hash: sha256(`${seed}\0${idOf(item)}`),
      stratum: JSON.stringify(stratumOf(item)),
    })),
    (entry) => entry.stratum,
  );
  const order = [...groups]
    .flatMap(([stratum, members]) => placesOf(stratum, members))
    .sort((a, b) => a.place - b.place || b.size - a.size || (a.hash < b.hash ? -1 : 1));
  const taken = order.slice(0, n);
  const takenOf = Map.groupBy(taken, (entry) => entry.stratum);
  const weights = new Map(taken.map((e) => [e.item, e.size / takenOf.get(e.stratum)!.length]));
  return {
    items: items.filter((item) => weights.has(item)).map((item) => ({ item, weight: weights.get(item)! })),
    strata: [...groups]
      .map(([stratum, members]) => ({
        key: JSON.parse(stratum) as string[],
        size: members.length,
        sampled: takenOf.get(stratum)?.length ?? 0,
      }))
      .sort((a, b) => b.size - a.size || (a.key.join('\0') < b.key.join('\0') ? -1 : 1)),
  };
}
