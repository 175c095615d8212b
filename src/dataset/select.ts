/**
 * The selection of instances, in steps: ids, shuffle, filter, slice, limit, sample. Shuffle, filter and slice are mini-swe-agent's, in its order. The
 * runner drops sealed trials later, so `--slice 0:50` always names the same fifty.
 */

import { pythonShuffle } from '../base/python/random.ts';
import { parseFilter } from '../base/python/regex.ts';
import { applySlice, parseSlice } from '../base/python/values.ts';
import { sha256 } from '../base/sha256.ts';
import { type HeldRow, headOf, type RowInFile, readInstance } from './dataset.ts';
import type { Instance, InstanceHead } from './instance.ts';
import { nearestId } from './nearestId.ts';
/** mini-swe-agent's fixed seed. */
export const DEFAULT_SEED = 42;

export interface SelectOptions {
  /** Sort by id, then Python's shuffle. */
  readonly shuffle?: boolean | undefined;
  /** Regular expression, anchored at the start of the id only (re.match). */
  readonly filter?: string | undefined;
  /** Python slice text. */
  readonly slice?: string | undefined;
  /** Ids, taken in dataset order; an id that does not exist is an error. */
  readonly ids?: readonly string[] | undefined;
  /** The first N instances that are left. 0 selects nothing. */
  readonly limit?: number | undefined;
  /** A sample of N instances that are left, by hash: a larger N is a superset. */
  readonly sample?: number | undefined;
  /** Columns whose combinations are the strata of the sample. */
  readonly stratify?: readonly string[] | undefined;
  /** Seed of the shuffle and of the sample. */
  readonly seed?: number | undefined;
}

type Selection<R> =
  | {
      readonly kind: 'selected';
      /** `weight`: how many instances of its stratum this one stands for; 1 without a sample. */
      readonly rows: readonly { readonly row: R; readonly weight: number }[];
      /** Largest first. A stratum with `sampled: 0` is not represented, and the weights then speak for the others only. */
      readonly strata: readonly Stratum[];
      readonly warnings: readonly string[];
    }
  /** Nothing is left: exit 2, and the message says which step took the last one. */
  | { readonly kind: 'empty'; readonly message: string }
  | { readonly kind: 'invalid'; readonly problems: readonly string[] };

type HasInstance = Pick<HeldRow, 'instance'> | RowInFile;

const HEAD: readonly (keyof InstanceHead)[] = ['instance_id', 'repo', 'difficulty', 'image'];

const idOf = (row: HasInstance) => headOf(row).instance_id;

const columnOfInstance = (instance: Instance, column: string): unknown =>
  Object.hasOwn(instance, column) ? instance[column as keyof Instance] : instance.extra[column];

/** A column as text; undefined when the row has none of that name. */
function columnOf(row: HasInstance, column: string): string | undefined {
  const inHead = HEAD.find((name) => name === column);
  const value = inHead ? headOf(row)[inHead] : columnOfInstance(readInstance(row), column);
  return value === undefined || value === null ? undefined : String(value);
}

function problemsOf(rows: readonly HasInstance[], options: SelectOptions): string[] {
  const problems: string[] = [];
  const unknown = new Set(options.ids);
  if (unknown.size > 0) for (const row of rows) unknown.delete(idOf(row));
  if (unknown.size > 0) {
    const near = unknown.size === 1 ? nearestId([...unknown].join(), rows.map(idOf)) : '';
    problems.push(
      `the dataset has no instance named ${[...unknown].join(', ')}${near || ';'} \`swebatch datasets show\` lists the ids`,
    );
  }
  for (const parsed of [parseFilter(options.filter ?? ''), parseSlice(options.slice || ':')])
    if (!parsed.ok) problems.push(parsed.message);
  for (const name of ['limit', 'sample', 'seed'] as const) {
    const value = options[name];
    if (value !== undefined && (!Number.isSafeInteger(value) || value < 0))
      problems.push(`--${name} must be a whole number of 0 or more, not ${value}`);
  }
  if (options.stratify?.length && options.sample === undefined)
    problems.push('--stratify needs --sample N: it says how the sample is spread');
  for (const column of options.stratify ?? [])
    if (!rows.some((row) => columnOf(row, column) !== undefined))
      problems.push(`--stratify ${column}: no row of the dataset has the column ${column}`);
  return problems;
}

/** The chain of steps, each named as a person would name it in "0 instances selected: …". */
function* steps<R extends HasInstance>(
  options: SelectOptions,
): Generator<readonly [string, (rows: readonly R[]) => readonly R[]]> {
  const { ids, shuffle, seed = DEFAULT_SEED, limit } = options;
  const wanted = ids && new Set(ids);
  if (wanted) yield ['the list of ids', (rows) => rows.filter((row) => wanted.has(idOf(row)))];
  const byId = (a: R, b: R) => (idOf(a) < idOf(b) ? -1 : idOf(a) > idOf(b) ? 1 : 0);
  if (shuffle) yield ['--shuffle', (rows) => pythonShuffle(rows.toSorted(byId), seed)];
  const filter = parseFilter(options.filter ?? '');
  if (options.filter && filter.ok)
    yield [`--filter "${options.filter}"`, (rows) => rows.filter((row) => filter.matches(idOf(row)))];
  const slice = parseSlice(options.slice ?? '');
  if (options.slice && slice.ok)
    yield [`--slice "${options.slice}"`, (rows) => applySlice(rows, slice.slice)];
  if (limit !== undefined) yield [`--limit ${limit}`, (rows) => rows.slice(0, limit)];
}

export function selectInstances<R extends HasInstance>(
  rows: readonly R[],
  options: SelectOptions = {},
): Selection<R> {
  const problems = problemsOf(rows, options);
  if (problems.length > 0) return { kind: 'invalid', problems };

  const empty = (before: number, step: string): Selection<R> => ({
    kind: 'empty',
    message: `0 instances selected: ${before} were there before ${step}, none after`,
  });
  if (rows.length === 0) return { kind: 'empty', message: '0 instances selected: the dataset is empty' };
  let left: readonly R[] = rows;
  for (const [step, apply] of steps<R>(options)) {
    const before = left.length;
    left = apply(left);
    if (left.length === 0) return empty(before, step);
  }

  const { sample, stratify = [], seed = DEFAULT_SEED } = options;
  if (sample === undefined)
    return { kind: 'selected', rows: left.map((row) => ({ row, weight: 1 })), strata: [], warnings: [] };
  if (sample === 0) return empty(left.length, '--sample 0');
  const { rows: drawn, strata } = stratifiedSample(left, sample, seed, (row) =>
    stratify.map((column) => columnOf(row, column) ?? ''),
  );
  const uncovered = strata.filter((stratum) => stratum.sampled === 0);
  const warnings = uncovered.length
    ? [
        `the sample of ${sample} leaves out ${uncovered.length} of ${strata.length} strata ` +
          `(${uncovered.reduce((sum, s) => sum + s.size, 0)} instances); estimates cover only the others: ` +
          'take a larger --sample or fewer --stratify columns',
      ]
    : [];
  return { kind: 'selected', rows: drawn, strata, warnings };
}

// A sample that can grow: the place of each instance depends only on its id, its stratum and the seed, and a sample of N is the first N
// places. So a larger sample contains every smaller one, and runs with different N can be compared on the common part.

interface Stratum {
  /** Values of the stratify fields, in their order. */
  readonly key: readonly string[];
  readonly size: number;
  readonly sampled: number;
}

/**
 * Within a stratum of size n the k-th instance by hash stands at (k + 1/2) / n, which is Webster's apportionment: proportional,
 * and never taking a seat back as N grows, as largest remainders would. The first of each stratum stands at 0, before all others,
 * so that every stratum is represented as soon as N reaches their number; without that the weighted estimate would be biased.
 */
function stratifiedSample<R extends HasInstance>(
  rows: readonly R[],
  n: number,
  seed: number,
  stratumOf: (row: R) => readonly string[],
): { rows: { row: R; weight: number }[]; strata: Stratum[] } {
  const hashed = rows.map((row) => ({ row, hash: sha256(`${seed}\0${idOf(row)}`) }));
  const groups = Map.groupBy(hashed, ({ row }) => JSON.stringify(stratumOf(row)));
  const taken = [...groups]
    .flatMap(([stratum, members]) =>
      members
        .toSorted((a, b) => (a.hash < b.hash ? -1 : 1))
        .map(({ row, hash }, k) => {
          const size = members.length;
          return { row, hash, stratum, size, place: k === 0 ? 0 : (k + 0.5) / size };
        }),
    )
    .sort((a, b) => a.place - b.place || b.size - a.size || (a.hash < b.hash ? -1 : 1))
    .slice(0, n);
  const takenOf = Map.groupBy(taken, ({ stratum }) => stratum);
  const weights = new Map(taken.map(({ row, size, stratum }) => [row, size / takenOf.get(stratum)!.length]));
  return {
    rows: rows.flatMap((row) => {
      const weight = weights.get(row);
      return weight === undefined ? [] : [{ row, weight }];
    }),
    strata: [...groups]
      .map(([stratum, { length: size }]) => ({
        key: JSON.parse(stratum) as string[],
        size,
        sampled: takenOf.get(stratum)?.length ?? 0,
      }))
      .sort((a, b) => b.size - a.size || (a.key.join('\0') < b.key.join('\0') ? -1 : 1)),
  };
}
