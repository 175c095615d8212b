/**
 * A job folder of Harbor as a run: reward, tokens, cost, conversation. A trial that infrastructure lost is missing here, where Harbor's own
 * mean counts it as 0; how far the two numbers are apart is told.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type HarborReward,
  type HarborTrial,
  readHarborJobResult,
  readHarborTrial,
  rewardOf,
} from '../../formats/reports/harborJob.ts';
import { readAtif } from '../../formats/trajectories/readAtif.ts';
import { plausibleNano } from '../../money.ts';
import type { ExitReason } from '../../outcome.ts';
import { type ImportedInstance, UNKNOWN_MODEL } from './importedRun.ts';
import type { GradedElsewhere, VerdictOf, Verdicts } from './readReports.ts';

/** What Harbor's exceptions say about the end of an attempt; the verdict says apart whether its reward counts. */
const REASONS: readonly (readonly [pattern: RegExp, reason: ExitReason])[] = [
  [/^AgentTimeoutError$/, 'limit_wall_time'],
  [/^(?:Context|Output)\w*ExceededError$/, 'context_window_exceeded'],
  [/^(?:AgentSafetyRefusal|ContentPolicyViolation)Error$/, 'model_refusal'],
  [/^(?:Verifier|Reward)\w*Error$/, 'submitted'],
  [/^CancelledError$/, 'cancelled'],
];
const reasonOfException = (type: string): ExitReason =>
  REASONS.find(([pattern]) => pattern.test(type))?.[1] ?? 'env_start_failed';

interface Trial {
  readonly id: string;
  readonly folder: string;
  readonly trial: HarborTrial;
  readonly measured: HarborReward;
}

const secondsOf = (date: string | null | undefined): number | null => {
  const at = Date.parse(date ?? '');
  return Number.isNaN(at) ? null : at / 1000;
};

function modelOf({ agent_info }: HarborTrial): string {
  const info = agent_info?.model_info;
  if (!info) return agent_info?.name ?? UNKNOWN_MODEL;
  return info.provider ? `${info.provider}/${info.name}` : info.name;
}

function instanceOf({ id, folder, trial, measured }: Trial): ImportedInstance {
  const path = join(folder, 'agent', 'trajectory.json');
  const read = existsSync(path) ? readAtif(readFileSync(path)) : null;
  const conversation = read?.ok ? read.value : null;
  const { exception } = measured;
  const used = trial.agent_result;
  const costNano = plausibleNano(used?.cost_usd);
  const call = {
    ...{ step: 1, model: trial.agent_info?.model_info?.name ?? null, responseId: null, finishReason: null },
    ...{
      rawUsage: used,
      inputTokens: used?.n_input_tokens ?? null,
      outputTokens: used?.n_output_tokens ?? null,
    },
    ...{ cacheReadTokens: used?.n_cache_tokens ?? null, reasoningTokens: null, costNano },
    ...{ at: secondsOf(trial.started_at), notes: ['all calls of the trial in one'] },
  };
  return {
    ...{
      instanceId: id,
      model: modelOf(trial),
      format: 'harbor',
      version: trial.agent_info?.version ?? null,
    },
    exitStatus: exception?.type ?? null,
    exitReason: exception ? reasonOfException(exception.type) : 'submitted',
    errorMessage: exception?.message ?? null,
    ...{ submission: null, modelPatch: null, steps: conversation?.steps ?? 0, costNano },
    ...{ config: {}, messages: conversation?.messages ?? [], calls: used ? [call] : [] },
    ...{ startedAt: secondsOf(trial.started_at), endedAt: secondsOf(trial.finished_at), file: folder },
    notes: read && !read.ok ? [`its trajectory cannot be read: ${read.message}`] : [],
  };
}

const mean = (values: readonly number[]): number =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;

/** "Harbor printed 0.400 …": how its number comes to be, and what it is over the trials that were measured. */
function difference(trials: readonly Trial[], printed: readonly number[]): string[] {
  const lost = trials.filter(({ measured }) => measured.reward === null);
  if (lost.length === 0) return [];
  const theirs =
    printed.length === 1 ? printed[0]! : mean(trials.map(({ measured }) => measured.reward ?? 0));
  const ours = mean(trials.flatMap(({ measured }) => (measured.reward === null ? [] : [measured.reward])));
  const names = lost
    .slice(0, 5)
    .map(({ id, measured }) => `${id} (${measured.exception?.type ?? 'no reward'})`);
  return [
    `Harbor's mean is ${theirs.toFixed(3)} over ${trials.length} trials, because it counts ${lost.length} that gave no valid reward as 0; over the ${trials.length - lost.length} others it is ${ours.toFixed(3)}, ${(ours - theirs).toFixed(3)} more. Missing here: ${names.join(', ')}${lost.length > 5 ? ', …' : ''}`,
  ];
}

function trialsIn(folder: string, problems: string[]): Trial[] {
  const found = new Map<string, Trial>();
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const at = join(folder, entry.name);
    const path = join(at, 'result.json');
    if (!entry.isDirectory() || !existsSync(path)) continue;
    const read = readHarborTrial(readFileSync(path));
    if (!read.ok) {
      problems.push(`${path}: ${read.message}`);
      continue;
    }
    const id = read.value.task_name.split('/').at(-1)!;
    found.set(`${id} ${entry.name}`, { id, folder: at, trial: read.value, measured: rewardOf(read.value) });
  }
  return [...found.values()].sort((a, b) =>
    a.id < b.id ? -1 : a.id > b.id ? 1 : a.folder < b.folder ? -1 : 1,
  );
}

/** Null for another kind of folder. */
export function readHarborJob(folder: string): GradedElsewhere | null {
  const path = join(folder, 'result.json');
  const job = existsSync(path) ? readHarborJobResult(readFileSync(path)) : null;
  if (!job?.ok) return null;
  const problems: string[] = [];
  const trials = trialsIn(folder, problems);
  // A run of ours has one epoch here: the first trial of a task stands for it.
  const first = [...new Map([...trials].reverse().map((each) => [each.id, each])).values()].reverse();
  const warnings = difference(trials, job.value.means);
  if (first.length < trials.length)
    warnings.push(
      `${trials.length - first.length} further trials of the same tasks are left out: the first of each is imported`,
    );
  const verdicts: Verdicts = new Map(first.map(({ id, measured }) => [id, verdictOf(measured)]));
  return { imported: { folder, instances: first.map(instanceOf), warnings, problems }, verdicts };
}

/** The record holds rewards between 0 and 1; another one still says whether the task was solved. */
const recorded = (reward: number | null): number | null =>
  reward !== null && reward >= 0 && reward <= 1 ? reward : null;

function verdictOf({ reward, rewards, exception }: HarborReward): VerdictOf {
  const verdict = reward === null ? 'error' : reward >= 1 ? 'resolved' : 'unresolved';
  const reason = reward === null ? (exception?.type ?? 'no_reward') : null;
  const numbers = { reward: recorded(reward), rewards: reward === null ? null : rewards };
  return { verdict, reason, report: null, grader: 'harbor', ...numbers };
}
