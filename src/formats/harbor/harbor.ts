/**
 * A job folder of Harbor as a run: a folder for each trial, with its result.json; reward, tokens, cost, conversation. A trial without a valid reward
 * is missing here, where Harbor's own mean counted it as 0 before 0.26; how far the two numbers are apart is told. Unknown fields are left alone.
 */

import { existsSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { isRecord } from '../../base/isRecord.ts';
import { keyed } from '../../base/keyed.ts';
import { tokensOrNull } from '../../base/plausible.ts';
import { plausibleNano } from '../../money.ts';
import type { ExitReason } from '../../outcome.ts';
import { readAtif } from '../atif/atif.ts';
import { hasKeys, readerOf, readForeignFile, readIfThere, topOf } from '../foreignFile.ts';
import {
  counted,
  epochsOf,
  type ForeignFormat,
  type ForeignInstance,
  type ForeignRun,
  type ForeignVerdict,
  foreignIdProblem,
  foreignInstance,
  lacking,
  numbered,
  secondsOf,
  type TrialIdentity,
  tokensOfPrompt,
  trialKey,
  UNKNOWN_MODEL,
  wholeCall,
  withIds,
} from '../foreignFormat.ts';

export const harbor: ForeignFormat = {
  recognise: ({ files, head }) =>
    files && topOf(files).includes('result.json') && hasKeys(head('result.json'), 'n_total_trials')
      ? { words: 'a job folder of Harbor', certain: 'sure' }
      : null,
  read: (source) => readHarborJob(source),
};

const count = z.number().nullish();
const exceptionSchema = z.looseObject({
  exception_type: z.string(),
  exception_message: z.string().default(''),
  /** Since 0.26. */
  policy: z.looseObject({ has_valid_reward: z.boolean() }).nullish(),
});
const usedSchema = z
  .looseObject({ n_input_tokens: count, n_cache_tokens: count, n_output_tokens: count, cost_usd: count })
  .nullish();
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
  agent_result: usedSchema,
  // A reward that is no number is none: the trial is missing, and the job is read.
  verifier_result: z.looseObject({ rewards: keyed(z.unknown()).nullish() }).nullish(),
  /** Since 0.26: whether its reward is a measurement. */
  reward_valid: z.boolean().nullish(),
  exception_info: exceptionSchema.nullish(),
  step_results: z
    .array(
      z.looseObject({
        step_name: z.string().nullish(),
        exception_info: exceptionSchema.nullish(),
        agent_result: usedSchema,
      }),
    )
    .nullish(),
  started_at: z.string().nullish(),
  finished_at: z.string().nullish(),
});
type HarborTrial = z.infer<typeof trialSchema>;

export const readHarborTrial = readerOf(
  trialSchema,
  (value) => isRecord(value) && 'task_name' in value && 'agent_info' in value,
  'it is no result of a trial of Harbor',
);

const metricsSchema = z.looseObject({ metrics: z.array(z.record(z.string(), z.unknown())).default([]) });
const jobSchema = z.looseObject({
  n_total_trials: z.number().int().min(0),
  stats: z.looseObject({ evals: z.record(z.string(), metricsSchema).default({}) }).nullish(),
});

/** The number of trials in a job, and the means that Harbor printed: one for each pair of agent and dataset. */
export const readHarborJobResult = readerOf(
  jobSchema.transform(({ n_total_trials: trials, stats }) => ({
    trials,
    means: Object.values(stats?.evals ?? {}).flatMap(({ metrics }) =>
      // A job whose trials have several named rewards has a mean for each name, and none that is called so.
      metrics.flatMap(({ mean, reward }) => [mean ?? reward].filter((value) => typeof value === 'number')),
    ),
  })),
  (value) => isRecord(value) && 'n_total_trials' in value,
  'it is no result of a job of Harbor',
);

/** The number of trials that each task was meant to have, in a job's config.json. */
export const readHarborAttempts = readerOf(
  z
    .looseObject({ n_attempts: z.number().int().min(1).max(1000).default(1) })
    .transform(({ n_attempts }) => n_attempts),
  isRecord,
  'it is no configuration of a job of Harbor',
);

/** Ends that are the agent's own, by the names of Harbor before 0.26, which stated no policy: their reward is a measurement. */
const OWN_ENDS: ReadonlySet<string> = new Set([
  'AgentTimeoutError',
  'ContextWindowExceededError',
  'OutputTokenExceededError',
  'ContextLengthExceededError',
  'OutputLengthExceededError',
  'AgentSafetyRefusalError',
  'ContentPolicyViolationError',
]);

const MAIN = 'reward';

/** A trial has the reward that Harbor calls valid, by what it recorded of that; another one is lost, whatever reward stands in it. */
function rewardOf(trial: HarborTrial) {
  const raised = [
    trial.exception_info,
    ...(trial.step_results ?? []).map((step) => step.exception_info),
  ].filter((each) => each != null);
  const given = Object.entries(trial.verifier_result?.rewards ?? {});
  const rewards = Object.fromEntries(
    given.flatMap(([name, value]) => (typeof value === 'number' ? [[name, value]] : [])),
  );
  const all = Object.values(rewards);
  // The one of that name, else the mean of all, as in gradings of our own.
  const reward = given.some(([name]) => name === MAIN) ? rewards[MAIN] : all.length > 0 ? mean(all) : null;
  const valid =
    trial.reward_valid ??
    raised.every(({ exception_type: type, policy }) => policy?.has_valid_reward ?? OWN_ENDS.has(type));
  return { reward: valid ? (reward ?? null) : null, rewards, exception: raised[0] };
}

/** The end of an attempt by Harbor's exceptions; the verdict says apart whether its reward counts. */
const REASONS: readonly (readonly [pattern: RegExp, reason: ExitReason])[] = [
  [/^AgentTimeoutError$/, 'limit_wall_time'],
  [/^(?:Context|Output)\w*ExceededError$/, 'context_window_exceeded'],
  [/^(?:AgentSafetyRefusal|ContentPolicyViolation)Error$/, 'model_refusal'],
  [/^(?:Verifier|Reward)\w*Error$/, 'submitted'],
  [/^CancelledError$/, 'cancelled'],
];
/** A valid reward says that the agent worked until its end, whatever exception was raised then (a non-zero exit of the program). */
const reasonOf = ({ exception, reward }: ReturnType<typeof rewardOf>): ExitReason =>
  exception === undefined
    ? 'submitted'
    : (REASONS.find(([pattern]) => pattern.test(exception.exception_type))?.[1] ??
      (reward === null ? 'env_start_failed' : 'submitted'));

interface Found {
  readonly instanceId: string;
  readonly arm?: string;
  /** The trial's path. */
  readonly path: string;
  readonly trial: HarborTrial;
  readonly measured: ReturnType<typeof rewardOf>;
}
type Trial = Found & { readonly epoch: number };

function modelOf({ agent_info }: HarborTrial): string {
  const info = agent_info?.model_info;
  if (!info) return agent_info?.name ?? UNKNOWN_MODEL;
  return info.provider ? `${info.provider}/${info.name}` : info.name;
}

type Used = NonNullable<HarborTrial['agent_result']>;
const USED = ['n_input_tokens', 'n_cache_tokens', 'n_output_tokens', 'cost_usd'] as const;

/** A trial of several steps states what each of them used. A sum is unknown where a step that asked a model does not say its part. */
function usedBy({ agent_result, step_results }: HarborTrial): Used | null {
  if (states(agent_result)) return agent_result!;
  const steps = (step_results ?? []).flatMap((step) =>
    states(step.agent_result) ? [step.agent_result!] : [],
  );
  if (steps.length === 0) return agent_result ?? null;
  const sums = USED.map((key) => {
    const parts = steps.map((step) => step[key] ?? (key === 'n_cache_tokens' ? 0 : null));
    return [key, parts.some((part) => part === null) ? null : parts.reduce((a, b) => a! + b!, 0)];
  });
  return Object.fromEntries(sums);
}

/** The conversation of a trial, or of each of its steps, in their order. */
function conversationOf(folder: string, { step_results }: HarborTrial) {
  const steps = (step_results ?? []).flatMap(({ step_name: name }) =>
    name && foreignIdProblem('', name) === null ? [join(folder, 'steps', name)] : [],
  );
  const found = [folder, ...steps].map((at) => join(at, 'agent', 'trajectory.json')).filter(existsSync);
  const reads = found.map((path) => readAtif(readForeignFile(path)));
  const read = reads.flatMap((one) => (one.ok ? [one.value] : []));
  return {
    messages: read.flatMap(({ messages }) => messages),
    steps: read.reduce((sum, { steps }) => sum + steps, 0),
    totalNano: read.reduce<number | null>(
      (sum, { totalNano }) => (sum === null || totalNano === null ? null : sum + totalNano),
      reads.length > 0 && read.length === reads.length ? 0 : null,
    ),
    notes: reads.flatMap((one) => (one.ok ? [] : [`its trajectory cannot be read: ${one.message}`])),
  };
}

function instanceOf({ instanceId, epoch, arm, path, trial, measured }: Trial): ForeignInstance {
  const { totalNano, ...conversation } = conversationOf(path, trial);
  const { exception } = measured;
  const used = usedBy(trial);
  const costNano = plausibleNano(used?.cost_usd) ?? totalNano;
  const startedAt = secondsOf(trial.started_at);
  const call = wholeCall({
    ...tokensOfPrompt({
      prompt: used?.n_input_tokens,
      cached: used?.n_cache_tokens,
      completion: used?.n_output_tokens,
    }),
    model: trial.agent_info?.model_info?.name ?? null,
    rawUsage: used,
    cacheReadTokens: tokensOrNull(used?.n_cache_tokens),
    costNano,
    at: startedAt,
  });
  return foreignInstance({
    instanceId,
    epoch,
    ...(arm !== undefined && { arm }),
    model: modelOf(trial),
    format: 'harbor',
    version: trial.agent_info?.version ?? null,
    exitStatus: exception?.exception_type ?? null,
    exitReason: reasonOf(measured),
    errorMessage: exception?.exception_message ?? null,
    ...conversation,
    costNano,
    calls: states(used) || costNano !== null ? [call] : [],
    startedAt,
    endedAt: secondsOf(trial.finished_at),
    file: path,
  });
}

/** Whether it says anything of calls to a model: the agents of Harbor that only test a task ask none. */
const states = (used: HarborTrial['agent_result']): boolean =>
  used != null &&
  [used.n_input_tokens, used.n_output_tokens, used.cost_usd].some((value) => value != null && value !== 0);

const mean = (values: readonly number[]): number =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;

/**
 * As Harbor computes it: of several names that of "reward", which counts as 0 where a trial lacks it. Before 0.26 a reward that is not valid
 * counted as it stands.
 */
function harborMean(trials: readonly Trial[]): number {
  const given = trials.map(({ measured }) => measured.rewards);
  const names = new Set(given.flatMap((rewards) => Object.keys(rewards)));
  if (names.size > 1 && !names.has(MAIN)) return mean(given.map((rewards) => mean(Object.values(rewards))));
  const [name = MAIN] = names.size > 1 ? [MAIN] : names;
  return mean(given.map((rewards) => (Object.hasOwn(rewards, name) ? rewards[name]! : 0)));
}

/** "Harbor's mean is 0.400 …": how its number comes to be, and what it is over the trials that were measured. */
function difference(trials: readonly Trial[], printed: readonly number[]): string[] {
  const lost = trials.filter(({ measured }) => measured.reward === null);
  const valid = trials.filter(({ measured }) => measured.reward !== null);
  const ours = mean(valid.map(({ measured }) => measured.reward!));
  const [only] = printed;
  // A job that 0.26 resumed has its number by the rule of 0.26.
  const leavesOut = trials.some(({ trial }) => trial.reward_valid != null);
  const theirs = printed.length === 1 ? only! : harborMean(leavesOut ? valid : trials);
  const unnamed = valid.filter(({ measured }) => !Object.hasOwn(measured.rewards, MAIN)).length;
  const isNamed = trials.some(({ measured }) => Object.hasOwn(measured.rewards, MAIN));
  const asZero =
    unnamed > 0 && isNamed
      ? `, because it counts ${unnamed} without the name "${MAIN}" as 0; with the mean of their own names it is ${ours.toFixed(3)}`
      : null;
  if (lost.length === 0) {
    if (asZero) return [`Harbor's mean is ${theirs.toFixed(3)} over ${trials.length} trials${asZero}`];
    if (only === undefined || printed.length > 1) return [];
    return [
      `Harbor's mean is ${only.toFixed(3)} over ${trials.length} trials; here it is ${ours.toFixed(3)}`,
    ];
  }
  const names = counted(
    lost.map(
      ({ instanceId, measured }) => `${instanceId} (${measured.exception?.exception_type ?? 'no reward'})`,
    ),
    5,
  );
  const given = lost.filter(({ measured }) => Object.keys(measured.rewards).length > 0).length;
  const asGiven =
    given === 0
      ? ' as 0'
      : given === lost.length
        ? ' as it stands'
        : `, ${given} as it stands and the others as 0`;
  const says = leavesOut
    ? `over the ${valid.length} trials with a valid reward${asZero ?? `; here it is ${ours.toFixed(3)}`}. It leaves out ${lost.length}, which are missing here`
    : `over ${trials.length} trials, because it counts ${lost.length} that gave no valid reward${asGiven}; over the ${valid.length} others it is ${ours.toFixed(3)}, ${(ours - theirs).toFixed(3)} more. Missing here`;
  return [`Harbor's mean is ${theirs.toFixed(3)} ${says}: ${names}`];
}

/** Trials of one task by one agent and model are epochs, in the order in which they began. */
function trialsIn(folder: string, problems: string[]): Trial[] {
  const read = foldersIn(folder).flatMap((path) => {
    const trial = readIfThere(join(path, 'result.json'), readHarborTrial, problems);
    return trial ? [{ path, trial }] : [];
  });
  const idOf = idsOf(read.map(({ trial }) => trial.task_name));
  const agentOf = ({ trial }: (typeof read)[number]) =>
    [trial.agent_info?.name ?? 'agent', modelOf(trial)].join('/');
  const found = withIds(
    read.map((each) => ({ ...each, instanceId: idOf(each.trial.task_name), measured: rewardOf(each.trial) })),
    problems,
  );
  const several = new Set(found.map(agentOf)).size > 1;
  const order = (each: Found) => `${each.instanceId} ${each.trial.started_at ?? ''} ${each.path}`;
  const ordered = found.toSorted((a, b) => (order(a) < order(b) ? -1 : order(a) > order(b) ? 1 : 0));
  return numbered(ordered.map((each): Found => (several ? { ...each, arm: agentOf(each) } : each)));
}

const foldersIn = (folder: string): string[] =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? [join(folder, entry.name)] : [],
  );

/** "org/task" is `task`, unless the job has a task of that name from elsewhere: two tasks are not two trials of one. */
function idsOf(names: readonly string[]): (name: string) => string {
  const sources = Map.groupBy(new Set(names), lastOf);
  return (name) => (sources.get(lastOf(name))!.length > 1 ? name.replaceAll('/', '__') : lastOf(name));
}

const lastOf = (name: string): string => name.split('/').at(-1)!;

/** A trial that was meant, by the lock of the job or by its own configuration. */
interface Meant {
  readonly task: string;
  /** The agent, as trials that ended name theirs. */
  readonly agent: string | undefined;
}

const asked = {
  agent: z
    .looseObject({ name: z.string().nullish(), model_name: z.string().nullish() })
    .nullish()
    .transform((agent) => (agent?.name ? [agent.name, agent.model_name ?? agent.name].join('/') : undefined)),
};

/** Every trial that the job was meant to run. */
export const readHarborLock = readerOf(
  z
    .looseObject({
      trials: z.array(z.looseObject({ task: z.looseObject({ name: z.string().min(1) }), ...asked })),
    })
    .transform(({ trials }) => trials.map(({ task, agent }): Meant => ({ task: task.name, agent }))),
  isRecord,
  'it is no lock of a job of Harbor',
);

/** config.json of a trial. */
export const readHarborTrialConfig = readerOf(
  z
    .looseObject({
      task: z.looseObject({ name: z.string().nullish(), path: z.string().nullish() }),
      ...asked,
    })
    .transform(({ task, agent }): Meant => ({ task: task.name ?? task.path ?? '', agent })),
  isRecord,
  'it is no configuration of a trial of Harbor',
);

/** Trials that began and left no result: by their configuration, or the name that Harbor gives their folders. */
const unfinishedIn = (folder: string): Meant[] =>
  foldersIn(folder).flatMap((path) => {
    if (existsSync(join(path, 'result.json'))) return [];
    const read = readIfThere(join(path, 'config.json'), readHarborTrialConfig);
    if (read && read.task !== '') return [read];
    const named = /^(.+)__[A-Za-z0-9]{7}$/.exec(basename(path))?.[1];
    return named === undefined ? [] : [{ task: named, agent: undefined }];
  });

/** Trials that the job was meant to run, by its lock or its attempts for each task, and has no result of. */
function neverRun(folder: string, trials: readonly Trial[], attempts: number): TrialIdentity[] {
  const sources = Map.groupBy(trials, ({ trial }) => lastOf(trial.task_name));
  const arms = new Set(trials.map(({ arm }) => arm));
  const placed = ({ task, agent }: Meant): TrialIdentity[] => {
    const named = sources.get(lastOf(task)) ?? [];
    const ids = new Set(named.map(({ instanceId }) => instanceId));
    const instanceId =
      ids.size > 1
        ? named.find(({ trial }) => trial.task_name === task)?.instanceId
        : ([...ids][0] ?? lastOf(task));
    const arm = arms.has(undefined) ? undefined : agent;
    if (instanceId === undefined || !arms.has(arm) || foreignIdProblem('', instanceId) !== null) return [];
    return [{ instanceId, ...(arm !== undefined && { arm }) }];
  };
  const has = Map.groupBy(trials, (trial) => trialKey({ ...trial, epoch: 1 }));
  const planned = trials.flatMap(({ instanceId, arm }) =>
    epochsOf({ instanceId, ...(arm !== undefined && { arm }) }, attempts),
  );
  const locked = readIfThere(join(folder, 'lock.json'), readHarborLock) ?? [];
  for (const [all, begun] of [
    [locked, false],
    [unfinishedIn(folder), true],
  ] as const)
    for (const [key, same] of Map.groupBy(all.flatMap(placed), trialKey))
      planned.push(...epochsOf(same[0]!, same.length + (begun ? (has.get(key)?.length ?? 0) : 0)));
  return lacking(planned, trials);
}

/** Null for another kind of folder. */
function readHarborJob(folder: string): ForeignRun | null {
  const job = readIfThere(join(folder, 'result.json'), readHarborJobResult);
  if (!job) return null;
  const problems: string[] = [];
  const trials = trialsIn(folder, problems);
  const attempts = readIfThere(join(folder, 'config.json'), readHarborAttempts) ?? 1;
  const warnings = difference(trials, job.means);
  const absent = job.trials - trials.length;
  if (absent > 0 && problems.length === 0)
    warnings.push(
      `${absent} of the ${job.trials} trials of the job have no result: Harbor's mean leaves them out`,
    );
  const instances = trials.map(instanceOf);
  const verdicts = new Map(trials.map((each) => [trialKey(each), verdictOf(each.measured)]));
  return { folder, instances, verdicts, neverRun: neverRun(folder, trials, attempts), warnings, problems };
}

function verdictOf({ reward, rewards, exception }: Trial['measured']): ForeignVerdict {
  const verdict = reward === null ? 'error' : reward >= 1 ? 'resolved' : 'unresolved';
  const reason = reward === null ? (exception?.exception_type ?? 'no_reward') : null;
  // The record holds rewards between 0 and 1; another one still says whether the task was solved.
  const recorded = reward !== null && reward >= 0 && reward <= 1 ? reward : null;
  const named = reward === null ? null : rewards;
  return { verdict, reason, report: null, grader: 'harbor', reward: recorded, rewards: named };
}
