/**
 * One verification: in the agent's end state, or in a container of its own that gets the files the task names. The task's tests run with a
 * deadline, and leave a reward.
 */
import { posix } from 'node:path';
import { compact } from '../../base/compact.ts';
import type { ContainerNeeds } from '../../base/containerNeeds.ts';
import { isRecord } from '../../base/isRecord.ts';
import { shellWord } from '../../base/text/shellWord.ts';
import { type Instance, imageOf } from '../../dataset/instance.ts';
import {
  type CommandResult,
  type Environment,
  EnvironmentError,
  type ExecuteOptions,
  FilesTooLargeError,
  type PlacedFile,
  type SeenWrite,
  type SystemChanges,
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
import { placedFiles } from '../taskFiles.ts';
import { harborFiles } from './harborIgnore.ts';
import type { HarborTask } from './readTask.ts';
import { readTask } from './readTask.ts';

export interface Wanted {
  readonly instance: Instance;
  /** The task with the verifier and the artifacts that count. */
  readonly task: HarborTask;
  /** The folders below the task, in the order in which they are put in: the later ones go over the earlier. */
  readonly testFolders: readonly string[];
  /** The image of its beginning: the agent's end state, else the task's own. */
  readonly image: string;
  readonly specHash: string;
  readonly harness: GradingFrame['harness'];
}

const TESTS_FOLDER = '/tests';
const TEST_SCRIPT = `${TESTS_FOLDER}/test.sh`;
const LOGS_FOLDER = '/logs';
const LOGS = '/logs/verifier';
const AGENT_LOGS = '/logs/agent';
/** Always collected, as Harbor does. */
const ARTIFACTS = '/logs/artifacts';
/** Every user may write there, as in Harbor, while the agent works and while the tests run. */
export const OPEN_FOLDERS = [LOGS, AGENT_LOGS, ARTIFACTS] as const;
const TRAJECTORY = `${AGENT_LOGS}/trajectory.json`;
const PATCH_TIMEOUT_S = 600;
const PREPARE_TIMEOUT_S = 120;
/** The time for work beside the tests: the start, the collection, the files. */
const AROUND_S = 1800;

/** Harbor lets the image's ENTRYPOINT run, and gives it this to do: its docker-compose-base.yaml replaces the CMD alone. */
const HARBOR_COMMAND = ['sh', '-c', 'sleep infinity'] as const;

const roomNeeds = ({ cpus, memory_mb, storage_mb, gpus }: HarborTask['room']): ContainerNeeds => ({
  cpus,
  gpus,
  memoryMb: memory_mb,
  diskMb: storage_mb,
});

/** The needs of the container that the agent works in and leaves, and of the one that its end state is judged in. */
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
 * The verdict, beside what the agent changed of the programs and libraries that its tests run, and beside what the tests say of the task's own
 * image where they leave no reward here: an agent that broke the verifier has failed it (observed: tests/suites/harbor/brokenVerifier.test.ts).
 */
export async function verification(wanted: Wanted, request: GradeRequest): Promise<EvaluationResult> {
  const { work } = request;
  const changes =
    work === undefined ? undefined : await request.factory.systemChanges(work).catch(() => undefined);
  const found = await verifiedOnce(wanted, request, { changes });
  const { outcome, engineLost, repeatAlone } = found.result;
  if (engineLost || outcome === 'ungradable') return found.result;
  // The grading is repeated first; the second result counts.
  if (!request.alone && outcome !== 'resolved') {
    if (repeatAlone) return found.result;
    if (mayPass(found)) return { ...found.result, repeatAlone: true };
  }
  const judged = changes ? await besideOwnPrograms(wanted, request, found.result, changes) : found.result;
  if (judged.outcome !== 'infra' || judged.engineLost || (work === undefined && !request.patch))
    return judged;
  return besideOwnImage(wanted, request, judged, found);
}

/**
 * The verdict of the tests where the image's own programs and libraries are put back, when the agent had changed some (observed:
 * tests/suites/harbor/touchedVerifier.test.ts).
 */
async function besideOwnPrograms(
  wanted: Wanted,
  request: GradeRequest,
  found: EvaluationResult,
  changes: SystemChanges,
): Promise<EvaluationResult> {
  const { instance, task } = wanted;
  const { outcome } = found;
  const named = namesIn(
    testsOf(wanted)
      .filter(({ path }) => path.endsWith('.sh'))
      .map(({ content }) => content),
  );
  const asked = askedBy(instance, task);
  const words = namesIn([Buffer.from(asked)]);
  const small = changes.small.filter((path) => named.has(posix.basename(path)));
  const all = [...changes.changed, ...changes.before, ...small];
  // A path that a task names (/usr/local/bin/hello, .bashrc) is there on purpose: without it the tests cannot pass.
  const isAsked = (path: string) =>
    small.includes(path) ? asked.includes(path) : OF_SETTINGS.test(path) && words.has(posix.basename(path));
  const paths = all.filter((path) => !isAsked(path));
  if (all.length === 0 && !changes.more) return found;
  const touched = (strict: boolean, says: string): EvaluationResult => ({
    ...found,
    resolvedStrict: found.resolvedStrict && !strict,
    suspicion: [
      ...found.suspicion,
      { ...finding('touches_verifier', says, few(paths.length > 0 ? paths : all), strict), inferred: true },
    ],
  });
  if (paths.length === 0 && !changes.more) return touched(false, `${CHANGED}, which the task names`);
  // A verifier of its own runs nothing of the agent's container.
  if (outcome === 'unresolved' || (outcome === 'resolved' && task.verifier.separate))
    return touched(false, CHANGED);
  if (changes.more)
    return touched(outcome === 'resolved', `${CHANGED}, too much to put the image's own back`);
  const { result: own } = await verifiedOnce(wanted, request, { changes, paths });
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
    // As missing it would be out of the count, and the agent chose that.
    outcome: 'invalid',
    resolved: false,
    resolvedStrict: false,
    infraReason: null,
    repeatAlone: false,
    errorMessage: `${found.errorMessage ?? instance.instance_id}; the agent changed ${few(paths)}, and with the image's own the tests leave a reward`,
  };
}

/** The ways in which tests come to leave no reward that counts (observed: tests/suites/harbor/brokenVerifier.test.ts). */
type Broken =
  /** Nobody can write one: its folder cannot be made. */
  | 'folders'
  /** The folder of all logs was another thing than a folder. */
  | 'replaced'
  /** There is one, and it is none: no number, or one that cannot be. */
  | 'unusable'
  /** The script was ended. */
  | 'signal'
  | 'memory'
  | 'none';

interface Verified {
  readonly result: EvaluationResult;
  readonly broken: Broken | undefined;
}

/** Failures of an environment that did not start, though it did when the agent began, or whose engine answered with an error. */
const UNEXPLAINED: ReadonlySet<string | null> = new Set(['start_failed', 'setup_failed', 'internal_error']);

/** The machine may have caused it: beside other work, or while a registry was away. */
const mayPass = ({ result, broken }: Verified): boolean =>
  result.outcome === 'infra' &&
  (broken === undefined ? UNEXPLAINED.has(result.infraReason) : broken !== 'replaced');

/**
 * Tests that leave no verdict are run once more in the image of the task, where nobody has worked. A failure there too is the task's or the
 * machine's; a failure only in the worked container is the agent's doing, and as missing it would be out of the count.
 */
async function besideOwnImage(
  wanted: Wanted,
  request: GradeRequest,
  found: EvaluationResult,
  { broken }: Verified,
): Promise<EvaluationResult> {
  const { instance } = wanted;
  const id = instance.instance_id;
  const failed = (says: string): EvaluationResult => ({
    ...found,
    outcome: 'unresolved',
    resolved: false,
    resolvedStrict: false,
    reward: 0,
    rewards: { [MAIN]: 0 },
    report: reportOf(id, request.patch, false),
    infraReason: null,
    repeatAlone: false,
    errorMessage: `${found.errorMessage ?? id}; ${says}`,
    suspicion: [
      ...found.suspicion,
      { ...finding('broke_verifier', BROKE, found.errorMessage ?? says), inferred: true },
    ],
  });
  if (broken === 'replaced') return failed('so it has failed');
  if (broken === undefined && !UNEXPLAINED.has(found.infraReason)) return found;
  const { work: _, trajectory: __, ...plain } = request;
  const own = await verifiedOnce({ ...wanted, image: imageOf(instance) }, { ...plain, patch: null }, {});
  if (own.result.engineLost) return own.result;
  const gives = own.result.reward !== undefined;
  const same = broken === undefined || broken === 'none' || own.broken === broken;
  if (!gives && (same || own.broken === undefined)) return found;
  const there = gives ? 'they leave one' : 'that does not happen';
  return {
    ...failed(`in the image of the task, where nobody has worked, ${there}: so it has failed`),
    runLog: [...found.runLog, ...own.result.runLog],
    durationMs: found.durationMs + own.result.durationMs,
  };
}

const BROKE = 'the tests leave no reward with what the agent left, which is its doing: it counts as 0';

const CHANGED = 'the agent changed programs or libraries of the image that the tests run';

/** Words that may name a program. */
const namesIn = (texts: readonly Uint8Array[]): ReadonlySet<string> =>
  new Set(
    texts.flatMap(
      (text) =>
        Buffer.from(text)
          .toString('utf8')
          .match(/[\w.+-]{1,64}/g) ?? [],
    ),
  );

/** Read by shells and the loader, and no program. */
const OF_SETTINGS = /^\/(?:etc|root|home\/[^/]+)\/(?:[^/]+\.d\/)?[^/]+$/;

/** The task's instruction, and its author's solution. */
const askedBy = (instance: Instance, { folder }: HarborTask): string =>
  [
    instance.problem_statement,
    ...placedFiles('/', harborFiles(folder, 'solution')).map(({ content }) =>
      Buffer.from(content).toString('utf8'),
    ),
  ].join('\n');

function testsOf({ task, testFolders }: Wanted): PlacedFile[] {
  const placed = testFolders.flatMap((part) => placedFiles(TESTS_FOLDER, harborFiles(task.folder, part)));
  const started = placed.map((file) =>
    file.path === TEST_SCRIPT ? { ...file, mode: file.mode | 0o111 } : file,
  );
  return [...new Map(started.map((file) => [file.path, file])).values()];
}

/** `paths`: files of the image that are put back. */
async function verifiedOnce(
  wanted: Wanted,
  request: GradeRequest,
  {
    changes,
    paths = [],
  }: { readonly changes?: SystemChanges | undefined; readonly paths?: readonly string[] },
): Promise<Verified> {
  const { instance, task } = wanted;
  const id = instance.instance_id;
  const image = imageOf(instance);
  const emptied = changes?.caches ?? [];
  const putBack = paths.length + emptied.length > 0 ? { image, paths, emptied } : undefined;
  const frame = { ...verifierFrame(wanted, request), putBack };
  const cannot = async (says: string) => ({ result: await ungradable(frame, says), broken: undefined });
  const now = readTask(task.folder);
  // The tests as they were when the run began.
  if (now.refused !== undefined || now.hash !== task.files_sha256)
    return cannot(`${id}: the folder of its task has changed or is gone since the run began: ${task.folder}`);
  const lacking = lackedBy(task, request);
  if (lacking !== undefined)
    return cannot(`${id}: ${lacking}: allow it with suite.env, or name a model in suite.judge`);
  const tests = testsOf(wanted);
  const { separate, collect, network, timeout_s } = task.verifier;
  const touched = changes?.top?.includes(TESTS_FOLDER) ?? true;
  const worked = request.work === undefined && !request.patch ? undefined : { image, touched };
  let broken: Broken | undefined;
  const told = ({ broken: how, otherReward: _, ...end }: VerifierEnd): GradingEnd => {
    broken = how;
    return end;
  };
  let given: readonly PlacedFile[] | undefined;
  const shared = await inFreshContainer(frame, async (environment, log) => {
    const failed = await applied(environment, log, id, request);
    if (failed) return failed;
    if (separate || collect.length > 0) await runCollectCommands(environment, log, id, task, request.signal);
    if (!separate) return told(await verify(environment, log, id, task.verifier, tests, request, worked));
    const files = await collected(environment, log, id, task);
    if ('outcome' in files) return files;
    given = files;
    return { outcome: 'unresolved' };
  });
  if (!separate || !given) return { result: shared, broken };
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
  const result = await inFreshContainer(apart, async (environment, log) => {
    await placeArtifacts(environment, id, task, files, request.signal);
    return told(
      await verify(environment, log, id, task.verifier, separate.bundled ? undefined : tests, request),
    );
  });
  return {
    result: {
      ...result,
      runLog: [...shared.runLog, ...result.runLog],
      durationMs: shared.durationMs + result.durationMs,
    },
    broken,
  };
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
  const root = environment.capabilities.asUsers ? environment.as('root') : environment;
  const done = await applyPatch({ ...environment, ...root }, 'v5', at);
  if (done.method !== null) return undefined;
  log.info(`the patch of ${id} does not apply:\n${done.output}`);
  return {
    outcome: 'apply_failed',
    errorMessage: `${id}: the patch does not apply. Last output: ${done.output.trim().slice(-2000)}`,
  };
}

/** None of a place that hands out no folders. */
const filesIn = async (
  { capabilities, getFiles }: Environment,
  ...of: Parameters<Environment['getFiles']>
): Promise<PlacedFile[]> => (capabilities.readsFolders ? getFiles(...of) : []);

/** Harbor runs a command as the user that the task names for it, else as that of the container. */
export function executeAs(
  environment: Environment,
  user: string | undefined,
  command: string,
  options: ExecuteOptions,
): Promise<CommandResult> {
  if (user === undefined) return environment.execute(command, options);
  if (environment.capabilities.asUsers) return environment.as(user).execute(command, options);
  // Where a process cannot be started as somebody else, root is who runs.
  const isRoot = user === 'root' || user === '0';
  return environment.execute(
    isRoot ? command : `su -s /bin/sh -c ${shellWord(command)} ${shellWord(user)}`,
    options,
  );
}

// The files of the agent's container for a verifier of its own: the files that the task names, after its own commands have made them.

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

/** The archive of a path as the agent left it: links, folders and modes too. */
const sourcesOf = ({ artifacts }: HarborTask) =>
  [{ source: ARTIFACTS, exclude: [] as readonly string[] }, ...artifacts].map(({ source, exclude }) => ({
    source: posix.normalize(source).replace(/(?<=.)\/$/, ''),
    exclude,
  }));

const isAtOrBelow = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder === '/' ? folder : `${folder}/`);

/**
 * A link that leads elsewhere would make a file of the agent's one of the verifier's. Harbor leaves those out too (observed:
 * tests/suites/harbor/brokenVerifier.test.ts).
 */
const leadsOut = ({ path, kind, target = '' }: PlacedFile, source: string): boolean => {
  if (kind === 'hardlink') return !isAtOrBelow(target, source);
  return (
    kind === 'link' &&
    (posix.isAbsolute(target) ||
      path === source ||
      !isAtOrBelow(posix.resolve(posix.dirname(path), target), source))
  );
};

/** The permissions, without those that let a program run as another user. */
const PERMISSIONS = 0o777;

async function collected(
  environment: Environment,
  log: RunLog,
  id: string,
  task: HarborTask,
): Promise<readonly PlacedFile[] | GradingEnd> {
  const files = new Map<string, PlacedFile>();
  const leftOut: string[] = [];
  try {
    for (const { source, exclude } of sourcesOf(task)) {
      // An archive names the first of a file's names in all others. Where that one is left out, the next is the file (observed:
      // tests/suites/harbor/brokenVerifier.test.ts).
      const behind = new Map<string, PlacedFile>();
      for (const named of await filesIn(environment, source, MAX_BYTES, true)) {
        const { path, kind, target = '' } = named;
        if (isLeftOut(path, source, exclude)) {
          behind.set(path, named);
          continue;
        }
        const first = kind === 'hardlink' ? behind.get(target) : undefined;
        if (first) behind.set(target, { ...named, target: path });
        const file = first ? { ...first, path } : named;
        if (leadsOut(file, source)) leftOut.push(path);
        else files.set(path, { ...file, mode: file.mode & PERMISSIONS });
      }
    }
  } catch (error) {
    if (!(error instanceof FilesTooLargeError)) throw error;
    // The agent chose that.
    const errorMessage = `${id}: ${error.message}, which is more than a verifier is given`;
    return { outcome: 'invalid', resolved: false, resolvedStrict: false, errorMessage };
  }
  if (leftOut.length > 0)
    log.warn(`links of ${id} that lead out of what its verifier gets are left out: ${few(leftOut)}`);
  // Only now it is known that the other name of a file comes along.
  const whole = [...files.values()].filter(
    ({ kind, target = '' }) =>
      kind !== 'hardlink' || (files.has(target) && files.get(target)!.kind === undefined),
  );
  log.info(`${whole.length} files of ${id} go to its verifier: ${[...files.keys()].slice(0, 20).join(', ')}`);
  return whole;
}

/** The artifacts go where the tests look for them: in folders of their own, in which the tests' user may write. */
async function placeArtifacts(
  environment: Environment,
  id: string,
  task: HarborTask,
  files: readonly PlacedFile[],
  signal: AbortSignal | undefined,
): Promise<void> {
  const kinds = new Map(files.map(({ path, kind }) => [path, kind ?? 'file']));
  const there = sourcesOf(task).flatMap(({ source }) => {
    const kind = kinds.get(source);
    return kind === undefined ? [] : [{ source, isFolder: kind === 'folder' }];
  });
  const emptied = there.flatMap(({ source, isFolder }) => (isFolder && source !== '/' ? [source] : []));
  const opened = there
    .map(({ source, isFolder }) => (isFolder ? source : posix.dirname(source)))
    .filter((folder) => folder !== '/');
  const inRoot = async (command: string) => {
    const done = await executeAs(environment, 'root', command, {
      cwd: '/',
      timeoutS: PREPARE_TIMEOUT_S,
      signal,
    });
    if (done.exitCode !== 0)
      throw new EnvironmentError(
        'setup_failed',
        `the folders of the artifacts of ${id} could not be made: ${done.output.slice(-400).trim()}`,
      );
  };
  const words = (paths: readonly string[]) => [...new Set(paths)].map(shellWord).join(' ');
  if (opened.length > 0) await inRoot(`${GONE}gone ${words(emptied)} && mkdir -p ${words(opened)}`);
  await environment.putFiles(files);
  if (opened.length > 0) await inRoot(`chmod 777 ${words(opened)}`);
}

type VerifierRun = Pick<HarborTask['verifier'], 'timeout_s' | 'env' | 'variables' | 'user' | 'separate'>;

/** The container of the work: its content at the place of the tests before, and whether that was touched. */
interface Worked {
  readonly image: string;
  readonly touched: boolean;
}
type VerifierEnd = GradingEnd & {
  readonly broken?: Broken;
  /** The reward beside the one that counts. `isNone`: nobody can write it there. */
  readonly otherReward?: { readonly says: string; readonly isNone: boolean };
};

/** The tests in a started container; none where the image brings them. `worked`: absent in one that nobody worked in. */
export async function verify(
  environment: Environment,
  log: RunLog,
  id: string,
  verifier: VerifierRun,
  tests: readonly PlacedFile[] | undefined,
  request: Pick<GradeRequest, 'patch' | 'signal' | 'given' | 'trajectory'>,
  worked?: Worked,
): Promise<VerifierEnd> {
  const cleared = worked !== undefined && (worked.touched || environment.runsBeside);
  const ready = await prepared(environment, id, tests, cleared, request.signal);
  if (ready.broken !== undefined && (ready.broken === 'folders' || worked)) return ready;
  const trajectory = await request.trajectory?.();
  if (trajectory) await environment.putFiles([{ path: TRAJECTORY, content: trajectory, mode: 0o644 }]);
  const wanted = { ...verifier.separate?.variables, ...verifier.variables };
  const run = () =>
    withGiven(environment, request.given, wanted, { id, log }, (given) =>
      runTests(environment, log, id, { ...verifier, env: { ...verifier.env, ...given } }, request),
    );
  const watching = await environment.watchWrites([TESTS_FOLDER, LOGS]);
  const watch = 'refused' in watching ? undefined : watching;
  try {
    const own = cleared && tests ? await environment.putBack(worked.image, TESTS_FOLDER) : undefined;
    if (tests) await environment.putFiles(tests);
    await watch?.again();
    const early =
      tests && environment.runsBeside ? await changedMeanwhile(environment, tests, own === true) : undefined;
    const script = await scriptIn(environment);
    const end = await run();
    const late = await scriptIn(environment);
    const doubts =
      'refused' in watching
        ? [finding('not_watched', NOT_WATCHED, watching.refused, false)]
        : writeDoubts(await watching.end(), {
            early,
            end,
            tests: new Set(tests?.map(({ path }) => path)),
            beside: environment.runsBeside,
          });
    if (script && late && !script.equals(late) && !doubts.some(({ rule }) => rule === SCRIPT_CHANGED))
      doubts.push(finding(SCRIPT_CHANGED, REWRITTEN, TEST_SCRIPT));
    return {
      ...end,
      suspicion: [...(end.suspicion ?? []), ...doubts.map((doubt) => ({ ...doubt, inferred: true }))],
      ...(doubts.some(({ strict }) => strict) && { resolvedStrict: false }),
    };
  } finally {
    await watch?.end();
  }
}

/** A mount (VOLUME of an image) stays as the folder that it is, as if it had just been made. */
const GONE = `gone() { for f; do rm -rf "$f" 2>/dev/null
  if [ -d "$f" ] && [ ! -L "$f" ] && [ -z "$(find "$f" ! -type d)" ]; then chown 0:0 "$f" && chmod 755 "$f" || return; else rm -rf "$f" || return; fi; done; }
`;

const NO_SPACE = /no space left on device|disk quota exceeded/i;

/**
 * Files that the agent left where the tests go are no tests, and a reward that it wrote is no reward. Broken: the tests cannot go there (observed:
 * tests/suites/harbor/brokenVerifier.test.ts).
 */
async function prepared(
  environment: Environment,
  id: string,
  tests: readonly PlacedFile[] | undefined,
  cleared: boolean,
  signal: AbortSignal | undefined,
): Promise<VerifierEnd> {
  const folders = [LOGS_FOLDER, ...OPEN_FOLDERS, TESTS_FOLDER].join(' ');
  const starts = tests ? '' : ` && { chmod +x ${TEST_SCRIPT} 2>/dev/null || :; }`;
  const ready = await executeAs(
    environment,
    'root',
    `for f in ${folders}; do if [ -L $f ] || { [ -e $f ] && [ ! -d $f ]; }; then rm -rf $f; echo "no folder: $f"; fi; done
${GONE}gone ${LOGS} ${TRAJECTORY}${tests && cleared ? ` ${TESTS_FOLDER}` : ''} && mkdir -p ${folders} && chmod 777 ${OPEN_FOLDERS.join(' ')}${starts}`,
    { cwd: '/', timeoutS: PREPARE_TIMEOUT_S, signal },
  );
  const infra = { outcome: 'infra', infraReason: 'verifier_setup' } as const;
  const said = ready.output.slice(-400).trim();
  // A disk that is full may be the machine's.
  if (ready.exitCode !== 0)
    return {
      ...infra,
      ...(!NO_SPACE.test(said) && { broken: 'folders' }),
      errorMessage: `${id}: the folders of the verifier could not be made: ${said}`,
    };
  if (ready.output.split('\n').includes(`no folder: ${LOGS_FOLDER}`))
    return {
      ...infra,
      broken: 'replaced',
      errorMessage: `${id}: ${LOGS_FOLDER}, where the tests write their reward, was made something else than a folder`,
    };
  return { outcome: 'unresolved' };
}

/** Bash reads a script while it runs, so what is written into it decides what comes after (observed: tests/suites/harbor/brokenVerifier.test.ts). */
async function scriptIn(environment: Environment): Promise<Buffer | undefined> {
  const found = await filesIn(environment, TEST_SCRIPT, MOST_OF_SCRIPT).catch(() => []);
  const file = found.find(({ path }) => path === TEST_SCRIPT);
  return file && Buffer.from(file.content);
}
const MOST_OF_SCRIPT = 16 * 2 ** 20;
const SCRIPT_CHANGED = 'script_changed';
const REWRITTEN = 'a script of the tests was changed while they ran';

/** Between their arrival and the watch of new folders somebody may have been faster. `more`: the image has files of its own there. */
async function changedMeanwhile(
  environment: Environment,
  tests: readonly PlacedFile[],
  more: boolean,
): Promise<string | undefined> {
  const files = tests.filter(({ kind }) => kind === undefined);
  const wanted = new Map(files.map(({ path, content }) => [path, Buffer.from(content)]));
  const bytes = files.reduce((sum, { content }) => sum + content.length, 0);
  const there = await filesIn(environment, TESTS_FOLDER, 2 * bytes + (more ? MAX_BYTES : 2 ** 20));
  const other = there.find(({ path, content }) =>
    wanted.has(path) ? !wanted.get(path)!.equals(content) : !more,
  );
  const found = new Set(there.map(({ path }) => path));
  return other?.path ?? files.find(({ path }) => !found.has(path))?.path;
}

const NOT_WATCHED =
  'who writes where the tests and their reward are was not watched: nobody can do that here';

/** Files that a test runner or Python reads unasked, beside the tests. */
const READ_UNASKED = /(?:\/(?:conftest|sitecustomize|usercustomize)\.py|\/pytest\.ini|\.pth|\.pyc)$/;
const isReward = (path: string): boolean => path.startsWith(`${LOGS}/reward.`);

/**
 * Programs that the tests ask, and what ran beside them, have no business where the tests and their reward are (observed:
 * tests/suites/harbor/leftRunning.test.ts, brokenVerifier.test.ts).
 */
function writeDoubts(
  written: readonly SeenWrite[] | undefined,
  {
    early,
    end,
    tests,
    beside,
  }: {
    readonly early: string | undefined;
    readonly end: VerifierEnd;
    /** Paths of those that were put there. */
    readonly tests: ReadonlySet<string>;
    /** Something ran before. */
    readonly beside: boolean;
  },
): PatchDoubt[] {
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
  const about = (rule: string, says: string, wrote: readonly SeenWrite[], strict = true) =>
    wrote.length > 0 && finding(rule, says, told(wrote), strict);
  // An orphan of the tests may write a log, and a program its output; a reward and a test are the verifier's alone.
  const isFolder = (path: string) => [TESTS_FOLDER, LOGS_FOLDER, LOGS].includes(path);
  const isTest = (path: string) =>
    tests.has(path) ||
    path === TEST_SCRIPT ||
    (path.startsWith(`${TESTS_FOLDER}/`) && READ_UNASKED.test(path));
  const decides = (path: string) => isReward(path) || isTest(path) || isFolder(path);
  const by = (who: SeenWrite['by']) => written.filter((one) => one.by === who);
  const [orphans, programs] = [by('unknown'), by('program').filter(({ path }) => decides(path))];
  const ownOf = ({ path }: SeenWrite) =>
    beside ? path.startsWith(TESTS_FOLDER) || decides(path) : decides(path);
  // Tests that start a server with `( … & )` leave an orphan too: where nothing else wrote a reward and no program of the agent's ran, it is theirs.
  const rewarded = written.filter(({ path }) => isReward(path));
  const isTheirs =
    !beside &&
    !isSignal(end.exitCode ?? 0) &&
    by('program').length + by('left').length === 0 &&
    rewarded.every(({ by: who }) => who === 'unknown');
  const unplaced = orphans.filter((one) => ownOf(one) && !(isTheirs && isReward(one.path)));
  const last = (path: string) => written.findLastIndex((one) => one.path === path);
  const ended = end.exitCode ?? 0;
  return compact([
    early !== undefined && finding('left_process_wrote', 'the tests were changed as they arrived', early),
    about('left_process_wrote', 'what was left running wrote where the tests or their reward are', [
      ...by('left'),
      ...unplaced,
    ]),
    about(
      'program_wrote',
      'a program that the agent left, which the tests ran, wrote their reward or one of them',
      programs,
    ),
    about(
      SCRIPT_CHANGED,
      REWRITTEN,
      [...by('tests'), ...by('script')].filter(({ path }) => path === TEST_SCRIPT || tests.has(path)),
    ),
    isSignal(ended) &&
      about(
        'script_cut_off',
        `the script of the tests was ended from outside (exit code ${ended}), and a program that it had started wrote the reward`,
        by('tests').filter(({ path }) => isReward(path)),
      ),
    end.otherReward !== undefined &&
      (end.otherReward.isNone || last(REWARD_JSON) < last(REWARD_TEXT)) &&
      finding('rewards_differ', 'the tests left two rewards that differ', end.otherReward.says),
    beside &&
      about(
        'unknown_process_wrote',
        'a process that nobody could place wrote beside the reward',
        orphans.filter((one) => !unplaced.includes(one)),
        false,
      ),
  ]);
}

/**
 * A shell says so of a script that a signal ended, and a script may say it of what it waited for (observed:
 * tests/suites/harbor/brokenVerifier.test.ts).
 */
const isSignal = (exitCode: number): boolean => exitCode > 128 && exitCode <= 192;

async function runTests(
  environment: Environment,
  log: RunLog,
  id: string,
  { timeout_s: timeoutS, env, user }: Pick<HarborTask['verifier'], 'timeout_s' | 'env' | 'user'>,
  { patch, signal }: Pick<GradeRequest, 'patch' | 'signal'>,
): Promise<VerifierEnd> {
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
      broken: run.oomKilled
        ? 'memory'
        : read.isThere
          ? 'unusable'
          : isSignal(run.exitCode) || run.exitCode === -1
            ? 'signal'
            : 'none',
      errorMessage: `${id}: ${read.message}; the tests ended with exit code ${run.exitCode}. ${last === '' ? 'They printed nothing' : `Their last output: ${last}`}`,
    };
  }
  const { reward, rewards } = read.found;
  const other = await otherReward(environment, reward);
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
    ...(other && { otherReward: other }),
  };
}

/** The report as the harness would write it: it knows a patch alone. */
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

const REWARD_JSON = `${LOGS}/reward.json`;
const REWARD_TEXT = `${LOGS}/reward.txt`;

/** `isThere`: of one that cannot be read. */
async function rewardOf(environment: Environment): Promise<ReadReward & { readonly isThere?: boolean }> {
  try {
    let isThere = false;
    for (const [path, read] of [
      [REWARD_JSON, rewardFromJson],
      [REWARD_TEXT, rewardFromText],
    ] as const) {
      const found = await filesIn(environment, path, MAX_REWARD_BYTES, true);
      // Of a folder of that name come the files below it, which are no reward (observed: tests/suites/harbor/harborReward.test.ts).
      const file = found.find((one) => one.path === path && one.kind === undefined);
      if (file) return { ...read(Buffer.from(file.content).toString('utf8')), isThere: true };
      isThere ||= found.length > 0;
    }
    return { ...no(`the tests wrote neither ${REWARD_TEXT} nor ${REWARD_JSON}`), isThere };
  } catch (error) {
    if (error instanceof FilesTooLargeError) return { ...no(error.message), isThere: true };
    throw error;
  }
}

/** A second reward that says something else. A script that ends with reward.txt may disagree with reward.json. */
async function otherReward(environment: Environment, reward: number): Promise<VerifierEnd['otherReward']> {
  const read = (path: string) => filesIn(environment, path, MAX_REWARD_BYTES, true).catch(() => []);
  if (!(await read(REWARD_JSON)).some(({ path, kind }) => path === REWARD_JSON && kind === undefined))
    return undefined;
  const [text] = await read(REWARD_TEXT);
  if (!text) return undefined;
  if (text.kind !== undefined) return { says: `${REWARD_TEXT} is no file`, isNone: true };
  const other = rewardFromText(Buffer.from(text.content).toString('utf8'));
  if (!other.ok || other.found.reward === reward) return undefined;
  return { says: `${reward} in reward.json, ${other.found.reward} in reward.txt`, isNone: false };
}

const MAIN = 'reward';

const no = (message: string): ReadReward => ({ ok: false, message });
const shown = (value: unknown): string => JSON.stringify(value)?.slice(0, 80) ?? 'nothing';
const inRange = (value: number): boolean => value >= 0 && value <= 1;

/** The reward called "reward" counts, else the only one, else the mean of all. Others may be counts of anything. */
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

/** Python writes NaN and Infinity, which are no JSON: they are refused as what they are (observed: tests/suites/harbor/harborReward.test.ts). */
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
