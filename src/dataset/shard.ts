/**
 * Shards: `--shard 2/5` is every fifth row of the selection, from the second. All arms and epochs of an instance are in one shard, sizes differ by
 * one at most, and rows that stand together (one repository, one stratum) are spread over all shards. Only the selection decides, so every
 * machine draws the same shards. Pure.
 */
import { datasetHash, headOf, type LoadedRow } from './dataset.ts';

/** `number` counts from 1. */
export interface Shard {
  readonly number: number;
  readonly of: number;
}

/** Null for what is no K/N with 1 <= K <= N. */
export function parseShard(text: string): Shard | null {
  const [, number, of] = (/^([1-9]\d{0,4})\/([1-9]\d{0,4})$/.exec(text) ?? []).map(Number);
  return number !== undefined && of !== undefined && number <= of ? { number, of } : null;
}

/** The error for any other form. */
export const SHARD_FORM = 'must be a shard K/N with K from 1 to N, such as 2/5';

export const isInShard = (place: number, { number, of }: Shard): boolean => place % of === number - 1;

/** The facts about the whole run in each shard, so that a join finds whether its shards are of one run and complete. */
export interface PlannedShard extends Shard {
  /** Selected rows of all shards, also those that cannot run. */
  readonly instances: number;
  readonly rows_sha256: string;
  /** The place in the whole selection, by instance id. */
  readonly places: ReadonlyMap<string, number>;
}

export function shardOfRows<R extends LoadedRow>(
  rows: readonly R[],
  shard: Shard,
): { readonly rows: readonly R[]; readonly shard: PlannedShard } {
  const places = new Map<string, number>();
  const own = rows.filter((row, place) => {
    const isOwn = isInShard(place, shard);
    if (isOwn) places.set(headOf(row).instance_id, place);
    return isOwn;
  });
  return { rows: own, shard: { ...shard, instances: rows.length, rows_sha256: datasetHash(rows), places } };
}
