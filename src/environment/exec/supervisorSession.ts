/** One exec of a supervisor in the container: requests in, output on stdout, ends on stderr. One command at a time; the keeper runs it. */

import { startTimer } from '../../base/async/timer.ts';
import type { LeftRunning } from '../environment.ts';
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
  type TransportCommand,
} from './transport.ts';

/** The script in the arguments; the rest comes on stdin, so that `ps` does not print it to an agent. */
const LOADER = shellScript('inside/supervisorLoad.sh', import.meta.url);
const SUPERVISOR = shellScript('inside/supervisor.sh', import.meta.url);
const KEEPER = shellScript('inside/keeper.sh', import.meta.url);
const KEEPER_PID = '1';
const LAST_WORDS = 4096;
/** The end of the message of a start that failed without a reason. */
export const NO_ANSWER = 'no answer';

export interface SupervisorSession {
  readonly alive: () => boolean;
  /** The container's own processes, which no kill may touch. */
  readonly keep: string;
  words(): string;
  run(request: TransportCommand): SessionCommand;
  /** Once the supervisor is gone: was it killed, and is there a keeper that goes on without it? */
  survived(): Promise<boolean>;
  /** Has it ended, so that it passes nothing on any more, and is there a keeper that knows what it had passed on? */
  over(): Promise<boolean>;
  /** How a command ended, or will end, whose own supervisor was killed; `unstarted` when nothing of it ran. */
  recover(lost: SessionCommand): Pick<RunningCommand, 'ended' | 'kill'>;
  /** Does nobody else hold the stream open? */
  free(): Promise<boolean>;
  killAll(): Promise<boolean>;
  left(): Promise<LeftRunning | undefined>;
  close(): void;
}

export interface SessionCommand extends RunningCommand {
  readonly mark: string;
  readonly nonce: string;
}

interface CurrentCommand {
  readonly nonce: string;
  readonly collector: OutputCollector;
  output(chunk: Buffer): void;
  told(how: CommandEnd): void;
  end(how: CommandEnd): void;
}

/** Answers of the supervisor on stderr, `RS id text RS`, and their waiters. */
function createAnswers(onOther: (id: string, text: string) => void) {
  const waiting = new Map<string, (value: string | undefined) => void>();
  let words = '';
  const read = createFrameReader((frame) => {
    const space = frame.indexOf(' ');
    const [id, text] = [frame.slice(0, space), frame.slice(space + 1)];
    const resolve = waiting.get(id);
    waiting.delete(id);
    if (resolve) resolve(text);
    else onOther(id, text);
  });
  return {
    words: () => words,
    to: (id: string) => new Promise<string | undefined>((resolve) => waiting.set(id, resolve)),
    push(chunk: Buffer) {
      words = (words + chunk.toString('latin1', Math.max(0, chunk.length - LAST_WORDS))).slice(-LAST_WORDS);
      read(chunk);
    },
    giveUp() {
      for (const resolve of waiting.values()) resolve(undefined);
      waiting.clear();
    },
  };
}

interface Connection {
  readonly process: ContainerProcess;
  readonly answers: ReturnType<typeof createAnswers>;
  alive: boolean;
  current: CurrentCommand | undefined;
  /** Nonce of the command before. */
  last: string;
  /** A second end of the previous command, which therefore was still running when its first end was reported. */
  contradiction: CommandEnd | undefined;
}

function connect(process: ContainerProcess): Connection {
  const answers = createAnswers((id, text) => {
    const { current } = connection;
    if (id === current?.nonce) return current.told(parseEnd(text));
    if (id !== connection.last) return;
    connection.contradiction = forgedEnd(`a second end "${text}"`);
    current?.end(connection.contradiction);
  });
  const connection: Connection = {
    process,
    answers,
    alive: true,
    current: undefined,
    last: '',
    contradiction: undefined,
  };
  const pace = createPace(process);
  const paceUnwanted = createPace(process, UNWANTED);
  process.listen({
    stdout(chunk) {
      const { current } = connection;
      if (!current) return paceUnwanted(chunk.length, chunk.length);
      current.output(chunk);
      pace(chunk.length, current.collector.totalBytes);
    },
    stderr(chunk) {
      answers.push(chunk);
      paceUnwanted(chunk.length, chunk.length);
    },
    gone() {
      if (!connection.alive) return;
      connection.alive = false;
      connection.current?.end({ kind: 'lost' });
      answers.giveUp();
      process.destroy();
    },
  });
  return connection;
}

/** The part of stdout between the two fences. */
function createOutput(begin: string, end: string, collector: OutputCollector, onEnd: () => void) {
  const findEnd = createFenceFinder(fenceOf(end), collector.push);
  const stages = [createFenceFinder(fenceOf(begin), () => undefined), findEnd];
  return (chunk: Buffer) => {
    let rest: Buffer | undefined = chunk;
    while (rest && stages[0]) {
      rest = stages[0](rest);
      if (rest) stages.shift();
    }
    if (stages.length === 0) onEnd();
  };
}

/** A command ends when its status was reported and its output is complete; the two come in any order. */
function startOn(connection: Connection, collector: OutputCollector) {
  const begin = newNonce();
  const nonce = newNonce();
  const { promise: ended, resolve } = Promise.withResolvers<CommandEnd>();
  let how: CommandEnd | undefined;
  let complete = false;
  const end = (known: CommandEnd) => {
    connection.current = undefined;
    connection.last = nonce;
    resolve(known);
  };
  const output = createOutput(begin, nonce, collector, () => {
    complete = true;
    if (how) end(how);
  });
  const told = (next: CommandEnd) => {
    const known = how ? forgedEnd('two ends of one command') : next;
    how = known;
    if (complete || known.kind === 'forged') end(known);
  };
  connection.current = { nonce, collector, output, told, end };
  return { ended, begin, nonce };
}

function runOn(connection: Connection, request: TransportCommand): SessionCommand {
  if (connection.current) throw new Error('a defect in swebatch: two commands at once on one stream');
  const { process, answers } = connection;
  const mark = newNonce();
  const mode = modeOf(request);
  const collector = createCollector(request.maxOutputBytes);
  const known = connection.contradiction ?? (connection.alive ? undefined : { kind: 'lost' as const });
  let ended: Promise<CommandEnd>;
  let nonce = '';
  if (known) ended = Promise.resolve(known);
  else {
    const started = startOn(connection, collector);
    ({ ended, nonce } = started);
    process.write(encodeRequest(request, mark, `${started.begin},${nonce}`, mode));
  }
  let sweeping: Promise<unknown> | undefined;
  return {
    mark,
    nonce,
    // The sweep may outlast the command: whatever starts before its answer could be taken for a part of the command.
    ended: ended.then(async (how): Promise<CommandEnd> => {
      if (sweeping === undefined) return how;
      await sweeping;
      return how.kind === 'exit' ? { ...how, held: false } : how;
    }),
    kill: () => {
      if (!connection.alive || sweeping !== undefined) return;
      const id = newNonce();
      sweeping = answers.to(id);
      process.write(requestOf('K', `${mark} ${id}`));
    },
    output: () => collector.finish(),
    transport: mode === MODE.file ? 'supervisor-file' : 'supervisor',
  };
}

/** The first session of a container brings the keeper its script. */
async function startSession(
  startProcess: StartProcess,
  interpreter: readonly string[],
  keep: string,
): Promise<Connection> {
  const argv = ['bash', '-p', '-c', LOADER, 'swebatch-supervisor', keep, KEEPER_PID, ...interpreter];
  const process = await startProcess(argv, { stdin: true });
  const connection = connect(process);
  process.write(requestOf('L', SUPERVISOR));
  if (keep === '') process.write(requestOf('L', KEEPER));
  return connection;
}

const READY = /^(\d+(?:,\d+)*) \S+( keeper)?$/;
/** 128 + SIGKILL. A supervisor that only lost the connection ends with its stdin. */
const KILLED = 137;

export async function openSession(
  startProcess: StartProcess,
  interpreter: readonly string[],
  keep: string,
  timeoutMs: number,
): Promise<SupervisorSession> {
  const connection = await startSession(startProcess, interpreter, keep);
  const { answers, process } = connection;
  const timer = startTimer(timeoutMs, () => process.destroy());
  const hello = await answers.to('ready');
  timer.cancel();
  const [, kept, keeper] = READY.exec(hello ?? '') ?? [];
  if (kept === undefined)
    throw new Error(`the supervisor did not start: ${answers.words().trim() || NO_ANSWER}`);
  const ask = (letter: string, ...payload: string[]): Promise<string | undefined> => {
    if (!connection.alive) return Promise.resolve(undefined);
    const id = newNonce();
    const answer = answers.to(id);
    process.write(requestOf(letter, [...payload, id].join(' ')));
    return answer;
  };
  const exitCode = async () =>
    keeper === undefined ? undefined : await process.exitCode().catch(() => undefined);
  return {
    alive: () => connection.alive,
    keep: kept,
    words: answers.words,
    run: (request) => runOn(connection, request),
    survived: async () => (await exitCode()) === KILLED,
    over: async () => (await exitCode()) !== undefined,
    recover: ({ mark, nonce }) => recoverOn(ask, mark, nonce),
    free: async () => (await ask('F')) === '0',
    killAll: async () => (await ask('A')) !== undefined,
    async left() {
      const [count, ...names] = (await ask('P'))?.split(' ') ?? [];
      return count === undefined ? undefined : { count: Number(count), names };
    },
    close: () => process.destroy(),
  };
}

function recoverOn(
  ask: (letter: string, ...payload: string[]) => Promise<string | undefined>,
  mark: string,
  nonce: string,
): Pick<RunningCommand, 'ended' | 'kill'> {
  let sweeping: Promise<unknown> | undefined;
  const told = async (): Promise<CommandEnd> => {
    const text = await ask('Q', nonce);
    await sweeping;
    if (text === undefined) return { kind: 'lost' };
    // Whatever had been passed on stood before this question.
    if (text === 'none') return { kind: 'unstarted' };
    const end = parseEnd(text);
    return end.kind === 'exit' ? { ...end, held: false, cutShort: true } : end;
  };
  return {
    ended: told(),
    kill: () => {
      sweeping ??= ask('K', mark);
    },
  };
}

const MODE = { argument: 0, file: 1, harness: 2 } as const;

const LENGTH_DIGITS = 9;

/** A letter, the length, the payload: a shell reads a known number of bytes in one go, and a line byte by byte. */
function requestOf(letter: string, payload: string | Buffer): Buffer {
  const body = Buffer.from(payload);
  return Buffer.concat([Buffer.from(`${letter}${String(body.length).padStart(LENGTH_DIGITS, '0')}`), body]);
}

function encodeRequest(request: TransportCommand, mark: string, nonces: string, mode: number): Buffer {
  const cwd = Buffer.from(request.cwd);
  const command = Buffer.from(request.command);
  const entries = Object.entries(request.env).map(([name, value]) => Buffer.from(`${name}=${value}`));
  const body = Buffer.concat([cwd, ...entries, command]);
  const lengths = entries.map((entry) => entry.length).join(' ');
  const line = `${mark} ${nonces} ${cwd.length} ${command.length} ${mode} ${entries.length} ${lengths}\n`;
  return requestOf('R', Buffer.concat([Buffer.from(line), body]));
}

function modeOf({ harness, command }: TransportCommand): number {
  if (harness) return MODE.harness;
  return Buffer.byteLength(command) > MAX_ARGV_BYTES ? MODE.file : MODE.argument;
}
