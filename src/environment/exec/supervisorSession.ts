/** One exec of a supervisor in the container: requests in, output on stdout, ends on stderr. One command at a time. */
import { startTimer } from '../../base/async/timer.ts';
import { shellScript } from '../shellScript.ts';
import { createFenceFinder, createFrameReader, fenceOf, forgedEnd, parseEnd } from './endReport.ts';
import { createCollector, type OutputCollector } from './outputCollector.ts';
import { createPace, UNWANTED } from './pace.ts';
import type { ContainerProcess, StartProcess } from './ports.ts';
import {
  type CommandEnd,
  MAX_ARGV_BYTES,
  newNonce,
  type RunningCommand,
  type TransportCommand,
} from './transport.ts';

const SUPERVISOR = shellScript('supervisor.sh', import.meta.url);
const LAST_WORDS = 4096;
/** How the failure of a start ends that nobody gave a reason for. */
export const NO_ANSWER = 'no answer';
const MODE = { argument: 0, file: 1, harness: 2 } as const;

export interface SupervisorSession {
  readonly alive: () => boolean;
  /** The container's own processes, which no kill may touch. */
  readonly keep: string;
  words(): string;
  run(request: TransportCommand): RunningCommand;
  killAll(): Promise<boolean>;
  close(): void;
}

function encodeRequest(request: TransportCommand, mark: string, nonces: string, mode: number): Buffer {
  const cwd = Buffer.from(request.cwd);
  const command = Buffer.from(request.command);
  const entries = Object.entries(request.env).map(([name, value]) => Buffer.from(`${name}=${value}`));
  const body = Buffer.concat([cwd, ...entries, command]);
  const lengths = entries.map((entry) => entry.length).join(' ');
  const header = `R ${mark} ${nonces} ${body.length} ${cwd.length} ${command.length} ${mode} ${entries.length} ${lengths}\n`;
  return Buffer.concat([Buffer.from(header), body]);
}

function modeOf({ harness, command }: TransportCommand): number {
  if (harness) return MODE.harness;
  return Buffer.byteLength(command) > MAX_ARGV_BYTES ? MODE.file : MODE.argument;
}

interface CurrentCommand {
  readonly nonce: string;
  readonly collector: OutputCollector;
  output(chunk: Buffer): void;
  told(how: CommandEnd): void;
  end(how: CommandEnd): void;
}

/** What the supervisor says on stderr, `RS id text RS`, and who waits for it. */
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
  return { ended, nonces: `${begin},${nonce}` };
}

function runOn(connection: Connection, request: TransportCommand): RunningCommand {
  if (connection.current) throw new Error('a defect in swebatch: two commands at once on one stream');
  const { process, answers } = connection;
  const mark = newNonce();
  const mode = modeOf(request);
  const collector = createCollector(request.maxOutputBytes);
  const known = connection.contradiction ?? (connection.alive ? undefined : { kind: 'lost' as const });
  let ended: Promise<CommandEnd>;
  if (known) ended = Promise.resolve(known);
  else {
    const started = startOn(connection, collector);
    ended = started.ended;
    process.write(encodeRequest(request, mark, started.nonces, mode));
  }
  let sweeping: Promise<unknown> | undefined;
  return {
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
      process.write(`K ${mark} ${id}\n`);
    },
    output: () => collector.finish(),
    transport: mode === MODE.file ? 'supervisor-file' : 'supervisor',
  };
}

export async function openSession(
  startProcess: StartProcess,
  interpreter: readonly string[],
  keep: string,
  timeoutMs: number,
): Promise<SupervisorSession> {
  const argv = ['bash', '-p', '-c', SUPERVISOR, 'swebatch-supervisor', keep, ...interpreter];
  const process = await startProcess(argv, { stdin: true });
  const connection = connect(process);
  const { answers } = connection;
  const timer = startTimer(timeoutMs, () => process.destroy());
  const hello = await answers.to('ready');
  timer.cancel();
  const kept = /^(\d+(?:,\d+)*) /.exec(hello ?? '')?.[1];
  if (kept === undefined)
    throw new Error(`the supervisor did not start: ${answers.words().trim() || NO_ANSWER}`);
  return {
    alive: () => connection.alive,
    keep: kept,
    words: answers.words,
    run: (request) => runOn(connection, request),
    async killAll() {
      if (!connection.alive) return false;
      const id = newNonce();
      const done = answers.to(id);
      process.write(`A ${id}\n`);
      return (await done) !== undefined;
    },
    close: () => process.destroy(),
  };
}
