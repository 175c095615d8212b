/**
 * A run as a job folder of Harbor (0.26): what its viewer lists and our reader reads. Trials of a task are its attempts, agents and models are
 * evals.
 */
import { sha256 } from '../../base/sha256.ts';
import { pathName } from '../../base/text/fileName.ts';
import { atifOf } from '../atif/writeAtif.ts';
import {
  RECORD_FILE,
  sumOfUsage,
  type WrittenArm,
  type WrittenFile,
  type WrittenRun,
  type WrittenTrial,
  type WrittenUsage,
} from '../writtenRun.ts';

type Json = Record<string, unknown>;

/** The part of a trial that the job needs, whose file is written last. */
interface Written {
  readonly name: string;
  readonly task: string;
  readonly eval: string;
  readonly reward: number | null;
  readonly exception: string | null;
  readonly usage: Usage;
}

type Usage = Pick<WrittenUsage, 'input' | 'cacheRead' | 'output' | 'costNano'>;

export function* writeHarbor(run: WrittenRun): Generator<WrittenFile> {
  const written: Written[] = [];
  for (const arm of run.arms)
    for (const trial of arm.trials()) {
      const { instanceId, epoch } = trial.attempt;
      // Harbor's own names end in seven letters of chance; here in what the trial is, so that the same run has the same.
      const name = `${pathName(instanceId).slice(0, 32)}__${uuidOf(run.name, arm.name, instanceId, String(epoch)).slice(0, 7)}`;
      const used = sumOf(trial);
      const result = resultOf(run, arm, trial, name, used);
      yield { path: `${name}/result.json`, content: text(result) };
      yield { path: `${name}/config.json`, content: text(result.config) };
      yield { path: `${name}/agent/trajectory.json`, content: text(atifOf(trial.attempt, run.version)) };
      yield { path: `${name}/agent/patch.diff`, content: trial.patch };
      if (trial.verdict) yield { path: `${name}/verifier/reward.txt`, content: `${rewardOf(trial)}\n` };
      written.push({
        name,
        task: instanceId,
        // Harbor's viewer takes the name apart at "__", and looks for the trials of that agent, model and source.
        eval: [agentOf(arm), modelOf(arm.model).name, run.dataset.source].join('__'),
        reward: trial.verdict ? rewardOf(trial)! : null,
        exception: result.exception_info?.exception_type ?? null,
        usage: used,
      });
    }
  yield { path: 'config.json', content: text(configOf(run)) };
  yield { path: RECORD_FILE, content: run.record() };
  yield { path: 'result.json', content: text(jobOf(run, written)) };
}

const text = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

function uuidOf(...of: readonly string[]): string {
  const hex = sha256(of.join('\n'));
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

const agentOf = ({ agent }: WrittenArm): string => agent.split(/\s/, 1)[0]!;

/** "vendor/name" has a provider; Harbor puts both together again. */
function modelOf(model: string): { name: string; provider: string | null } {
  const slash = model.indexOf('/');
  return slash < 1
    ? { name: model, provider: null }
    : { name: model.slice(slash + 1), provider: model.slice(0, slash) };
}

function sumOf({ usage }: WrittenTrial): Usage {
  const { input, cacheWrite, ...sum } = sumOfUsage([...usage.values()]);
  return { ...sum, input: input + cacheWrite };
}

/** The reward; a trial that is not resolved has one below 1. */
const rewardOf = ({ verdict }: WrittenTrial): number | null =>
  verdict && (verdict.resolved ? 1 : Math.min(verdict.reward ?? 0, 0.999));

/** Ends that are the agent's own, by Harbor's names: their reward is a measurement. */
const OWN_ENDS: Readonly<Record<string, string>> = {
  limit_wall_time: 'AgentTimeoutError',
  context_window_exceeded: 'ContextWindowExceededError',
  model_refusal: 'AgentSafetyRefusalError',
};

/** Harbor computes the policy from the exception's type, unless one is stated: what is missing has no valid reward. */
function exceptionOf({ attempt, missing }: WrittenTrial) {
  const type = missing === null ? OWN_ENDS[attempt.exitReason ?? ''] : lossOf(missing);
  if (type === undefined) return null;
  const lost = missing !== null;
  return {
    exception_type: type,
    exception_message: `${attempt.exitReason ?? missing}${attempt.errorMessage ? `: ${attempt.errorMessage}` : ''}`,
    exception_traceback: '',
    occurred_at: attempt.endedAt ?? attempt.startedAt,
    ...(lost && { policy_override: { should_retry: null, should_grade: null, has_valid_reward: false } }),
    policy: {
      // Harbor knows the ends that are the agent's own and a cancellation, and tries any other again.
      should_retry: lost && type !== CANCELLED,
      should_grade: type !== CANCELLED,
      has_valid_reward: !lost,
    },
  };
}

const CANCELLED = 'CancelledError';

const lossOf = (missing: string): string =>
  missing === 'not_graded' || missing === 'grading_infra' || missing === 'ungradable'
    ? 'VerifierOutputMissingError'
    : missing === 'cancelled'
      ? CANCELLED
      : 'EnvironmentStartError';

function resultOf(run: WrittenRun, arm: WrittenArm, trial: WrittenTrial, name: string, used: Usage) {
  const { instanceId, epoch, startedAt, endedAt } = trial.attempt;
  const ends = endedAt ?? startedAt;
  const path = `tasks/${pathName(instanceId)}`;
  const reward = rewardOf(trial);
  const agent = { name: agentOf(arm), model_name: arm.model, kwargs: {} };
  return {
    id: uuidOf(run.name, arm.name, instanceId, String(epoch), 'trial'),
    task_name: instanceId,
    trial_name: name,
    trial_uri: `file:///${pathName(run.name)}/${name}`,
    task_id: { path },
    source: run.dataset.source,
    task_checksum: sha256(`${run.dataset.hash} ${instanceId}`),
    config: { task: { path, source: run.dataset.source }, trial_name: name, agent },
    agent_info: { name: agent.name, version: run.version, model_info: modelOf(arm.model) },
    agent_result: {
      n_input_tokens: used.input + used.cacheRead,
      n_cache_tokens: used.cacheRead,
      n_output_tokens: used.output,
      cost_usd: used.costNano === null ? null : used.costNano / 1e9,
      metadata: { exit_reason: trial.attempt.exitReason, steps: trial.attempt.steps },
    },
    verifier_result: reward === null ? null : { rewards: { reward } },
    reward_valid: reward !== null,
    exception_info: exceptionOf(trial),
    started_at: startedAt,
    finished_at: ends,
    agent_execution: { started_at: startedAt, finished_at: ends },
  };
}

/** Harbor asks a job for what it was told to do: attempts for each task, agents, tasks. */
function configOf(run: WrittenRun): Json {
  return {
    job_name: run.name,
    jobs_dir: 'jobs',
    n_attempts: run.epochs,
    agents: run.arms.map((arm) => ({ name: agentOf(arm), model_name: arm.model })),
    tasks: run.ids.map((id) => ({ path: `tasks/${pathName(id)}`, source: run.dataset.source })),
  };
}

function jobOf(run: WrittenRun, written: readonly Written[]): Json {
  const planned = run.ids.length * run.epochs * run.arms.length;
  const errored = written.filter(({ exception }) => exception !== null);
  const ends = run.finishedAt ?? run.createdAt;
  // Harbor's sums are of the stated values.
  const total = (of: (usage: Usage) => number | null) => {
    const stated = written.flatMap(({ usage }) => of(usage) ?? []);
    return stated.length > 0 ? stated.reduce((sum, one) => sum + one, 0) : null;
  };
  const cost = total(({ costNano }) => costNano);
  return {
    id: uuidOf(run.name, 'job'),
    started_at: run.createdAt,
    updated_at: ends,
    finished_at: ends,
    n_total_trials: planned,
    stats: {
      n_completed_trials: written.length,
      n_errored_trials: errored.length,
      n_running_trials: 0,
      n_pending_trials: planned - written.length,
      n_cancelled_trials: written.filter(({ exception }) => exception === CANCELLED).length,
      n_retries: 0,
      n_input_tokens: total(({ input, cacheRead }) => input + cacheRead),
      n_cache_tokens: total(({ cacheRead }) => cacheRead),
      n_output_tokens: total(({ output }) => output),
      cost_usd: cost === null ? null : cost / 1e9,
      evals: Object.fromEntries(
        [...Map.groupBy(written, (one) => one.eval)].map(([name, of]) => [name, evalOf(of)]),
      ),
    },
  };
}

/** Trials without a valid reward are in no number of Harbor's. */
function evalOf(trials: readonly Written[]): Json {
  const measured = trials.filter(({ reward }) => reward !== null);
  const byReward = Map.groupBy(measured, ({ reward }) =>
    String(Number.isInteger(reward) ? `${reward}.0` : reward),
  );
  const failed = trials.filter(({ exception }) => exception !== null);
  const names = (group: readonly Written[]) => group.map(({ name }) => name);
  const sum = measured.reduce((all, { reward }) => all + reward!, 0);
  return {
    n_trials: measured.length,
    n_errors: failed.length,
    metrics: measured.length === 0 ? [] : [{ mean: sum / measured.length }],
    pass_at_k: passAtK(measured),
    reward_stats:
      measured.length === 0
        ? {}
        : { reward: Object.fromEntries([...byReward].map(([value, group]) => [value, names(group)])) },
    exception_stats: Object.fromEntries(
      [...Map.groupBy(failed, ({ exception }) => exception!)].map(([type, group]) => [type, names(group)]),
    ),
  };
}

/** The pass@k as Harbor computes it: where every reward is 0 or 1, for 2, 4, 8, … and 5, 10, … up to the fewest trials of a task. */
function passAtK(measured: readonly Written[]): Record<string, number> {
  if (measured.length === 0 || measured.some(({ reward }) => reward !== 0 && reward !== 1)) return {};
  const tasks = [...Map.groupBy(measured, ({ task }) => task).values()].map((of) => ({
    n: of.length,
    solved: of.filter(({ reward }) => reward === 1).length,
  }));
  const most = tasks.reduce((least, { n }) => Math.min(least, n), Number.POSITIVE_INFINITY);
  const ks = Array.from({ length: most }, (_, at) => at + 1).filter(
    (k) => k % 5 === 0 || (k > 1 && (k & (k - 1)) === 0),
  );
  const passed = ({ n, solved }: (typeof tasks)[number], k: number): number => {
    if (n - solved < k) return 1;
    return 1 - Array.from({ length: k }, (_, i) => (n - solved - i) / (n - i)).reduce((a, b) => a * b, 1);
  };
  return Object.fromEntries(
    ks.map((k) => [k, tasks.reduce((sum, task) => sum + passed(task, k), 0) / tasks.length]),
  );
}
