/** A job folder of Harbor: a folder for each trial, with its result.json. Unknown fields are left alone. */
import { z } from 'zod';
import { isRecord } from '../../base/isRecord.ts';
import { type Body, type Read, readForeign } from '../foreignJson.ts';

const count = z.number().nullish();
const exceptionSchema = z.looseObject({
  exception_type: z.string(),
  exception_message: z.string().default(''),
});
const trialSchema = z.looseObject({
  task_name: z.string().min(1),
  trial_name: z.string().default(''),
  agent_info: z
    .looseObject({
      name: z.string(),
      version: z.string().nullish(),
      model_info: z.looseObject({ name: z.string(), provider: z.string().nullish() }).nullish(),
    })
    .nullish(),
  agent_result: z
    .looseObject({ n_input_tokens: count, n_cache_tokens: count, n_output_tokens: count, cost_usd: count })
    .nullish(),
  verifier_result: z.looseObject({ rewards: z.record(z.string(), z.number()).nullish() }).nullish(),
  exception_info: exceptionSchema.nullish(),
  step_results: z.array(z.looseObject({ exception_info: exceptionSchema.nullish() })).nullish(),
  started_at: z.string().nullish(),
  finished_at: z.string().nullish(),
});
export type HarborTrial = z.infer<typeof trialSchema>;

export const readHarborTrial = (text: Body): Read<HarborTrial> =>
  readForeign(
    text,
    trialSchema,
    (value) => isRecord(value) && 'task_name' in value && 'agent_info' in value,
    'it is no result of a trial of Harbor',
  );

const jobSchema = z.looseObject({
  n_total_trials: z.number().int().min(0),
  stats: z
    .looseObject({
      evals: z
        .record(
          z.string(),
          z.looseObject({ metrics: z.array(z.record(z.string(), z.unknown())).default([]) }),
        )
        .default({}),
    })
    .nullish(),
});

export interface HarborJob {
  readonly trials: number;
  /** The means that Harbor printed, one for each pair of agent and dataset. */
  readonly means: readonly number[];
}

export function readHarborJobResult(text: Body): Read<HarborJob> {
  const read = readForeign(
    text,
    jobSchema,
    (value) => isRecord(value) && 'n_total_trials' in value,
    'it is no result of a job of Harbor',
  );
  if (!read.ok) return read;
  const evals = Object.values(read.value.stats?.evals ?? {});
  const means = evals.flatMap(({ metrics }) =>
    // A job whose trials have several named rewards has a mean for each name, and none that is called so.
    metrics.flatMap(({ mean, reward }) => [mean ?? reward].filter((value) => typeof value === 'number')),
  );
  return { ok: true, value: { trials: read.value.n_total_trials, means } };
}

const configSchema = z.looseObject({ n_attempts: z.number().int().min(1).max(1000).default(1) });

/** From config.json of a job: how many trials each task was meant to have. */
export function readHarborAttempts(text: Body): Read<number> {
  const read = readForeign(text, configSchema, isRecord, 'it is no configuration of a job of Harbor');
  return read.ok ? { ok: true, value: read.value.n_attempts } : read;
}

/** Ends that are the agent's own, by Harbor's names: their reward is a measurement. */
const OWN_ENDS: ReadonlySet<string> = new Set([
  ...[
    'AgentTimeoutError',
    'ContextWindowExceededError',
    'OutputTokenExceededError',
    'ContextLengthExceededError',
  ],
  ...['OutputLengthExceededError', 'AgentSafetyRefusalError', 'ContentPolicyViolationError'],
]);

export interface HarborReward {
  /** The one of that name, else the mean of all, as in gradings of our own; null where the trial was lost. */
  readonly reward: number | null;
  readonly rewards: Readonly<Record<string, number>>;
  /** Type and message of the first exception; null where there was none. */
  readonly exception: { readonly type: string; readonly message: string } | null;
}

/** A trial whose exception is not the agent's own is lost, whatever reward stands beside it: Harbor's own rule for a valid reward. */
export function rewardOf(trial: HarborTrial): HarborReward {
  const raised = [
    trial.exception_info,
    ...(trial.step_results ?? []).map((step) => step.exception_info),
  ].filter((each) => each != null);
  const rewards = trial.verifier_result?.rewards ?? {};
  const all = Object.values(rewards);
  const ofAll = all.length === 0 ? undefined : all.reduce((sum, value) => sum + value, 0) / all.length;
  const reward = Object.hasOwn(rewards, 'reward') ? rewards.reward : ofAll;
  const lost = reward === undefined || raised.some(({ exception_type }) => !OWN_ENDS.has(exception_type));
  const [first] = raised;
  return {
    reward: lost ? null : reward,
    rewards,
    exception: first ? { type: first.exception_type, message: first.exception_message } : null,
  };
}
