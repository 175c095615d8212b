/**
 * Which instances a run takes, and in which order: ids, shuffle, filter, slice, limit, sample. The middle three are mini-swe-agent's,
 * in its order; what is already sealed is dropped later by the runner, so `--slice 0:50` always names the same fifty.
 */
import { pythonShuffle } from '../base/python/random.ts';
import { parseFilter } from '../base/python/regex.ts';
import { applySlice, parseSlice } from '../base/python/values.ts';
import { sha256 } from '../base/sha256.ts';
import { headOf, type Instance, type InstanceHead } from './instance.ts';
/** mini-swe-agent's fixed seed. */
export const DEFAULT_SEED = 42;

export interface SelectOptions {
  /** Sort by id, then Python's shuffle. */
  readonly shuffle?: boolean | undefined;
  /** Regular expression, anchored at the start of the id only (re.match). */
  readonly filter?: string | undefined;
  /** Python slice text. */
  readonly slice?: string | undefined;
  /** Only these, in dataset order; one that does not exist is an error. */
  readonly ids?: readonly string[] | undefined;
  /** The first N of what is left. 0 selects nothing. */
  readonly limit?: number | undefined;
  /** A sample of N of what is left, by hash: a larger N is a superset. */
  readonly sample?: number | undefined;
  /** Columns whose combinations are the strata of the sample. */
  readonly stratify?: readonly string[] | undefined;
  /** Seed of the shuffle and of the sample. */
  readonly seed?: number | undefined;
}

interface SelectedRow<R> {
  readonly row: R;
  /** How many instances of its stratum this one stands for; 1 without a sample. */
  readonly weight: number;
}

export type Selection<R> =
  | {
      readonly kind: 'selected';
      readonly rows: readonly SelectedRow<R>[];
      readonly strata: readonly Stratum[];
      readonly warnings: readonly string[];
    }
  /** Nothing is left: exit 2, and the message says which step took the last one. */
  | { readonly kind: 'empty'; readonly message: string }
  | { readonly kind: 'invalid'; readonly problems: readonly string[] };

interface HasInstance {
  readonly instance: Instance;
  readonly head?: InstanceHead;
}

const idOf = (row: HasInstance) => headOf(row).instance_id;

/** A column as text; undefined when the row has none of that name. */
function columnOf(row: HasInstance, column: string): string | undefined {
  const { head } = row;
  if (head && Object.hasOwn(head, column)) return String(head[column as keyof InstanceHead]);
  const { instance } = row;
  const value = Object.hasOwn(instance, column) ? instance[column as keyof Instance] : instance.extra[column];
  return value === undefined || value === null ? undefined : String(value);
}

function problemsOf(rows: readonly HasInstance[], options: SelectOptions): string[] {
  const problems: string[] = [];
  const known = new Set(rows.map(idOf));
  const unknown = [...new Set(options.ids ?? [])].filter((id) => !known.has(id));
  if (unknown.length > 0)
    problems.push(
      `the dataset has no instance named ${unknown.join(', ')}; \`swebatch datasets show\` lists the ids`,
    );
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
function steps<R extends HasInstance>(
  options: SelectOptions,
): [string, (rows: readonly R[]) => readonly R[]][] {
  const chain: [string, (rows: readonly R[]) => readonly R[]][] = [];
  if (options.ids) {
    const wanted = new Set(options.ids);
    chain.push(['the list of ids', (rows) => rows.filter((row) => wanted.has(idOf(row)))]);
  }
  if (options.shuffle) {
    const byId = (a: R, b: R) => (idOf(a) < idOf(b) ? -1 : idOf(a) > idOf(b) ? 1 : 0);
    chain.push(['--shuffle', (rows) => pythonShuffle(rows.toSorted(byId), options.seed ?? DEFAULT_SEED)]);
  }
  const filter = parseFilter(options.filter ?? '');
  if (options.filter && filter.ok)
    chain.push([`--filter "${options.filter}"`, (rows) => rows.filter((row) => filter.matches(idOf(row)))]);
  const slice = parseSlice(options.slice ?? '');
  if (options.slice && slice.ok)
    chain.push([`--slice "${options.slice}"`, (rows) => applySlice(rows, slice.slice)]);
  const { limit } = options;
  if (limit !== undefined) chain.push([`--limit ${limit}`, (rows) => rows.slice(0, limit)]);
  return chain;
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
  const drawn = stratifiedSample(left, sample, seed, idOf, (row) =>
    stratify.map((c) => columnOf(row, c) ?? ''),
  );
  const uncovered = drawn.strata.filter((stratum) => stratum.sampled === 0);
  const warnings = uncovered.length
    ? [
        `the sample of ${sample} leaves out ${uncovered.length} of ${drawn.strata.length} strata ` +
          `(${uncovered.reduce((sum, s) => sum + s.size, 0)} instances); estimates cover only the others: ` +
          'take a larger --sample or fewer --stratify columns',
      ]
    : [];
  return {
    kind: 'selected',
    rows: drawn.items.map(({ item, weight }) => ({ row: item, weight })),
    strata: drawn.strata,
    warnings,
  };
}

// A sample that can grow: the place of each instance depends only on its id, its stratum and the seed, and a sample of N is the first N
// places. So a larger sample contains every smaller one, and runs with different N can be compared on the common part.

interface Stratum {
  /** Values of the stratify fields, in their order. */
  readonly key: readonly string[];
  readonly size: number;
  readonly sampled: number;
}

interface Sampled<T> {
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

function stratifiedSample<T>(
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
