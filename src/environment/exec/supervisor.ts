/**
 * The host's side of the supervisor: one exec, one attached stream, requests in, output and end marks out.
 * A stream that a background process still holds open is retired (kept drained, so that the process never blocks) and a fresh one
 * takes the following commands: late output never lands in another command's.
 */
import { randomBytes } from 'node:crypto';
import type { Duplex } from 'node:stream';
import type Docker from 'dockerode';
import { within } from '../../base/async/within.ts';
import { createDemux } from '../docker/demux.ts';
import { shellScript } from '../shellScript.ts';
import { createCollector, type OutputCollector } from './outputCollector.ts';
import { createPace, UNWANTED } from './pace.ts';
import {
  type CommandEnd,
  createMarkScanner,
  MAX_ARGV_BYTES,
  type RunningCommand,
  type Transport,
  type TransportCommand,
} from './transport.ts';

const SUPERVISOR = shellScript('supervisor.sh', import.meta.url);
const LAST_WORDS = 4096;
/** Beyond this many streams that are really held a container is the agent's own chaos: late output may then mix in. */
const MAX_RETIRED = 8;
/** How long one of them may take to say whether it is still held. */
const PROBE_MS = 200;
/** Run on a stream to learn that; what was left in the stream is dropped with its output. */
const NOTHING: TransportCommand = { command: ':', cwd: '/', env: {}, maxOutputBytes: 4096, harness: true };
const nonce = () => randomBytes(12).toString('hex');

const MODE = { argument: 0, file: 1, harness: 2 } as const;

function encodeRequest(request: TransportCommand, mark: string, end: string, mode: number): Buffer {
  const cwd = Buffer.from(request.cwd);
  const command = Buffer.from(request.command);
  const entries = Object.entries(request.env).map(([name, value]) => Buffer.from(`${name}=${value}`));
  const body = Buffer.concat([cwd, ...entries, command]);
  const lengths = entries.map((entry) => entry.length).join(' ');
  const header = `R ${mark} ${end} ${body.length} ${cwd.length} ${command.length} ${mode} ${entries.length} ${lengths}\n`;
  return Buffer.concat([Buffer.from(header), body]);
}

interface CurrentCommand {
  readonly collector: OutputCollector;
  scan(chunk: Buffer): void;
  end(how: CommandEnd): void;
}

interface Session {
  readonly alive: () => boolean;
  readonly keep: string;
  words(): string;
  run(request: TransportCommand): RunningCommand;
  killAll(): Promise<boolean>;
  close(): void;
}

async function openSession(
  container: Docker.Container,
  interpreter: readonly string[],
  keep: string,
  timeoutMs: number,
): Promise<Session> {
  const exec = await container.exec({
    Cmd: ['bash', '-p', '-c', SUPERVISOR, 'swebatch-supervisor', keep, ...interpreter],
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    Tty: false,
    // Not the image's: the agent may have removed that folder.
    WorkingDir: '/',
  });
  const stream: Duplex = await exec.start({ hijack: true, stdin: true });
  const pace = createPace(stream);
  const paceUnwanted = createPace(stream, UNWANTED);
  const answers = new Map<string, (value: string | undefined) => void>();
  let alive = true;
  let words = '';
  let current: CurrentCommand | undefined;

  const onStdout = (chunk: Buffer) => {
    if (!current) return paceUnwanted(chunk.length, chunk.length);
    const { collector, scan } = current;
    scan(chunk);
    pace(chunk.length, collector.totalBytes);
  };
  const onStderr = (chunk: Buffer) => {
    words = (words + chunk.toString('latin1')).slice(-LAST_WORDS);
    for (const [id, resolve] of answers) {
      const match = new RegExp(`\\x1e${id} ([^\\x1e]*)\\x1e`).exec(words);
      if (!match) continue;
      answers.delete(id);
      resolve(match[1]);
    }
  };
  const onGone = () => {
    if (!alive) return;
    alive = false;
    current?.end({ kind: 'lost' });
    for (const resolve of answers.values()) resolve(undefined);
    answers.clear();
    stream.destroy();
  };
  const answer = (id: string) => new Promise<string | undefined>((resolve) => answers.set(id, resolve));

  const ready = answer('ready');
  stream.on('end', onGone).on('close', onGone).on('error', onGone);
  stream.on(
    'data',
    createDemux((type, data) => (type === 1 ? onStdout(data) : onStderr(data))),
  );
  const timer = setTimeout(() => stream.destroy(), timeoutMs);
  const hello = await ready;
  clearTimeout(timer);
  if (hello === undefined) throw new Error(`the supervisor did not start: ${words.trim() || 'no answer'}`);

  return {
    alive: () => alive,
    keep: hello.split(' ')[0] ?? '',
    words: () => words,
    run(request) {
      if (current) throw new Error('a defect in swebatch: two commands at once on one stream');
      const mark = nonce();
      const endNonce = nonce();
      const long = Buffer.byteLength(request.command) > MAX_ARGV_BYTES;
      const mode = request.harness ? MODE.harness : long ? MODE.file : MODE.argument;
      const collector = createCollector(request.maxOutputBytes);
      const { promise: ended, resolve } = Promise.withResolvers<CommandEnd>();
      const end = (how: CommandEnd) => {
        current = undefined;
        resolve(how);
      };
      if (alive) {
        current = { collector, end, scan: createMarkScanner(endNonce, collector, end) };
        stream.write(encodeRequest(request, mark, endNonce, mode));
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
          if (!alive || sweeping !== undefined) return;
          const id = nonce();
          sweeping = answer(id);
          stream.write(`K ${mark} ${id}\n`);
        },
        output: () => collector.finish(),
        transport: mode === MODE.file ? 'supervisor-file' : 'supervisor',
      };
    },
    async killAll() {
      if (!alive) return false;
      const id = nonce();
      const done = answer(id);
      stream.write(`A ${id}\n`);
      return (await done) !== undefined;
    },
    close: () => stream.destroy(),
  };
}

interface Retired {
  readonly session: Session;
  /** Under way: true when nobody holds the stream any more. */
  probe: Promise<boolean> | undefined;
}

/** Starts the first session, so that an image that cannot run it is known at once (the caller then takes the plain exec path). */
export async function createSupervisorTransport(
  container: Docker.Container,
  interpreter: readonly string[],
  startTimeoutMs: number,
): Promise<Transport> {
  let session: Session | undefined = await openSession(container, interpreter, '', startTimeoutMs);
  let { keep } = session;
  let retired: Retired[] = [];
  let retireNext = false;

  /** One of the retired whose holder has ended since; taken off the list. */
  const takeFree = async (): Promise<Session | undefined> => {
    for (const old of [...retired]) {
      old.probe ??= old.session.run(NOTHING).ended.then((end) => end.kind === 'exit' && !end.held);
      const free = await within(old.probe, PROBE_MS);
      if (free === undefined) continue;
      old.probe = undefined;
      if (!free) continue;
      retired = retired.filter((other) => other !== old);
      return old.session;
    }
    return undefined;
  };

  const ready = async (): Promise<Session> => {
    if (session && retireNext && session.alive()) {
      retired = retired.filter((old) => old.session.alive());
      const next = retired.length < MAX_RETIRED ? undefined : await takeFree();
      if (next || retired.length < MAX_RETIRED) {
        retired.push({ session, probe: undefined });
        session = next;
      }
    }
    retireNext = false;
    if (!session?.alive()) {
      session = await openSession(container, interpreter, keep, startTimeoutMs);
      keep = session.keep;
    }
    return session;
  };

  const reset = () => {
    for (const old of retired) old.session.close();
    session?.close();
    retired = [];
    session = undefined;
    // After a restart the container's own processes have other ids.
    keep = '';
  };

  return {
    name: 'supervisor',
    async run(command) {
      const running = (await ready()).run(command);
      return {
        ...running,
        ended: running.ended.then((end) => {
          if (end.kind === 'exit' && end.held) retireNext = true;
          return end;
        }),
      };
    },
    async killAll() {
      // Not by a new stream, also when this one is held: where the process limit is reached none can be opened.
      const done = await (session?.alive() ? session : await ready()).killAll();
      for (const old of retired) old.session.close();
      retired = [];
      retireNext = false;
      return done;
    },
    reset,
    lastWords: () => session?.words() ?? '',
    close: reset,
  };
}
