/** The instances of two sides: which can be compared, and why the others cannot. */
import { type FellOut, repoOfId, resultOn, type Side, type SideResult } from './side.ts';

/** An instance that both sides finished validly. */
export interface Pair {
  readonly instanceId: string;
  readonly a: SideResult;
  readonly b: SideResult;
}

/** An instance that fell out, and which side lacks it. */
export interface NotComparable {
  readonly instanceId: string;
  readonly why: FellOut;
  readonly missingIn: 'a' | 'b' | 'both';
}

export interface Matching {
  readonly pairs: readonly Pair[];
  readonly notComparable: readonly NotComparable[];
  /** Instances that neither side names and both leave unresolved (leaderboard results). */
  readonly unnamedNeither: number;
  /** What B has over A: one number an instance, those that neither names at the end. */
  readonly gains: readonly number[];
  /** The repository of each of them. Null where a leaderboard does not say how many of its unnamed instances each repository has. */
  readonly repositories: readonly string[] | null;
}

/** The share of its epochs in which a side resolved an instance. */
export const rateOf = ({ scores }: SideResult): number => scores.filter(Boolean).length / scores.length;

export function matchSides(a: Side, b: Side): Matching {
  const ids = [...new Set([...a.results.keys(), ...b.results.keys()])].sort();
  const pairs: Pair[] = [];
  const notComparable: NotComparable[] = [];
  for (const instanceId of ids) {
    const [left, right] = [resultOn(a, instanceId), resultOn(b, instanceId)];
    if (left && right && left.scores.length > 0 && right.scores.length > 0)
      pairs.push({ instanceId, a: left, b: right });
    else {
      const lost = whyNot(instanceId, left, right);
      if (lost) notComparable.push(lost);
    }
  }
  const unnamedNeither = unnamed(a, b, ids.length);
  return {
    pairs,
    notComparable,
    unnamedNeither,
    gains: [...pairs.map((p) => rateOf(p.b) - rateOf(p.a)), ...Array<number>(unnamedNeither).fill(0)],
    repositories: repositoriesOf(a, b, pairs, ids, unnamedNeither),
  };
}

/** Null for an instance that neither side was meant to answer. */
function whyNot(
  instanceId: string,
  a: SideResult | undefined,
  b: SideResult | undefined,
): NotComparable | null {
  if (!a) return { instanceId, why: 'added', missingIn: 'a' };
  if (!b) return { instanceId, why: 'removed', missingIn: 'b' };
  const missing = (r: SideResult) => r.scores.length === 0;
  if (missing(a) && missing(b))
    return a.why === 'incomplete' && b.why === 'incomplete'
      ? null
      : { instanceId, why: b.why ?? 'error', missingIn: 'both' };
  return missing(b)
    ? { instanceId, why: b.why ?? 'error', missingIn: 'b' }
    : { instanceId, why: a.why ?? 'error', missingIn: 'a' };
}

/** Two leaderboard entries over the same dataset: what neither names, neither resolves. */
function unnamed(a: Side, b: Side, named: number): number {
  const total = a.open && b.open && a.open.total === b.open.total ? a.open.total : null;
  return total === null ? 0 : Math.max(0, total - named);
}

function repositoriesOf(
  a: Side,
  b: Side,
  pairs: readonly Pair[],
  ids: readonly string[],
  unnamedNeither: number,
): string[] | null {
  const named = pairs.map((p) => p.a.repo || p.b.repo);
  if (unnamedNeither === 0) return named;
  const [sizes, others] = [a.open?.byRepo, b.open?.byRepo];
  if (!sizes || !others || [...sizes].some(([repo, size]) => others.get(repo) !== size)) return null;
  const left = new Map(sizes);
  for (const id of ids) left.set(repoOfId(id), (left.get(repoOfId(id)) ?? 0) - 1);
  const rest = [...left].flatMap(([repo, n]) => Array<string>(Math.max(0, n)).fill(repo));
  return rest.length === unnamedNeither ? [...named, ...rest] : null;
}
