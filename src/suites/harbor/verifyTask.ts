/** The verifier of a task in a started container: its tests go in, run with a deadline, and leave a reward. */
import { isRecord } from '../../base/isRecord.ts';
import {
  type CommandResult,
  type Environment,
  FilesTooLargeError,
  type PlacedFile,
} from '../../environment/environment.ts';
import type { GradeSuspicion } from '../../grading/doubts/doubts.ts';
import type { GradingEnd, RunLog } from '../../grading/gradingFrame.ts';
export const TESTS_FOLDER = '/tests';
const LOGS = '/logs/verifier';
const KILL_AFTER_S = 5;
const OUTER_GRACE_S = 15;
const PREPARE_TIMEOUT_S = 120;
/** A file of one number, or of some names. */
const MAX_REWARD_BYTES = 2 ** 20;
const DEADLINE_CODES: ReadonlySet<number> = new Set([124, 137]);

export const TEST_SCRIPT = `${TESTS_FOLDER}/test.sh`;

/** A command as another user of the container; root is who runs otherwise. */
export const asUser = (command: string, user: string | undefined): string =>
  user === undefined || user === 'root' || user === '0'
    ? command
    : `su -s /bin/sh -c ${shellWord(command)} ${shellWord(user)}`;

const shellWord = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

export interface VerifierResult {
  readonly instanceId: string;
  readonly timeoutS: number;
  /** Undefined: the image brings them. */
  readonly tests: readonly PlacedFile[] | undefined;
  readonly env: Readonly<Record<string, string>>;
  /** Who runs them; undefined for root. */
  readonly user: string | undefined;
  readonly patch: string | null;
  readonly signal?: AbortSignal | undefined;
}

/** What the agent left where the tests go is no test, and what it wrote as a reward is no reward. */
const prepared = (fresh: boolean): string =>
  `rm -rf ${LOGS}${fresh ? ` ${TESTS_FOLDER}` : ''} && mkdir -p ${LOGS} /logs/agent /logs/artifacts && chmod 777 ${LOGS}`;

/** `timeout` is looked up because small images lack it; then the outer deadline alone holds. */
function commandFor(timeoutS: number, user: string | undefined): string {
  const script = asUser(TEST_SCRIPT, user);
  const within = `timeout -k ${KILL_AFTER_S} ${Math.ceil(timeoutS)} ${script}`;
  return [
    `chmod +x ${TEST_SCRIPT} 2>/dev/null`,
    timeoutS > 0
      ? `if command -v timeout >/dev/null 2>&1; then exec ${within} 2>&1; else exec ${script} 2>&1; fi`
      : `exec ${script} 2>&1`,
  ].join('\n');
}

async function textOf(environment: Environment, path: string): Promise<string | undefined> {
  const found = (await environment.getFiles?.(path, MAX_REWARD_BYTES)) ?? [];
  // Of a folder of that name come the files below it, which are no reward.
  const file = found.find((one) => one.path === path);
  return file && Buffer.from(file.content).toString('utf8');
}

async function rewardOf(environment: Environment): Promise<ReadReward> {
  try {
    const json = await textOf(environment, `${LOGS}/reward.json`);
    if (json !== undefined) return rewardFromJson(json);
    const text = await textOf(environment, `${LOGS}/reward.txt`);
    if (text !== undefined) return rewardFromText(text);
    return { ok: false, message: `the tests wrote neither ${LOGS}/reward.txt nor ${LOGS}/reward.json` };
  } catch (error) {
    if (error instanceof FilesTooLargeError) return { ok: false, message: error.message };
    throw error;
  }
}

export async function verify(
  environment: Environment,
  log: RunLog,
  wanted: VerifierResult,
): Promise<GradingEnd> {
  const { instanceId, timeoutS, tests, env, signal } = wanted;
  const ready = await environment.execute(prepared(tests !== undefined), {
    ...{ cwd: '/', timeoutS: PREPARE_TIMEOUT_S, signal },
  });
  if (ready.exitCode !== 0)
    return {
      ...{ outcome: 'infra', infraReason: 'verifier_setup' },
      errorMessage: `${instanceId}: the folders of the verifier could not be made: ${ready.output.slice(-400).trim()}`,
    };
  if (tests) await environment.putFiles?.(tests);
  log.info(`Running ${TEST_SCRIPT} of ${instanceId}...`);
  const run = await environment.execute(commandFor(timeoutS, wanted.user), {
    ...{ env, signal, timeoutS: timeoutS > 0 ? timeoutS + KILL_AFTER_S + OUTER_GRACE_S : 0 },
  });
  log.info(`${TEST_SCRIPT} ended with exit code ${run.exitCode}`);
  const base = { log: run.output, exitCode: run.exitCode, repeatAlone: run.exitCode === -1 && !run.timedOut };
  if (isTimeout(run, timeoutS))
    return {
      ...{ ...base, outcome: 'timeout', infraReason: 'tests_timed_out', repeatAlone: true },
      errorMessage: `${instanceId}: the tests did not end within the ${timeoutS} s that task.toml gives its verifier`,
    };
  return { ...base, ...verdictOf(wanted, run, await rewardOf(environment), log) };
}

/** The reward does not come from the log. */
const logTruncated = (bytes: number): GradeSuspicion => ({
  rule: 'log_truncated',
  says: 'the middle of the log is missing',
  evidence: `${bytes} bytes did not fit`,
  ...{ strict: false, inferred: false },
});

const isTimeout = (run: CommandResult, timeoutS: number): boolean =>
  run.timedOut ||
  (timeoutS > 0 && DEADLINE_CODES.has(run.exitCode) && run.durationMs >= Math.ceil(timeoutS) * 1000);

function verdictOf(
  { instanceId, patch }: VerifierResult,
  run: CommandResult,
  read: ReadReward,
  log: RunLog,
): GradingEnd {
  if (!read.ok) {
    log.error(`${instanceId}: ${read.message}`);
    const last = run.output.trimEnd().slice(-400);
    return {
      ...{ outcome: 'infra', infraReason: run.oomKilled ? 'oom' : 'no_reward' },
      errorMessage: `${instanceId}: ${read.message}; the tests ended with exit code ${run.exitCode}. ${last === '' ? 'They printed nothing' : `Their last output: ${last}`}`,
    };
  }
  const { reward, rewards } = read.found;
  const resolved = reward >= 1;
  log.info(`Result for ${instanceId}: reward ${reward}, resolved: ${resolved ? 'True' : 'False'}`);
  const suspicion = run.omittedBytes > 0 ? [logTruncated(run.omittedBytes)] : [];
  return {
    ...{ outcome: resolved ? 'resolved' : 'unresolved', resolved, reward, rewards, suspicion },
    resolvedStrict: resolved,
    report: {
      [instanceId]: {
        patch_is_None: patch === null,
        patch_exists: patch !== null && patch !== '',
        patch_successfully_applied: true,
        resolved,
      },
    },
  };
}

// The reward that a verifier wrote: reward.json before reward.txt, as Harbor reads them. Pure.

interface Reward {
  /** Between 0 and 1. */
  readonly reward: number;
  /** Everything that was written, by name. */
  readonly rewards: Readonly<Record<string, number>>;
}
type ReadReward =
  | { readonly ok: true; readonly found: Reward }
  | { readonly ok: false; readonly message: string };

const MAIN = 'reward';

const no = (message: string): ReadReward => ({ ok: false, message });
const shown = (value: unknown): string => JSON.stringify(value)?.slice(0, 80) ?? 'nothing';
const inRange = (value: number): boolean => value >= 0 && value <= 1;

/** The one called "reward" counts, else the only one, else the mean of all. Others may be counts of anything. */
export function mainOf(rewards: Readonly<Record<string, number>>): ReadReward {
  const named = Object.hasOwn(rewards, MAIN) ? { [MAIN]: rewards[MAIN]! } : rewards;
  const bad = Object.entries(named).find(([, value]) => !inRange(value));
  if (bad) return no(`the reward "${bad[0]}" is ${bad[1]}, which is not between 0 and 1`);
  const values = Object.values(named);
  return {
    ok: true,
    found: { reward: values.reduce((sum, value) => sum + value, 0) / values.length, rewards },
  };
}

/** Python writes NaN and Infinity, which are no JSON: they are refused as what they are. */
export function rewardFromJson(text: string): ReadReward {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return no(`reward.json is not JSON: ${shown(text)}`);
  }
  const entries = isRecord(parsed) ? Object.entries(parsed) : [[MAIN, parsed] as const];
  if (entries.length === 0) return no('reward.json names no reward');
  const rewards: Record<string, number> = Object.create(null) as Record<string, number>;
  for (const [name, value] of entries) {
    // True and false are numbers to Python.
    const number = typeof value === 'boolean' ? Number(value) : value;
    if (typeof number !== 'number' || !Number.isFinite(number))
      return no(`the reward ${shown(name)} of reward.json is ${shown(value)}, which is not a number`);
    rewards[name] = number;
  }
  return mainOf({ ...rewards });
}

/** No other spellings of numbers, such as 0x1. */
const NUMBER = /^[\d.eE+-]+$/;

export function rewardFromText(text: string): ReadReward {
  const trimmed = text.trim();
  if (trimmed === '') return no('reward.txt is empty');
  const value = NUMBER.test(trimmed) ? Number(trimmed) : Number.NaN;
  if (!Number.isFinite(value)) return no(`reward.txt holds ${shown(trimmed)}, which is not a number`);
  return mainOf({ [MAIN]: value });
}
