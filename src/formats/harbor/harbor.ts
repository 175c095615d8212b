/**
 * A job folder of Harbor as a run: a folder for each trial, with its result.json; reward, tokens, cost, conversation. A trial without a valid reward
 * is missing here, where Harbor's own mean counted it as 0 before 0.26; how far the two numbers are apart is told. Unknown fields are left alone.
 */

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { isRecord } from '../../base/isRecord.ts';
import { keyed } from '../../base/keyed.ts';
import { tokensOrNull } from '../../base/plausible.ts';
import { plausibleNano } from '../../money.ts';
import type { ExitReason } from '../../outcome.ts';
import { readAtif } from '../atif/atif.ts';
import { hasKeys, readForeignFile, topOf } from '../foreignFile.ts';
import {
  counted,
  type ForeignFormat,
  type ForeignInstance,
  type ForeignRun,
  type ForeignVerdict,
  foreignIdProblem,
  foreignInstance,
  type TrialIdentity,
  trialKey,
  UNKNOWN_MODEL,
  wholeCall,
} from '../foreignFormat.ts';
import { type RawBody, type Read, readForeign } from '../foreignJson.ts';

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

export const readHarborTrial = (text: RawBody): Read<HarborTrial> =>
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

/** How many trials it has, and the means that Harbor printed: one for each pair of agent and dataset. */
export function readHarborJobResult(
  text: RawBody,
): Read<{ readonly trials: number; readonly means: readonly number[] }> {
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
export function readHarborAttempts(text: RawBody): Read<number> {
  const read = readForeign(text, configSchema, isRecord, 'it is no configuration of a job of Harbor');
  return read.ok ? { ok: true, value: read.value.n_attempts } : read;
}

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

/** What Harbor's exceptions say about the end of an attempt; the verdict says apart whether its reward counts. */
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

interface Trial {
  readonly id: string;
  readonly folder: string;
  readonly trial: HarborTrial;
  readonly measured: ReturnType<typeof rewardOf>;
  readonly epoch: number;
  readonly arm: string | undefined;
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

/** Of a trial, or of each of its steps, in their order. */
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

function instanceOf({ id, folder, trial, measured, epoch, arm }: Trial): ForeignInstance {
  const { totalNano, ...conversation } = conversationOf(folder, trial);
  const { exception } = measured;
  const used = usedBy(trial);
  const costNano = plausibleNano(used?.cost_usd) ?? totalNano;
  const call = wholeCall({
    model: trial.agent_info?.model_info?.name ?? null,
    rawUsage: used,
    // Harbor counts what came from the cache as input too.
    inputTokens:
      used?.n_input_tokens == null
        ? null
        : tokensOrNull(Math.max(0, used.n_input_tokens - (used.n_cache_tokens ?? 0))),
    outputTokens: tokensOrNull(used?.n_output_tokens),
    cacheReadTokens: tokensOrNull(used?.n_cache_tokens),
    costNano,
    at: secondsOf(trial.started_at),
  });
  return foreignInstance({
    instanceId: id,
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
    startedAt: secondsOf(trial.started_at),
    endedAt: secondsOf(trial.finished_at),
    file: folder,
  });
}

/** Whether it says anything of calls to a model: the agents of Harbor that only test a task ask none. */
const states = (used: HarborTrial['agent_result']): boolean =>
  used != null &&
  [used.n_input_tokens, used.n_output_tokens, used.cost_usd].some((value) => value != null && value !== 0);

const mean = (values: readonly number[]): number =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;

/**
 * As Harbor computes it: of several names that of "reward", which counts as 0 where a trial lacks it. Before 0.26 a reward that is not valid counted as
 * it stands.
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
  // One that 0.26 resumed has its number by its rule.
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
    lost.map(({ id, measured }) => `${id} (${measured.exception?.exception_type ?? 'no reward'})`),
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

type Found = Omit<Trial, 'epoch' | 'arm'>;

function trialsIn(folder: string, problems: string[]): Found[] {
  const found: Found[] = [];
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const at = join(folder, entry.name);
    const path = join(at, 'result.json');
    if (!entry.isDirectory() || !existsSync(path)) continue;
    const read = readHarborTrial(readForeignFile(path));
    if (!read.ok) {
      problems.push(`${path}: ${read.message}`);
      continue;
    }
    found.push({ id: '', folder: at, trial: read.value, measured: rewardOf(read.value) });
  }
  const idOf = idsOf(found.map(({ trial }) => trial.task_name));
  return found.flatMap((each) => {
    const id = idOf(each.trial.task_name);
    const noId = foreignIdProblem(each.folder, id);
    if (noId === null) return [{ ...each, id }];
    problems.push(noId);
    return [];
  });
}

/** "org/task" is `task`, unless the job has a task of that name from elsewhere: two tasks are not two trials of one. */
function idsOf(names: readonly string[]): (name: string) => string {
  const sources = Map.groupBy(new Set(names), lastOf);
  return (name) => (sources.get(lastOf(name))!.length > 1 ? name.replaceAll('/', '__') : lastOf(name));
}

const lastOf = (name: string): string => name.split('/').at(-1)!;

/** Trials of one task by one agent and model are epochs, in the order in which they began. */
function placed(found: readonly Found[]): Trial[] {
  const agentOf = ({ trial }: Found) => [trial.agent_info?.name ?? 'agent', modelOf(trial)].join('/');
  const several = new Set(found.map(agentOf)).size > 1;
  const order = (each: Found) => `${each.id} ${each.trial.started_at ?? ''} ${each.folder}`;
  const ordered = found.toSorted((a, b) => (order(a) < order(b) ? -1 : order(a) > order(b) ? 1 : 0));
  const epochs = new Map<string, number>();
  return ordered.map((each) => {
    const arm = several ? agentOf(each) : undefined;
    const epoch = (epochs.get(`${each.id} ${arm}`) ?? 0) + 1;
    epochs.set(`${each.id} ${arm}`, epoch);
    return { ...each, epoch, arm };
  });
}

const asked = {
  agent: z.looseObject({ name: z.string().nullish(), model_name: z.string().nullish() }).nullish(),
};
/** Every trial that the job was meant to run. */
const lockSchema = z.looseObject({
  trials: z.array(z.looseObject({ task: z.looseObject({ name: z.string().min(1) }), ...asked })),
});
/** config.json of a trial. */
const trialConfigSchema = z.looseObject({
  task: z.looseObject({ name: z.string().nullish(), path: z.string().nullish() }),
  ...asked,
});

/** What was meant, by the lock of the job or by the configuration of a trial. */
interface Meant {
  readonly task: string;
  readonly agent: string | undefined;
}

/** As `placed` names the agents of trials that ended. */
const meant = (task: string, agent: z.infer<typeof trialConfigSchema>['agent']): Meant => ({
  task,
  agent: agent?.name ? [agent.name, agent.model_name ?? agent.name].join('/') : undefined,
});

export function readHarborLock(text: RawBody): Read<readonly Meant[]> {
  const read = readForeign(text, lockSchema, isRecord, 'it is no lock of a job of Harbor');
  return read.ok
    ? { ok: true, value: read.value.trials.map(({ task, agent }) => meant(task.name, agent)) }
    : read;
}

export function readHarborTrialConfig(text: RawBody): Read<Meant> {
  const read = readForeign(text, trialConfigSchema, isRecord, 'it is no configuration of a trial of Harbor');
  if (!read.ok) return read;
  const { task, agent } = read.value;
  return { ok: true, value: meant(task.name ?? task.path ?? '', agent) };
}

/** Trials that began and left no result: by their configuration, or the name that Harbor gives their folders. */
const unfinishedIn = (folder: string): Meant[] =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (!entry.isDirectory() || existsSync(join(folder, entry.name, 'result.json'))) return [];
    const config = join(folder, entry.name, 'config.json');
    const read = existsSync(config) ? readHarborTrialConfig(readForeignFile(config)) : null;
    if (read?.ok && read.value.task !== '') return [read.value];
    const named = /^(.+)__[A-Za-z0-9]{7}$/.exec(entry.name)?.[1];
    return named === undefined ? [] : [{ task: named, agent: undefined }];
  });

/** Trials that the job was meant to run, by its lock or its attempts for each task, and has no result of. */
function neverRun(folder: string, trials: readonly Trial[], attempts: number): TrialIdentity[] {
  const places = new Map<string, { id: string; arm: string | undefined; has: number; planned: number }>();
  const placeOf = (id: string, arm: string | undefined) => {
    const key = `${id} ${arm}`;
    const place = places.get(key) ?? { id, arm, has: 0, planned: 0 };
    places.set(key, place);
    return place;
  };
  for (const { id, arm } of trials) placeOf(id, arm).has += 1;
  for (const place of places.values()) place.planned = Math.max(attempts, place.has);
  const sources = Map.groupBy(trials, ({ trial }) => lastOf(trial.task_name));
  const arms = new Set(trials.map(({ arm }) => arm));
  const placed = ({ task, agent }: Meant) => {
    const named = sources.get(lastOf(task)) ?? [];
    const ids = new Set(named.map(({ id }) => id));
    const id =
      ids.size > 1 ? named.find(({ trial }) => trial.task_name === task)?.id : ([...ids][0] ?? lastOf(task));
    const arm = arms.has(undefined) ? undefined : agent;
    return id !== undefined && arms.has(arm) && foreignIdProblem('', id) === null ? [{ id, arm }] : [];
  };
  const path = join(folder, 'lock.json');
  const lock = existsSync(path) ? readHarborLock(readForeignFile(path)) : null;
  const locked = lock?.ok ? lock.value : [];
  for (const [all, begun] of [
    [locked, false],
    [unfinishedIn(folder), true],
  ] as const)
    for (const same of Map.groupBy(all.flatMap(placed), ({ id, arm }) => `${id} ${arm}`).values()) {
      const place = placeOf(same[0]!.id, same[0]!.arm);
      place.planned = Math.max(place.planned, same.length + (begun ? place.has : 0));
    }
  return [...places.values()].flatMap(({ id: instanceId, arm, has, planned }) =>
    Array.from({ length: planned - has }, (_, at) => ({
      instanceId,
      epoch: has + at + 1,
      ...(arm !== undefined && { arm }),
    })),
  );
}

/** Null for another kind of folder. */
export function readHarborJob(folder: string): ForeignRun | null {
  const path = join(folder, 'result.json');
  const job = existsSync(path) ? readHarborJobResult(readForeignFile(path)) : null;
  if (!job?.ok) return null;
  const problems: string[] = [];
  const trials = placed(trialsIn(folder, problems));
  const config = join(folder, 'config.json');
  const attempts = existsSync(config) ? readHarborAttempts(readForeignFile(config)) : null;
  const lacking = neverRun(folder, trials, attempts?.ok ? attempts.value : 1);
  const warnings = difference(trials, job.value.means);
  const absent = job.value.trials - trials.length;
  if (absent > 0 && problems.length === 0)
    warnings.push(
      `${absent} of the ${job.value.trials} trials of the job have no result: Harbor's mean leaves them out`,
    );
  const instances = trials.map(instanceOf);
  const verdicts = new Map(trials.map((each, at) => [trialKey(instances[at]!), verdictOf(each.measured)]));
  return { folder, instances, verdicts, neverRun: lacking, warnings, problems };
}

function verdictOf({ reward, rewards, exception }: Trial['measured']): ForeignVerdict {
  const verdict = reward === null ? 'error' : reward >= 1 ? 'resolved' : 'unresolved';
  const reason = reward === null ? (exception?.exception_type ?? 'no_reward') : null;
  // The record holds rewards between 0 and 1; another one still says whether the task was solved.
  const recorded = reward !== null && reward >= 0 && reward <= 1 ? reward : null;
  const named = reward === null ? null : rewards;
  return { verdict, reason, report: null, grader: 'harbor', reward: recorded, rewards: named };
}
