/**
 * `planRun`: what a run would do, what it needs, what it will cost and take by the history of this results root, and what it can show.
 * Nothing is started, pulled or paid.
 */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { crc32 } from 'node:zlib';
import { headOf } from '../../dataset/dataset.ts';
import { imageOf } from '../../dataset/instance.ts';
import { shownEndpoint } from '../../model/describe.ts';
import { isFreeName } from '../../model/prices.ts';
import {
  type Forecast,
  type ForecastTrial,
  forecast,
  makespan,
  undetectable,
} from '../../report/measure/forecast.ts';
import { RESAMPLING_SEED } from '../../report/measure/summary.ts';
import { pastAttempts, pastPulls } from '../../store/records/baselines.ts';
import type { Caller } from '../caller.ts';
import { type Plan, plan } from '../plan.ts';
import { databasePath, openForReading } from '../resultsRoot.ts';
import type { Surroundings } from '../running.ts';
import { type AgentOrigins, agentOrigins } from './agentOrigins.ts';
import { type DiskAnswer, planDisk } from './planDisk.ts';
import { type ArmConfig, modelNameOf, type RunRequest } from './planRecord.ts';
import { wouldRefuse } from './preflight.ts';
import type { RunOptions } from './resolveConfig.ts';

interface PlannedInstance {
  readonly instanceId: string;
  readonly repo: string;
  readonly image: string;
}

type Selected = RunRequest['selected'];

/** One at a time: half a million of them, each with the name of its image, would be the largest part of a plan. */
export const instancesPlanned = (selected: Selected): Iterable<PlannedInstance> => ({
  *[Symbol.iterator]() {
    for (const row of selected) {
      const head = headOf(row);
      yield { instanceId: head.instance_id, repo: head.repo, image: imageOf(head) };
    }
  },
});

/** The number of different images. Only names whose checksum another one has are held. */
export function countImages(selected: Selected): number {
  const nameOf = (row: Selected[number]) => imageOf(headOf(row));
  const sums = Uint32Array.from(selected, (row) => crc32(nameOf(row)));
  const sorted = sums.toSorted();
  const shared = new Set(sorted.filter((sum, i) => i > 0 && sum === sorted[i - 1]));
  const alone = sums.reduce((count, sum) => (shared.has(sum) ? count : count + 1), 0);
  const names = new Set<string>();
  for (const [i, row] of selected.entries()) if (shared.has(sums[i]!)) names.add(nameOf(row));
  return alone + names.size;
}

export interface DryRun {
  readonly runId: string;
  readonly dataset: string;
  readonly revision: string | null;
  readonly instances: readonly PlannedInstance[];
  /** Limits of 0 are none; the cost limit is in dollars. */
  readonly arms: readonly {
    readonly name: string;
    readonly model: string;
    readonly stepLimit: number;
    readonly costLimit: number;
    /** The address of its model, and the variable that says so; null where nobody is asked, or no variable says it. */
    readonly address: string | null;
    readonly addressFrom: string | null;
    /** The sources of prompt, protocol and limits of its agent. */
    readonly origins: Omit<AgentOrigins, 'arm'>;
  }[];
  /** The file that replaces the default configuration; null where that lies under everything. */
  readonly replacedBy: string | null;
  /** The part of the selection that the instances are, and the instances of the whole; null for the whole. */
  readonly shard: { readonly number: number; readonly of: number; readonly instances: number } | null;
  readonly epochs: number;
  readonly trials: number;
  readonly slots: number;
  /** The number of different images that the instances have. */
  readonly images: number;
  /** Null when no arm runs in Docker. */
  readonly imagePlan: DiskAnswer | null;
  /** Null where no limit bounds it; so is the time. */
  readonly worstCaseDollars: number | null;
  readonly worstCaseSeconds: number | null;
  readonly evaluate: boolean;
  /** Cost and time, from the history of this results root. */
  readonly forecast: Forecast;
  /** The smallest difference that can be detected, as a share; null for fewer than two instances. */
  readonly detectableDifference: number | null;
}

export interface PlannedRun extends DryRun {
  /** Reasons for which `startRun` would refuse this run: no key, replies or engine here, or a refusal by an engine; empty when there is none. */
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

/** Rejects with a UserError when the configuration, the dataset or the selection is wrong: in the words of `startRun`. */
export async function planRun(options: RunOptions & Surroundings): Promise<PlannedRun> {
  const { env = {}, cwd = process.cwd() } = options;
  const warnings: string[] = [];
  const caller: Caller = { env, cwd, tell: ({ text }) => void warnings.push(text) };
  const planned = await plan({ ...options, results: resolve(cwd, options.results) }, caller);
  const { resolved, request } = planned;
  const problems = await wouldRefuse({ ...resolved, selected: request.selected }, caller);
  return { ...(await dryRun(planned, caller)), problems, warnings };
}

type Where = Pick<Caller, 'env' | 'cwd'>;

export async function dryRun({ request, options, resolved }: Plan, { env, cwd }: Where): Promise<DryRun> {
  const { selected } = request;
  const imagePlan = await planDisk(request, env);
  const origins = await agentOrigins(resolved, cwd);
  return {
    runId: request.name,
    dataset: request.dataset.source,
    revision: request.dataset.revision,
    get instances() {
      return [...instancesPlanned(selected)];
    },
    arms: request.arms.map(({ name, model, agent }, k) => ({
      name,
      model: modelNameOf(model),
      stepLimit: agent.step_limit,
      costLimit: agent.cost_limit,
      address: shownEndpoint(model),
      addressFrom: resolved.addressFrom[name] ?? null,
      origins: origins[k]!,
    })),
    replacedBy: resolved.replacedBy,
    shard: request.shard
      ? { number: request.shard.number, of: request.shard.of, instances: request.shard.instances }
      : null,
    epochs: request.run.epochs,
    trials: selected.length * request.arms.length * request.run.epochs,
    slots: request.run.workers,
    images: countImages(selected),
    imagePlan,
    worstCaseDollars: worstDollars(request),
    worstCaseSeconds: worstSeconds(request),
    evaluate: request.grading.enabled,
    ...planForecast(request, options.results, imagePlan),
  };
}

/** Null: no limit holds it. A run budget may be overshot by one call of each slot. */
export function worstDollars({ arms, run, selected }: RunRequest): number | null {
  const isFree = ({ model }: ArmConfig): boolean => model.prices === 'free' || isFreeName(modelNameOf(model));
  const limits = arms.map((arm) => (isFree(arm) ? 0 : arm.agent.cost_limit || Infinity));
  const sum = limits.reduce((a, b) => a + b, 0) * selected.length * run.epochs;
  const worst = run.cost_limit > 0 ? Math.min(run.cost_limit, sum) : sum;
  return Number.isFinite(worst) ? worst : null;
}

/** Every trial takes all its time, the long ones last. */
export function worstSeconds({ arms, run, selected }: RunRequest): number | null {
  const limits = arms.map((a) => a.agent.wall_time_limit_seconds || Infinity);
  const all = limits.flatMap((limit) => Array.from({ length: selected.length * run.epochs }, () => limit));
  const worst = makespan(
    all.toSorted((a, b) => a - b),
    run.workers,
  );
  return Number.isFinite(worst) ? worst : null;
}

function planForecast(
  request: RunRequest,
  root: string,
  images: DiskAnswer | null,
): Pick<DryRun, 'forecast' | 'detectableDifference'> {
  const models = [...new Set(request.arms.map((a) => modelNameOf(a.model)))];
  const { attempts, pulls } = historyIn(root, models);
  const trials = request.arms.flatMap((arm) => {
    const model = modelNameOf(arm.model);
    // Without history all trials are alike.
    return attempts.length === 0
      ? Array<ForecastTrial>(request.selected.length).fill({ model, instanceId: '', repo: '' })
      : Array.from(instancesPlanned(request.selected), (instance) => ({ ...instance, model }));
  });
  const parallel = request.images?.max_concurrent_pulls ?? 1;
  const planned = Array.from({ length: request.run.epochs }, () => trials).flat();
  return {
    forecast: forecast(attempts, planned, {
      slots: request.run.workers,
      seed: RESAMPLING_SEED,
      ...(request.grading.enabled ? { graders: request.grading.workers } : {}),
      pulls: { images: imagesToPull(images), parallel, past: pulls },
    }),
    detectableDifference: undetectable(request.selected.length),
  };
}

/** A first run has no database yet, and a dry run makes none. */
function historyIn(root: string, models: readonly string[]) {
  if (!existsSync(databasePath(root))) return { attempts: [], pulls: [] };
  using store = openForReading(root);
  return { attempts: models.flatMap((model) => pastAttempts(store, model)), pulls: pastPulls(store) };
}

const imagesToPull = (answer: DiskAnswer | null): readonly string[] =>
  answer === null || 'problem' in answer ? [] : answer.toPull;
