/** One verification: in the agent's end state, or in a container of its own that gets the files the task names. Its tests run with a deadline, and leave a reward. */
import type { ContainerNeeds } from '../../base/containerNeeds.ts';
import { isRecord } from '../../base/isRecord.ts';
import { shellWord } from '../../base/text/shellWord.ts';
import { type Instance, imageOf } from '../../dataset/instance.ts';
import {
  type CommandResult,
  type Environment,
  type ExecuteOptions,
  FilesTooLargeError,
  type PlacedFile,
  type SeenWrite,
} from '../../environment/environment.ts';
import { few, finding, type PatchDoubt } from '../../grading/doubts/patchDoubts.ts';
import {
  type EvaluationResult,
  type GradeRequest,
  type GradingEnd,
  type GradingFrame,
  inFreshContainer,
  type RunLog,
} from '../../grading/gradingFrame.ts';
import { withGiven } from '../../grading/judge.ts';
import {
  applyPatch,
  commandWithin,
  isPastDeadline,
  OUTSIDE_S,
  PATCH_PATH,
} from '../../grading/patchAndTests.ts';
import { placedFiles, taskFiles } from '../taskFiles.ts';
import type { HarborTask } from './readTask.ts';
import { readTask } from './readTask.ts';

export interface Wanted {
  readonly instance: Instance;
  /** With the verifier and the artifacts that count. */
  readonly task: HarborTask;
  /** Below the task, in the order in which they are put in: the later ones go over the earlier. */
  readonly testFolders: readonly string[];
  /** Where it begins: the agent's end state, else the task's own image. */
  readonly image: string;
  readonly specHash: string;
  readonly harness: GradingFrame['harness'];
}

const TESTS_FOLDER = '/tests';
const TEST_SCRIPT = `${TESTS_FOLDER}/test.sh`;
const LOGS = '/logs/verifier';
const PATCH_TIMEOUT_S = 600;
const PREPARE_TIMEOUT_S = 120;
/** Beside the tests: the start, the collection, the files. */
const AROUND_S = 1800;

/** Harbor lets the image's ENTRYPOINT run, and gives it this to do: its docker-compose-base.yaml replaces the CMD alone. */
const HARBOR_COMMAND = ['sh', '-c', 'sleep infinity'] as const;

const roomNeeds = ({ cpus, memory_mb, storage_mb, gpus }: HarborTask['room']): ContainerNeeds => ({
  cpus,
  gpus,
  memoryMb: memory_mb,
  diskMb: storage_mb,
});

/** Of the container that the agent works in and leaves, and of the one that its end state is judged in. */
export const mainNeeds = ({
  room,
  env,
  variables,
  workdir,
  entry,
  services,
}: HarborTask): ContainerNeeds => ({
  ...roomNeeds(room),
  env,
  variables,
  cwd: workdir ?? 'image',
  entryArguments: entry?.command ?? HARBOR_COMMAND,
  ...(entry?.program && { entryProgram: entry.program }),
  ...(entry && { entryAlone: true }),
  ...(services && { services }),
});

/** Begins where the agent's end state is: as it worked, with the network of the verifier. */
export function verifierFrame(
  { instance, task, image, specHash, harness }: Omit<Wanted, 'testFolders'>,
  request: GradeRequest,
): GradingFrame {
  const { verifier } = task;
  const network = verifier.separate ? 'none' : verifier.network;
  const lifetimeS = verifier.timeout_s + AROUND_S;
  return {
    instanceId: instance.instance_id,
    image,
    script: TEST_SCRIPT,
    harness,
    specHash,
    request,
    runs: true,
    container: { ...mainNeeds(task), user: task.user ?? 'image', lifetimeS, network, verifies: true },
  };
}

/** A grading that cannot begin. */
export async function ungradable(frame: GradingFrame, errorMessage: string): Promise<EvaluationResult> {
  const nothing = await inFreshContainer({ ...frame, runs: false }, async () => ({ outcome: 'ungradable' }));
  return { ...nothing, outcome: 'ungradable', errorMessage };
}

/**
 * The verdict, beside what the agent changed of the programs and libraries that its tests run: with the image's own put back they say whether
 * such a change made the reward, or took it away.
 */
export async function verification(wanted: Wanted, request: GradeRequest): Promise<EvaluationResult> {
  const { instance, task } = wanted;
  const found = await verifiedOnce(wanted, request);
  const { outcome, repeatAlone, engineLost } = found;
  if (request.work === undefined || engineLost || outcome === 'ungradable') return found;
  // It is repeated first; what it is then counts.
  if (outcome !== 'resolved' && repeatAlone && !request.alone) return found;
  const changes = await request.factory.systemChanges?.(request.work).catch(() => undefined);
  if (!changes) return found;
  const named = namesIn(testsOf(wanted));
  const paths = [
    ...[...changes.changed, ...changes.before],
    ...changes.small.filter((path) => named.has(path.slice(path.lastIndexOf('/') + 1))),
  ];
  if (paths.length === 0 && !changes.more) return found;
  const touched = (strict: boolean, says: string): EvaluationResult => ({
    ...found,
    resolvedStrict: found.resolvedStrict && !strict,
    suspicion: [
      ...found.suspicion,
      { ...finding('touches_verifier', says, few(paths), strict), inferred: true },
    ],
  });
  // A verifier of its own runs nothing of the agent's container.
  if (outcome === 'unresolved' || (outcome === 'resolved' && task.verifier.separate))
    return touched(false, CHANGED);
  if (changes.more)
    return touched(outcome === 'resolved', `${CHANGED}, too much to put the image's own back`);
  const own = await verifiedOnce(wanted, request, { image: imageOf(instance), paths });
  if (own.engineLost) return own;
  const runLog = [...found.runLog, ...own.runLog];
  const durationMs = found.durationMs + own.durationMs;
  if (outcome === 'resolved')
    return own.outcome === 'resolved'
      ? { ...touched(false, `${CHANGED}; with the image's own the reward is the same`), runLog, durationMs }
      : { ...touched(true, `${CHANGED}; with the image's own the tests do not pass`), runLog, durationMs };
  if (own.reward === undefined)
    return {
      ...touched(false, `${CHANGED}; with the image's own there is no reward either`),
      runLog,
      durationMs,
    };
  const says = `${CHANGED}: with that the tests leave no reward, with the image's own they do`;
  return {
    ...touched(true, says),
    runLog,
    durationMs,
    // As missing it would be out of the count, and whoever worked there chose that.
    outcome: 'invalid',
    resolved: false,
    resolvedStrict: false,
    infraReason: null,
    repeatAlone: false,
    errorMessage: `${found.errorMessage ?? instance.instance_id}; the agent changed ${few(paths)}, and with the image's own the tests leave a reward`,
  };
}

const CHANGED = 'the agent changed programs or libraries of the image that the tests run';

/** Words that may name a program. */
const namesIn = (tests: readonly PlacedFile[]): ReadonlySet<string> =>
  new Set(
    tests
      .filter(({ path }) => path.endsWith('.sh'))
      .flatMap(
        ({ content }) =>
          Buffer.from(content)
            .toString('utf8')
            .match(/[\w.+-]{1,64}/g) ?? [],
      ),
  );

function testsOf({ task, testFolders }: Wanted): PlacedFile[] {
  const placed = testFolders.flatMap((part) => placedFiles(TESTS_FOLDER, taskFiles(task.folder, part)));
  const started = placed.map((file) =>
    file.path === TEST_SCRIPT ? { ...file, mode: file.mode | 0o111 } : file,
  );
  return [...new Map(started.map((file) => [file.path, file])).values()];
}

async function verifiedOnce(
  wanted: Wanted,
  request: GradeRequest,
  putBack?: GradingFrame['putBack'],
): Promise<EvaluationResult> {
  const { instance, task } = wanted;
  const id = instance.instance_id;
  const frame = { ...verifierFrame(wanted, request), putBack };
  const now = readTask(task.folder);
  // The tests as they were when the run began.
  if (now.refused !== undefined || now.hash !== task.files_sha256)
    return ungradable(
      frame,
      `${id}: the folder of its task has changed or is gone since the run began: ${task.folder}`,
    );
  const lacking = lackedBy(task, request);
  if (lacking !== undefined)
    return ungradable(frame, `${id}: ${lacking}: allow it with suite.env, or name a model in suite.judge`);
  const tests = testsOf(wanted);
  const { separate, collect, network, timeout_s } = task.verifier;
  let given: readonly PlacedFile[] | undefined;
  const shared = await inFreshContainer(frame, async (environment, log) => {
    const failed = await applied(environment, log, id, request);
    if (failed) return failed;
    if (separate || collect.length > 0) await runCollectCommands(environment, log, id, task, request.signal);
    if (!separate) return verify(environment, log, id, task.verifier, tests, request);
    const files = await collected(environment, log, id, task);
    if ('outcome' in files) return files;
    given = files;
    return { outcome: 'unresolved' };
  });
  if (!separate || !given) return shared;
  // Two containers, one after the other: the verifier never sees the agent's.
  const files = given;
  const { room, env, variables, workdir: cwd = 'image' } = separate;
  const lifetimeS = timeout_s + AROUND_S;
  const container = {
    ...roomNeeds(room),
    ...{ env, variables, cwd, network, lifetimeS, user: 'image', verifies: true },
    entryArguments: HARBOR_COMMAND,
  };
  const apart = { ...frame, image: separate.image, container, putBack: undefined };
  return inFreshContainer(apart, async (environment, log) => {
    await environment.putFiles?.(files);
    return verify(environment, log, id, task.verifier, separate.bundled ? undefined : tests, request);
  });
}

/** A variable that nobody gives, as a clause: without it its tests would say something else. */
function lackedBy({ variables, env, verifier }: HarborTask, { given }: GradeRequest): string | undefined {
  const { separate } = verifier;
  const ofTests = [verifier, ...(separate ? [separate] : [])].flatMap((one) =>
    Object.entries(one.variables ?? {}).filter(
      ([key, name]) => !Object.hasOwn(one.env, key) && !given?.judge?.serves(name),
    ),
  );
  const ofTask = Object.entries(variables ?? {}).filter(([key]) => !Object.hasOwn(env, key));
  const lacks = [...ofTask, ...ofTests].find(([, name]) => !Object.hasOwn(given?.variables ?? {}, name));
  return lacks && `it wants $${lacks[1]} of this machine, which nobody gives it`;
}

/** A prediction from a file: its patch is all that is known of the work. */
async function applied(
  environment: Environment,
  log: RunLog,
  id: string,
  { patch, work, signal }: GradeRequest,
): Promise<GradingEnd | undefined> {
  if (work !== undefined || !patch) return undefined;
  await environment.putFile(PATCH_PATH, patch);
  const { cwd } = environment.templateVars();
  const at = { cwd: typeof cwd === 'string' ? cwd : '/', timeoutS: PATCH_TIMEOUT_S, signal };
  const done = await applyPatch({ ...environment, ...environment.as?.('root') }, 'v5', at);
  if (done.method !== null) return undefined;
  log.info(`the patch of ${id} does not apply:\n${done.output}`);
  return {
    outcome: 'apply_failed',
    errorMessage: `${id}: the patch does not apply. Last output: ${done.output.trim().slice(-2000)}`,
  };
}

/** Harbor runs a command as the user that the task names for it, else as that of the container. */
export function executeAs(
  environment: Environment,
  user: string | undefined,
  command: string,
  options: ExecuteOptions,
): Promise<CommandResult> {
  if (user === undefined) return environment.execute(command, options);
  if (environment.as) return environment.as(user).execute(command, options);
  // Where a process cannot be started as somebody else, root is who runs.
  const isRoot = user === 'root' || user === '0';
  return environment.execute(
    isRoot ? command : `su -s /bin/sh -c ${shellWord(command)} ${shellWord(user)}`,
    options,
  );
}

// What a verifier of its own gets from the agent's container: the files that the task names, after its own commands have made them.

/** Always collected, as Harbor does. */
const ARTIFACTS = '/logs/artifacts';
const MAX_BYTES = 512 * 2 ** 20;

/** The commands of `[[verifier.collect]]`, in the container that the agent left. */
async function runCollectCommands(
  environment: Environment,
  log: RunLog,
  id: string,
  task: HarborTask,
  signal: AbortSignal | undefined,
): Promise<void> {
  await executeAs(environment, 'root', `mkdir -p ${ARTIFACTS} && chmod 777 ${ARTIFACTS}`, {
    cwd: '/',
    signal,
  });
  for (const { command, timeout_s, user } of task.verifier.collect) {
    const done = await executeAs(environment, user, command, { timeoutS: timeout_s, signal });
    // The verifier judges what is there: Harbor goes on too.
    if (done.exitCode !== 0)
      log.warn(`a collect command of ${id} ended with ${done.exitCode}: ${done.output.slice(-400).trim()}`);
  }
}

const isLeftOut = (path: string, source: string, exclude: readonly string[]): boolean => {
  const below = path.slice(source.length).split('/').filter(Boolean);
  return exclude.some((name) => below.includes(name.replace(/^\.\//, '')));
};

async function collected(
  environment: Environment,
  log: RunLog,
  id: string,
  task: HarborTask,
): Promise<readonly PlacedFile[] | GradingEnd> {
  const files = new Map<string, PlacedFile>();
  try {
    for (const { source, exclude } of [{ source: ARTIFACTS, exclude: [] }, ...task.artifacts])
      for (const file of (await environment.getFiles?.(source, MAX_BYTES)) ?? [])
        if (!isLeftOut(file.path, source, exclude)) files.set(file.path, file);
  } catch (error) {
    if (!(error instanceof FilesTooLargeError)) throw error;
    // Whoever worked in the container chose that.
    const errorMessage = `${id}: ${error.message}, which is more than a verifier is given`;
    return { outcome: 'invalid', resolved: false, resolvedStrict: false, errorMessage };
  }
  log.info(`${files.size} files of ${id} go to its verifier: ${[...files.keys()].slice(0, 20).join(', ')}`);
  return [...files.values()];
}

type VerifierRun = Pick<HarborTask['verifier'], 'timeout_s' | 'env' | 'variables' | 'user' | 'separate'>;

/** The tests in a started container; none where the image brings them. */
export async function verify(
  environment: Environment,
  log: RunLog,
  id: string,
  verifier: VerifierRun,
  tests: readonly PlacedFile[] | undefined,
  request: Pick<GradeRequest, 'patch' | 'signal' | 'given'>,
): Promise<GradingEnd> {
  // What the agent left where the tests go is no test, and what it wrote as a reward is no reward.
  const own = tests ? ` ${TESTS_FOLDER}` : '';
  const starts = tests ? '' : ` && { chmod +x ${TEST_SCRIPT} 2>/dev/null || :; }`;
  const ready = await executeAs(
    environment,
    'root',
    `rm -rf ${LOGS}${own} && mkdir -p ${LOGS} /logs/agent /logs/artifacts${own} && chmod 777 ${LOGS}${starts}`,
    { cwd: '/', timeoutS: PREPARE_TIMEOUT_S, signal: request.signal },
  );
  if (ready.exitCode !== 0)
    return {
      outcome: 'infra',
      infraReason: 'verifier_setup',
      errorMessage: `${id}: the folders of the verifier could not be made: ${ready.output.slice(-400).trim()}`,
    };
  const wanted = { ...verifier.separate?.variables, ...verifier.variables };
  const run = () =>
    withGiven(environment, request.given, wanted, { id, log }, (given) =>
      runTests(environment, log, id, { ...verifier, env: { ...verifier.env, ...given } }, request),
    );
  if (!environment.watchWrites) {
    if (tests) await environment.putFiles?.(tests);
    return run();
  }
  const watching = await environment.watchWrites([TESTS_FOLDER, LOGS]);
  const watch = 'refused' in watching ? undefined : watching;
  try {
    if (tests) await environment.putFiles?.(tests);
    await watch?.again();
    const early = tests && (await changedMeanwhile(environment, tests));
    const end = await run();
    const doubts =
      'refused' in watching
        ? [finding('not_watched', NOT_WATCHED, watching.refused, false)]
        : writeDoubts(await watching.end(), early);
    return {
      ...end,
      suspicion: [...(end.suspicion ?? []), ...doubts.map((doubt) => ({ ...doubt, inferred: true }))],
      ...(doubts.some(({ strict }) => strict) && { resolvedStrict: false }),
    };
  } finally {
    await watch?.end();
  }
}

/** Between their arrival and the watch of new folders somebody may have been faster. */
async function changedMeanwhile(
  environment: Environment,
  tests: readonly PlacedFile[],
): Promise<string | undefined> {
  const wanted = new Map(tests.map(({ path, content }) => [path, Buffer.from(content)]));
  const bytes = tests.reduce((sum, { content }) => sum + content.length, 0);
  const there = (await environment.getFiles?.(TESTS_FOLDER, 2 * bytes + 2 ** 20)) ?? [];
  const other = there.find(({ path, content }) => !wanted.get(path)?.equals(content));
  return other?.path ?? (there.length === tests.length ? undefined : TESTS_FOLDER);
}

const NOT_WATCHED =
  'what the agent left running could reach the tests and their reward, and nobody could watch it';

/** What ran beside the tests may be asked by them, and has no business where they and their reward are. */
function writeDoubts(written: readonly SeenWrite[] | undefined, early: string | undefined): PatchDoubt[] {
  if (written === undefined)
    return [
      finding(
        'watch_ended',
        'who writes where the tests are was watched, and somebody ended that',
        'the watch',
      ),
    ];
  const told = (wrote: readonly SeenWrite[]) =>
    few([...new Set(wrote.map(({ program, path }) => `${program} wrote ${path}`))]);
  // An orphan of the tests may write a log; a reward and a test are the verifier's alone.
  const own = ({ path }: SeenWrite) => path.startsWith(TESTS_FOLDER) || path.startsWith(`${LOGS}/reward.`);
  const left = written.filter((one) => one.by === 'left' || own(one));
  const unknown = written.filter((one) => !left.includes(one));
  return [
    ...(early === undefined
      ? []
      : [finding('left_process_wrote', 'the tests were changed as they arrived', early)]),
    ...(left.length === 0
      ? []
      : [
          finding(
            'left_process_wrote',
            'what was left running wrote where the tests or their reward are',
            told(left),
          ),
        ]),
    ...(unknown.length === 0
      ? []
      : [
          finding(
            'unknown_process_wrote',
            'a process that nobody could place wrote beside the reward',
            told(unknown),
            false,
          ),
        ]),
  ];
}

async function runTests(
  environment: Environment,
  log: RunLog,
  id: string,
  { timeout_s: timeoutS, env, user }: Pick<HarborTask['verifier'], 'timeout_s' | 'env' | 'user'>,
  { patch, signal }: Pick<GradeRequest, 'patch' | 'signal'>,
): Promise<GradingEnd> {
  log.info(`Running ${TEST_SCRIPT} of ${id}...`);
  const seconds = Math.ceil(timeoutS);
  const run = await executeAs(environment, user, commandWithin(seconds, TEST_SCRIPT), {
    env,
    signal,
    timeoutS: timeoutS > 0 ? timeoutS + OUTSIDE_S : 0,
  });
  log.info(`${TEST_SCRIPT} ended with exit code ${run.exitCode}`);
  const base = { log: run.output, exitCode: run.exitCode, repeatAlone: run.exitCode === -1 && !run.timedOut };
  if (isPastDeadline(run, seconds))
    return {
      ...base,
      outcome: 'timeout',
      infraReason: 'tests_timed_out',
      repeatAlone: true,
      errorMessage: `${id}: the tests did not end within the ${timeoutS} s that task.toml gives its verifier`,
    };
  const read = await rewardOf(environment);
  if (!read.ok) {
    log.error(`${id}: ${read.message}`);
    const last = run.output.trimEnd().slice(-400);
    return {
      ...base,
      outcome: 'infra',
      infraReason: run.oomKilled ? 'oom' : 'no_reward',
      errorMessage: `${id}: ${read.message}; the tests ended with exit code ${run.exitCode}. ${last === '' ? 'They printed nothing' : `Their last output: ${last}`}`,
    };
  }
  const { reward, rewards } = read.found;
  const resolved = reward >= 1;
  log.info(`Result for ${id}: reward ${reward}, resolved: ${resolved ? 'True' : 'False'}`);
  // The reward does not come from the log.
  const truncated = {
    rule: 'log_truncated',
    says: 'the middle of the log is missing',
    evidence: `${run.omittedBytes} bytes did not fit`,
    strict: false,
    inferred: false,
  };
  return {
    ...base,
    outcome: resolved ? 'resolved' : 'unresolved',
    resolved,
    reward,
    rewards,
    suspicion: run.omittedBytes > 0 ? [truncated] : [],
    resolvedStrict: resolved,
    report: reportOf(id, patch, resolved),
  };
}

/** What the harness would write: a report knows a patch alone. */
export const reportOf = (id: string, patch: string | null, resolved: boolean) => ({
  [id]: {
    patch_is_None: patch === null,
    patch_exists: patch !== null && patch !== '',
    patch_successfully_applied: true,
    resolved,
  },
});

// The reward that a verifier wrote: reward.json before reward.txt, as Harbor reads them.

interface Reward {
  /** Between 0 and 1. */
  readonly reward: number;
  /** Everything that was written, by name. */
  readonly rewards: Readonly<Record<string, number>>;
}
type ReadReward =
  | { readonly ok: true; readonly found: Reward }
  | { readonly ok: false; readonly message: string };

/** A file of one number, or of some names. */
const MAX_REWARD_BYTES = 2 ** 20;

async function rewardOf(environment: Environment): Promise<ReadReward> {
  try {
    for (const [name, read] of [
      ['reward.json', rewardFromJson],
      ['reward.txt', rewardFromText],
    ] as const) {
      const path = `${LOGS}/${name}`;
      const found = (await environment.getFiles?.(path, MAX_REWARD_BYTES)) ?? [];
      // Of a folder of that name come the files below it, which are no reward.
      const file = found.find((one) => one.path === path);
      if (file) return read(Buffer.from(file.content).toString('utf8'));
    }
    return no(`the tests wrote neither ${LOGS}/reward.txt nor ${LOGS}/reward.json`);
  } catch (error) {
    if (error instanceof FilesTooLargeError) return no(error.message);
    throw error;
  }
}

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
