/** One stream to a supervisor in the container: requests in, output and end marks out. One command at a time. */
import { startTimer } from '../../base/async/timer.ts';
import { shellScript } from '../shellScript.ts';
import { createCollector, type OutputCollector } from './outputCollector.ts';
import { createPace, UNWANTED } from './pace.ts';
import type { ContainerProcess, StartProcess } from './ports.ts';
import {
  type CommandEnd,
  createMarkScanner,
  MAX_ARGV_BYTES,
  newNonce,
  type RunningCommand,
  type TransportCommand,
} from './transport.ts';

const SUPERVISOR = shellScript('supervisor.sh', import.meta.url);
const LAST_WORDS = 4096;
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

function encodeRequest(request: TransportCommand, mark: string, end: string, mode: number): Buffer {
  const cwd = Buffer.from(request.cwd);
  const command = Buffer.from(request.command);
  const entries = Object.entries(request.env).map(([name, value]) => Buffer.from(`${name}=${value}`));
  const body = Buffer.concat([cwd, ...entries, command]);
  const lengths = entries.map((entry) => entry.length).join(' ');
  const header = `R ${mark} ${end} ${body.length} ${cwd.length} ${command.length} ${mode} ${entries.length} ${lengths}\n`;
  return Buffer.concat([Buffer.from(header), body]);
}

function modeOf({ harness, command }: TransportCommand): number {
  if (harness) return MODE.harness;
  return Buffer.byteLength(command) > MAX_ARGV_BYTES ? MODE.file : MODE.argument;
}

interface CurrentCommand {
  readonly collector: OutputCollector;
  scan(chunk: Buffer): void;
  end(how: CommandEnd): void;
}

/** What the supervisor says on stderr, `RS id text RS` for each question, and who waits for it. */
function createAnswers() {
  const waiting = new Map<string, (value: string | undefined) => void>();
  let words = '';
  return {
    words: () => words,
    to: (id: string) => new Promise<string | undefined>((resolve) => waiting.set(id, resolve)),
    push(chunk: Buffer) {
      words = (words + chunk.toString('latin1')).slice(-LAST_WORDS);
      for (const [id, resolve] of waiting) {
        const match = new RegExp(`\\x1e${id} ([^\\x1e]*)\\x1e`).exec(words);
        if (!match) continue;
        waiting.delete(id);
        resolve(match[1]);
      }
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
}

function connect(process: ContainerProcess): Connection {
  const answers = createAnswers();
  const connection: Connection = { process, answers, alive: true, current: undefined };
  const pace = createPace(process);
  const paceUnwanted = createPace(process, UNWANTED);
  process.listen({
    stdout(chunk) {
      if (!connection.current) return paceUnwanted(chunk.length, chunk.length);
      const { collector, scan } = connection.current;
      scan(chunk);
      pace(chunk.length, collector.totalBytes);
    },
    stderr: answers.push,
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

function runOn(connection: Connection, request: TransportCommand): RunningCommand {
  if (connection.current) throw new Error('a defect in swebatch: two commands at once on one stream');
  const { process, answers } = connection;
  const mark = newNonce();
  const endNonce = newNonce();
  const mode = modeOf(request);
  const collector = createCollector(request.maxOutputBytes);
  const { promise: ended, resolve } = Promise.withResolvers<CommandEnd>();
  const end = (how: CommandEnd) => {
    connection.current = undefined;
    resolve(how);
  };
  if (connection.alive) {
    connection.current = { collector, end, scan: createMarkScanner(endNonce, collector, end) };
    process.write(encodeRequest(request, mark, endNonce, mode));
  } else end({ kind: 'lost' });
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
  if (hello === undefined)
    throw new Error(`the supervisor did not start: ${answers.words().trim() || 'no answer'}`);
  return {
    alive: () => connection.alive,
    keep: hello.split(' ')[0] ?? '',
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
