/**
 * The slow path: one process of the engine per command, for images without bash and for `supervisor: false`. The engine cannot kill it,
 * so a second one sweeps /proc for the command's mark.
 */
import { sleep, startTimer, within } from '../../base/async/timer.ts';
import { errorText } from '../../base/text/errorText.ts';
import { EnvironmentError } from '../environment.ts';
import { shellScript } from '../shellScript.ts';
import { createFenceFinder, createFrameReader, fenceOf, forgedEnd, parseEnd } from './endReport.ts';
import { createCollector, createPace, type OutputCollector, UNWANTED } from './outputCollector.ts';
import {
  type CommandEnd,
  type ContainerProcess,
  MAX_ARGV_BYTES,
  newNonce,
  type RunningCommand,
  type StartProcess,
  type Transport,
  type TransportCommand,
} from './transport.ts';

const WHO_RUNS = shellScript('inside/whoRuns.sh', import.meta.url);
const RUN_COMMAND = shellScript('inside/runCommand.sh', import.meta.url);
/** The same two jobs in images with bash and without. */
const SWEEP_MARK = shellScript('inside/sweepMark.sh', import.meta.url);
const LIST_BASE = shellScript('inside/listBase.sh', import.meta.url);
const SWEEP_MARK_POSIX = shellScript('inside/sweepMarkPosix.sh', import.meta.url);
const LIST_BASE_POSIX = shellScript('inside/listBasePosix.sh', import.meta.url);

const PROBE_TIMEOUT_MS = 5000;
/**
 * Time limits of questions about the container: a machine that is drowning has no answer at first, and a guess would hold for all commands
 * (observed: tests/environment/exec/slowSweep.test.ts).
 */
const ANSWER_TIMEOUTS_MS = [PROBE_TIMEOUT_MS, 20_000, 60_000];
const LAST_WORDS = 4096;
/** runc refuses an exec while processes of the last command are still being reaped (observed: tests/environment/suites/kills.ts). */
const UNSTARTED_WAITS_MS = [100, 500];
/** How long an end is waited for after each sweep, and before the first one where the command has not begun. */
const KILL_WAITS_MS = [200, 500, 1000, 2000, 2000];
/** Where the wrapper says nothing for so long something has stopped it. */
const BEGUN_LIMIT_MS = 15_000;
/**
 * The engine waits without an end for a sweep that the command stopped while it was being started
 * (observed: tests/environment/docker/stoppedExec.test.ts).
 */
const KILL_LIMIT_MS = 10_000;

const tailOf = (data: Buffer) => data.toString('latin1').slice(-LAST_WORDS);

/** A sweep that ran says how many it killed; anything else is the runtime's own text. */
const swept = (answer: string | undefined) => /^(\d+|done)$/.test(answer ?? '');

/** `uid`: its owner, who removes it. */
type PutFile = (path: string, content: string, uid: number) => Promise<void>;

interface PlainExec {
  readonly startProcess: StartProcess;
  readonly interpreter: readonly string[];
  readonly putFile: PutFile;
  readonly hasBash: boolean;
  readonly uid: number;
  /** The container's own processes, which no sweep may touch; '' when they have to be found again. */
  keep: string;
  words: string;
}

export async function createPlainExecTransport(
  startProcess: StartProcess,
  interpreter: readonly string[],
  putFile: PutFile,
): Promise<Transport> {
  const asked = ['sh', '-c', WHO_RUNS, 'swebatch-probe', LIST_BASE];
  const said = await answer(startProcess, asked, /^(yes|no)( \d+)? \d+(,\d+)*$/);
  const words = said.split(' ');
  const hasBash = words[0] === 'yes';
  const plain: PlainExec = {
    startProcess,
    interpreter,
    putFile,
    hasBash,
    uid: Number(words.length > 2 ? words[1] : 0),
    keep: words.at(-1)!,
    words: '',
  };
  return {
    name: 'exec',
    async run(request) {
      plain.keep ||= await findKeep(plain);
      return runCommand(plain, request);
    },
    // A first one that was stopped, or is slow, is not waited for as long as the second.
    killAll: async () =>
      swept(await sweep(plain, '*', '')) || swept(await sweep(plain, '*', '', KILL_LIMIT_MS)),
    reset: () => {
      plain.keep = '';
    },
    lastWords: () => plain.words,
    close: () => undefined,
  };
}

/** A short script of ours: its stdout, or undefined when it did not end in time, and the last of its stderr. */
export async function probe(startProcess: StartProcess, argv: readonly string[], timeoutMs: number) {
  const process = await startProcess(argv, { env: [] });
  const ended = Promise.withResolvers<boolean>();
  let out = '';
  let words = '';
  process.listen({
    stdout(data) {
      out += data.toString('latin1');
    },
    stderr(data) {
      words = tailOf(data);
    },
    gone: () => ended.resolve(true),
  });
  const timer = startTimer(timeoutMs, () => {
    process.destroy();
    ended.resolve(false);
  });
  const inTime = await ended.promise;
  timer.cancel();
  return { out: inTime ? out : undefined, words };
}

/** A script of ours on the container, asked until it gives an answer. */
async function answer(
  startProcess: StartProcess,
  argv: readonly string[],
  expected: RegExp,
): Promise<string> {
  let words = '';
  for (const timeoutMs of ANSWER_TIMEOUTS_MS) {
    const said = await probe(startProcess, argv, timeoutMs);
    if (expected.test(said.out ?? '')) return said.out!;
    words = said.words || said.out || words;
    await sleep(UNSTARTED_WAITS_MS[0]!);
  }
  throw new EnvironmentError(
    'start_failed',
    `no command can be started in the container: ${words || 'no answer'}`,
  );
}

async function ask(
  plain: PlainExec,
  argv: readonly string[],
  timeoutMs: number,
): Promise<string | undefined> {
  const { out, words } = await probe(plain.startProcess, argv, timeoutMs);
  plain.words = words || plain.words;
  return out;
}

function findKeep({ startProcess, hasBash }: PlainExec): Promise<string> {
  const list = hasBash ? ['bash', '-p', '-c', LIST_BASE] : ['sh', '-c', LIST_BASE_POSIX];
  return answer(startProcess, list, /^\d+(,\d+)*$/);
}

/** `wrapper` is spared: it reports the end, as it does after any other death of the command. */
function sweep(
  plain: PlainExec,
  mark: string,
  wrapper: string,
  timeoutMs = PROBE_TIMEOUT_MS,
): Promise<string | undefined> {
  const spared = wrapper ? `${plain.keep},${wrapper}` : plain.keep;
  const script = plain.hasBash ? ['bash', '-p', '-c', SWEEP_MARK] : ['sh', '-c', SWEEP_MARK_POSIX];
  return ask(plain, [...script, 'swebatch-sweep', mark, spared, wrapper], timeoutMs);
}

async function runCommand(plain: PlainExec, request: TransportCommand): Promise<RunningCommand> {
  const mark = newNonce();
  let { command } = request;
  if (Buffer.byteLength(command) > MAX_ARGV_BYTES) {
    const path = `/tmp/.swebatch.${mark}`;
    await plain.putFile(path, command, plain.uid);
    command = `. ${path}; set -- $?; rm -f ${path}; exit $1`;
  }
  const shell = request.harness ? [...(plain.hasBash ? ['bash', '-p'] : ['sh']), '-c'] : plain.interpreter;
  const variables = Object.entries(request.env).map(([name, value]) => `${name}=${value}`);
  const one: OneCommand = {
    mark,
    line: [...shell, command],
    env: [...variables, `SWEBATCH_CMD=${mark}`],
    cwd: request.cwd,
    maxOutputBytes: request.maxOutputBytes,
    collector: createCollector(request.maxOutputBytes),
    begun: Promise.withResolvers<void>(),
    wrapper: '',
    swept: false,
  };
  const ended = untilStarted(plain, one).finally(one.begun.resolve);
  /** A look before the wrapper has begun the command finds nothing to kill. */
  const sweepUntilEnded = async () => {
    for (const wait of KILL_WAITS_MS) {
      if (one.wrapper !== '') await sweep(plain, mark, one.wrapper).catch(() => undefined);
      if (await within(ended, wait)) return;
    }
  };
  let sweeping: Promise<void> | undefined;
  return {
    begun: one.begun.promise,
    ended: ended.then(async (end) => {
      await sweeping;
      return end;
    }),
    kill: () => {
      one.swept = true;
      sweeping ??= within(one.begun.promise, BEGUN_LIMIT_MS).then(() =>
        within(sweepUntilEnded(), KILL_LIMIT_MS),
      );
      return sweeping;
    },
    output: () => one.collector.finish(),
    transport: 'exec',
  };
}

interface OneCommand {
  readonly mark: string;
  readonly line: readonly string[];
  readonly env: readonly string[];
  readonly cwd: string;
  readonly maxOutputBytes: number;
  collector: OutputCollector;
  readonly begun: PromiseWithResolvers<void>;
  /** Pid of the shell around the command, once it has said it. */
  wrapper: string;
  swept: boolean;
}

async function untilStarted(plain: PlainExec, one: OneCommand): Promise<CommandEnd> {
  let end = await tryOnce(plain, one);
  for (const wait of UNSTARTED_WAITS_MS) {
    if (end.kind !== 'unstarted') return end;
    plain.words = one.collector.finish().output.slice(-LAST_WORDS) || plain.words;
    await sleep(wait);
    // Nobody waits for it, and by now the container may have been started anew.
    if (one.swept) return { kind: 'lost' };
    end = await tryOnce(plain, one);
  }
  return end;
}

/** Without the wrapper's pid nothing of ours ran, and what came back is the runtime's own text. */
async function tryOnce(plain: PlainExec, one: OneCommand): Promise<CommandEnd> {
  one.collector = createCollector(one.maxOutputBytes);
  const argv = ['sh', '-c', RUN_COMMAND, 'swebatch-exec', one.cwd, ...one.line];
  const process = await plain.startProcess(argv, { env: one.env, stdin: true }).catch((error: unknown) => {
    plain.words = errorText(error);
    return undefined;
  });
  if (!process) return { kind: 'unstarted' };
  const end = await untilTold(plain, one, process);
  // The streams stay open until the engine has said its word: cut off while a background process writes, it says 126
  // (observed: tests/environment/suites/output.ts).
  // Nobody asks for the exit code of a swept command.
  const known = end.kind === 'exit' && !one.swept ? await confirmed(plain, one, process, end) : end;
  process.destroy();
  return known;
}

/** The end as the wrapper tells it, once the output is complete. */
function untilTold(plain: PlainExec, one: OneCommand, process: ContainerProcess): Promise<CommandEnd> {
  const { collector } = one;
  const { promise, resolve } = Promise.withResolvers<CommandEnd>();
  const pace = createPace(process);
  const paceUnwanted = createPace(process, UNWANTED);
  let told: string | undefined;
  let output = (data: Buffer) => collector.push(data);
  const onEnd = (text: string) => {
    if (told !== undefined) return resolve(forgedEnd(`two ends, "${told}" and "${text}"`));
    told = text;
    const end = parseEnd(text);
    if (end.kind === 'forged') return resolve(end);
    const fence = newNonce();
    const find = createFenceFinder(fenceOf(fence), collector.push);
    output = (data) => {
      if (find(data) === undefined) return;
      output = () => undefined;
      resolve(end);
    };
    process.write(`${fence}\n`);
  };
  const read = createFrameReader((frame) => {
    one.wrapper ||= /^pid ([1-9]\d{0,9})$/.exec(frame)?.[1] ?? '';
    if (one.wrapper) one.begun.resolve();
    if (frame.startsWith('end ')) onEnd(frame.slice(4));
  });
  process.listen({
    stdout(data) {
      output(data);
      pace(data.length, collector.totalBytes);
    },
    stderr(data) {
      plain.words = tailOf(data);
      read(data);
      paceUnwanted(data.length, data.length);
    },
    gone: () => resolve(one.wrapper ? { kind: 'lost' } : { kind: 'unstarted' }),
  });
  return promise;
}

/** Any writer on the wrapper's stderr can tell an end; the engine alone tells the exit code of the wrapper. */
async function confirmed(
  plain: PlainExec,
  one: OneCommand,
  process: ContainerProcess,
  end: CommandEnd & { kind: 'exit' },
): Promise<CommandEnd> {
  try {
    let code = await process.exitCode();
    if (code === undefined && process.wordComesLast) {
      // Processes in the background hold the command's streams: they end, so that the engine has a word.
      await sweep(plain, one.mark, one.wrapper);
      code = await process.exitCode();
    }
    if (code === end.code) return end;
    return forgedEnd(
      `the status ${end.code}, where the engine says ${code === undefined ? 'that it still runs' : code}`,
    );
  } catch {
    return { kind: 'lost' };
  }
}
