/**
 * The slow path: one process of the engine per command, for images without bash and for `supervisor: false`. The engine cannot kill it,
 * so a second one sweeps /proc for the command's mark.
 */
import { sleep, startTimer } from '../../base/async/timer.ts';
import { errorText } from '../../base/text/errorText.ts';
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

const RUN_COMMAND = shellScript('inside/runCommand.sh', import.meta.url);
/** The same two jobs in images with bash and without. */
const SWEEP_MARK = shellScript('inside/sweepMark.sh', import.meta.url);
const LIST_BASE = shellScript('inside/listBase.sh', import.meta.url);
const SWEEP_MARK_POSIX = shellScript('inside/sweepMarkPosix.sh', import.meta.url);
const LIST_BASE_POSIX = shellScript('inside/listBasePosix.sh', import.meta.url);

const PROBE_TIMEOUT_MS = 5000;
const LAST_WORDS = 4096;
/** runc refuses an exec while processes of the last command are still being reaped. */
const UNSTARTED_WAITS_MS = [100, 500];

const tailOf = (data: Buffer) => data.toString('latin1').slice(-LAST_WORDS);

/** A sweep that ran says how many it killed; anything else is the runtime's own text. */
const swept = (answer: string | undefined) => /^(\d+|done)$/.test(answer ?? '');

type PutFile = (path: string, content: string) => Promise<void>;

interface Parts {
  readonly startProcess: StartProcess;
  readonly interpreter: readonly string[];
  readonly putFile: PutFile;
  readonly hasBash: boolean;
  /** The container's own processes, which no sweep may touch; '' when they have to be found again. */
  keep: string;
  words: string;
}

export async function createPlainExecTransport(
  startProcess: StartProcess,
  interpreter: readonly string[],
  putFile: PutFile,
): Promise<Transport> {
  const hasBash = (await probe(startProcess, ['bash', '-p', '-c', 'printf yes'])).out === 'yes';
  const parts: Parts = { startProcess, interpreter, putFile, hasBash, keep: '', words: '' };
  parts.keep = await findKeep(parts);
  return {
    name: 'exec',
    async run(request) {
      parts.keep ||= await findKeep(parts);
      return runCommand(parts, request);
    },
    killAll: async () => swept(await sweep(parts, '*', '')),
    reset: () => {
      parts.keep = '';
    },
    lastWords: () => parts.words,
    close: () => undefined,
  };
}

/** A short script of ours: its stdout, or undefined when it did not end in time, and the last of its stderr. */
async function probe(startProcess: StartProcess, argv: readonly string[]) {
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
  const timer = startTimer(PROBE_TIMEOUT_MS, () => {
    process.destroy();
    ended.resolve(false);
  });
  const inTime = await ended.promise;
  timer.cancel();
  return { out: inTime ? out : undefined, words };
}

async function ask(parts: Parts, argv: readonly string[]): Promise<string | undefined> {
  const { out, words } = await probe(parts.startProcess, argv);
  parts.words = words || parts.words;
  return out;
}

const findKeep = async (parts: Parts): Promise<string> =>
  (await ask(parts, parts.hasBash ? ['bash', '-p', '-c', LIST_BASE] : ['sh', '-c', LIST_BASE_POSIX])) || '1';

/** `wrapper` is spared: it reports the end, as it does after any other death of the command. */
function sweep(parts: Parts, mark: string, wrapper: string): Promise<string | undefined> {
  const spared = wrapper ? `${parts.keep},${wrapper}` : parts.keep;
  const script = parts.hasBash ? ['bash', '-p', '-c', SWEEP_MARK] : ['sh', '-c', SWEEP_MARK_POSIX];
  return ask(parts, [...script, 'swebatch-sweep', mark, spared, wrapper]);
}

async function runCommand(parts: Parts, request: TransportCommand): Promise<RunningCommand> {
  const mark = newNonce();
  let { command } = request;
  if (Buffer.byteLength(command) > MAX_ARGV_BYTES) {
    const path = `/tmp/.swebatch.${mark}`;
    await parts.putFile(path, command);
    command = `. ${path}; set -- $?; rm -f ${path}; exit $1`;
  }
  const shell = request.harness ? [...(parts.hasBash ? ['bash', '-p'] : ['sh']), '-c'] : parts.interpreter;
  const variables = Object.entries(request.env).map(([name, value]) => `${name}=${value}`);
  const one: OneCommand = {
    mark,
    line: [...shell, command],
    env: [...variables, `SWEBATCH_CMD=${mark}`],
    cwd: request.cwd,
    maxOutputBytes: request.maxOutputBytes,
    collector: createCollector(request.maxOutputBytes),
    wrapper: '',
    swept: false,
  };
  let sweeping: Promise<unknown> | undefined;
  return {
    ended: untilStarted(parts, one).then(async (end) => {
      await sweeping;
      return end;
    }),
    kill: () => {
      one.swept = true;
      sweeping ??= sweep(parts, mark, one.wrapper).catch(() => undefined);
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
  /** Pid of the shell around the command, once it has said it. */
  wrapper: string;
  swept: boolean;
}

async function untilStarted(parts: Parts, one: OneCommand): Promise<CommandEnd> {
  let end = await tryOnce(parts, one);
  for (const wait of UNSTARTED_WAITS_MS) {
    if (end.kind !== 'unstarted') return end;
    parts.words = one.collector.finish().output.slice(-LAST_WORDS) || parts.words;
    await sleep(wait);
    end = await tryOnce(parts, one);
  }
  return end;
}

/** Without the wrapper's pid nothing of ours ran, and what came back is the runtime's own text. */
async function tryOnce(parts: Parts, one: OneCommand): Promise<CommandEnd> {
  one.collector = createCollector(one.maxOutputBytes);
  const argv = ['sh', '-c', RUN_COMMAND, 'swebatch-exec', one.cwd, ...one.line];
  const process = await parts.startProcess(argv, { env: one.env, stdin: true }).catch((error: unknown) => {
    parts.words = errorText(error);
    return undefined;
  });
  if (!process) return { kind: 'unstarted' };
  const end = await untilTold(parts, one, process);
  if (!process.wordComesLast) process.destroy();
  // What was swept has no exit code that anybody asks for.
  const known = end.kind === 'exit' && !one.swept ? await confirmed(parts, one, process, end) : end;
  process.destroy();
  return known;
}

/** The end as the wrapper tells it, once the output is complete. */
function untilTold(parts: Parts, one: OneCommand, process: ContainerProcess): Promise<CommandEnd> {
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
    if (frame.startsWith('end ')) onEnd(frame.slice(4));
  });
  process.listen({
    stdout(data) {
      output(data);
      pace(data.length, collector.totalBytes);
    },
    stderr(data) {
      parts.words = tailOf(data);
      read(data);
      paceUnwanted(data.length, data.length);
    },
    gone: () => resolve(one.wrapper ? { kind: 'lost' } : { kind: 'unstarted' }),
  });
  return promise;
}

/** Whoever may write on the wrapper's stderr can tell an end; the exit code of the wrapper is the engine's to tell. */
async function confirmed(
  parts: Parts,
  one: OneCommand,
  process: ContainerProcess,
  end: CommandEnd & { kind: 'exit' },
): Promise<CommandEnd> {
  try {
    let code = await process.exitCode();
    if (code === undefined && process.wordComesLast) {
      // What the command left in the background holds its streams: it ends, so that the engine has a word.
      await sweep(parts, one.mark, one.wrapper);
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
