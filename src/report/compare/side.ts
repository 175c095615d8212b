/**
 * One side of a comparison: what became of each instance, whatever it was read from. A run's arm fills everything; files of other tools
 * fill what they hold.
 */
import type { ForeignOutcome } from '../../formats/foreignFormat.ts';
import { readVerdictSheet, type VerdictSheet } from '../../formats/verdicts.ts';
import type { RunData } from '../../store/records/runData.ts';
import { partOfWhole, shardName } from '../../store/records/runs.ts';
import { agentOf, type Facts, factsOfRun } from '../measure/runFacts.ts';
import { awaitsVerdict, isGraded, type Missing, rewardOf, standingOf } from '../measure/score.ts';

export type FellOut = Missing | 'error' | 'incomplete' | 'no_logs' | 'removed' | 'added';

/** A harness that ended with an error, or left no log, had no verdict to give; no more is known. */
const isInfra = (why: FellOut): boolean =>
  why === 'infra' || why === 'grading_infra' || why === 'error' || why === 'no_logs';

export interface SideResult {
  readonly instanceId: string;
  readonly repo: string;
  /** Scores of validly finished epochs; empty when there is none. */
  readonly scores: readonly boolean[];
  /** Rewards of the same epochs; absent where the suite gives none. */
  readonly rewards?: readonly number[];
  /** Rewards of each epoch that have several names. */
  readonly named?: readonly Readonly<Record<string, number>>[];
  /** The reason why nothing valid is there; null when something is. */
  readonly why: FellOut | null;
  /** Epochs that infrastructure lost, of the agent or of its grading. */
  readonly infra: number;
  /** Means over valid epochs; null where unknown. */
  readonly costNano: number | null;
  /** The cost of all attempts whose trials do not wait for a verdict; null where unknown. */
  readonly spentNano: number | null;
  readonly tokens: number | null;
  readonly steps: number | null;
  /** The time from the beginning to the end of an attempt. */
  readonly elapsedMs: number | null;
  /** Tokens of requests, and those of them that came from the provider's cache. */
  readonly inputTokens: number | null;
  readonly cachedTokens: number | null;
  /** The hash of the dataset row, and of the image that the first valid epoch ran on; null where unknown. */
  readonly rowHash: string | null;
  readonly imageDigest: string | null;
}

export interface Side {
  readonly label: string;
  readonly kind: 'run' | VerdictSheet['kind'];
  readonly model: string | null;
  /** null: the built-in one; absent: not known. */
  readonly agent?: string | null;
  /** Tokens of a first request that are not its task; absent where they are not known. */
  readonly overheadTokens?: number | undefined;
  readonly epochs: number;
  readonly results: ReadonlyMap<string, SideResult>;
  /**
   * Leaderboard results name only some ids: any other instance of the dataset is unresolved there. `total` is the size of the dataset,
   * `byRepo` that of its repositories; null when unknown. Null for sources that name every instance.
   */
  readonly open: {
    readonly total: number | null;
    readonly byRepo: ReadonlyMap<string, number> | null;
  } | null;
  readonly facts: Facts;
  /** The source says only part of how it came about: files of other tools, imported runs. */
  readonly partial: boolean;
  readonly warnings: readonly string[];
}

/** "django__django-11095" -> "django/django" */
const repoOfId = (id: string): string => id.replace(/-[^-]*$/, '').replace('__', '/');

const average = (xs: readonly (number | null)[]): number | null => {
  const known = xs.filter((x) => x !== null);
  return known.length === 0 || known.length < xs.length
    ? null
    : known.reduce((s, x) => s + x, 0) / known.length;
};

function spentOn(costs: RunData['costs']): number | null {
  if (costs.length === 0 || costs.some((c) => c.costNano === null || c.unknownCalls > 0)) return null;
  return costs.reduce((sum, c) => sum + c.costNano!, 0);
}

/** An arm of a run. Only sealed, validly graded trials have a score. */
export function sideOfArm(data: RunData, arm: string): Side {
  const trials = data.trials.filter((t) => t.arm === arm);
  const graded = isGraded(trials);
  const costs = new Map(data.costs.map((c) => [c.attemptId, c]));
  const byTrial = Map.groupBy(data.costs, (c) => c.trialId);
  const results = [...Map.groupBy(trials, (t) => t.instanceId)].map(([instanceId, group]): SideResult => {
    const standings = group.map((trial) => ({ trial, standing: standingOf(trial, graded) }));
    const valid = standings.filter((s) => s.standing.valid);
    const missing = standings.flatMap((s) => (s.standing.valid ? [] : [s.standing.why]));
    const attempts = valid.map((s) => costs.get(s.trial.attemptId ?? -1));
    return {
      instanceId,
      repo: group[0]!.repo || repoOfId(instanceId),
      scores: valid.map((s) => s.standing.valid && s.standing.resolved),
      ...(valid.some((s) => s.trial.reward !== undefined) && {
        rewards: valid.map(({ trial, standing }) =>
          rewardOf({ trial, resolved: standing.valid && standing.resolved }),
        ),
        named: valid.flatMap(({ trial }) => (trial.rewards ? [trial.rewards] : [])),
      }),
      why: valid.length > 0 ? null : (missing[0] ?? 'not_run'),
      infra: missing.filter(isInfra).length,
      costNano: average(attempts.map((c) => (c && c.unknownCalls === 0 ? c.costNano : null))),
      spentNano: spentOn(
        standings.flatMap((s) => (awaitsVerdict(s.standing) ? [] : (byTrial.get(s.trial.trialId) ?? []))),
      ),
      tokens: average(
        attempts.map((c) =>
          c ? c.inputTokens + c.cacheReadTokens + c.cacheWriteTokens + c.outputTokens : null,
        ),
      ),
      steps: average(valid.map((s) => s.trial.steps)),
      elapsedMs: average(valid.map((s) => s.trial.elapsedMs)),
      inputTokens: average(
        attempts.map((c) => (c ? c.inputTokens + c.cacheReadTokens + c.cacheWriteTokens : null)),
      ),
      cachedTokens: average(attempts.map((c) => c?.cacheReadTokens ?? null)),
      rowHash: group[0]!.rowHash,
      imageDigest: valid[0]?.trial.imageDigest ?? null,
    };
  });
  const { shard } = data.run.manifest;
  const { model = null, config = {}, overheadTokens } = data.arms.find((a) => a.name === arm) ?? {};
  return {
    label: `${data.arms.length > 1 ? `${data.run.name}/${arm}` : data.run.name}${shard ? ` (shard ${shardName(shard)})` : ''}`,
    kind: 'run',
    model,
    agent: agentOf(config),
    overheadTokens,
    epochs: new Set(trials.map((t) => t.epoch)).size,
    results: new Map(results.map((r) => [r.instanceId, r])),
    open: null,
    facts: factsOfRun(data, arm),
    partial: data.run.imported,
    warnings: [
      ...(graded ? [] : [`${data.run.name} is not graded: no instance of it can be compared`]),
      ...(shard ? [`${data.run.name} is ${partOfWhole(shard)}`] : []),
    ],
  };
}

/** A result of a source that knows no more of an instance than its scores. */
export const scoreOnly = (
  instanceId: string,
  scores: readonly boolean[],
  why: FellOut | null,
): SideResult => ({
  instanceId,
  repo: repoOfId(instanceId),
  scores,
  why,
  infra: why !== null && isInfra(why) ? 1 : 0,
  costNano: null,
  spentNano: null,
  tokens: null,
  steps: null,
  elapsedMs: null,
  inputTokens: null,
  cachedTokens: null,
  rowHash: null,
  imageDigest: null,
});

const SCORES: Partial<Record<ForeignOutcome, boolean>> = {
  resolved: true,
  unresolved: false,
  empty_patch: false,
};

/** A file or folder of another tool. */
const sideOfSheet = (sheet: VerdictSheet): Side => ({
  label: sheet.label,
  kind: sheet.kind,
  model: sheet.model,
  epochs: 1,
  results: new Map(
    [...sheet.verdicts].map(([id, { verdict, lost }]) => {
      const score = lost === undefined ? SCORES[verdict] : undefined;
      const why = lost ?? (verdict === 'error' ? 'error' : 'incomplete');
      return [id, score === undefined ? scoreOnly(id, [], why) : scoreOnly(id, [score], null)];
    }),
  ),
  open: sheet.open,
  facts: sheet.facts,
  partial: true,
  warnings: sheet.warnings,
});

/** Throws a SourceError. */
export const readSide = (path: string): Side => sideOfSheet(readVerdictSheet(path));

/** The result of a side on an instance; undefined when it does not name it. */
export const resultOn = (side: Side, instanceId: string): SideResult | undefined =>
  side.results.get(instanceId) ?? (side.open ? scoreOnly(instanceId, [false], null) : undefined);

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
  /** The gains of B over A: one number an instance, at the end zeros for instances that neither names. */
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
