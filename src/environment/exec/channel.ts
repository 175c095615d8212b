/**
 * Gives meaning to what a transport reports: timeouts, memory kills, refusals, lost streams, dead containers, full disks. A command's
 * own failure becomes a result; what the container or the daemon did becomes an EnvironmentError.
 */

import { within } from '../../base/async/within.ts';
import { formatLimit, formatSize, parseSize } from '../../base/text/units.ts';
import type { EnvironmentConfig } from '../config.ts';
import { type CommandResult, EnvironmentError, type ExecuteOptions } from '../environment.ts';
import { type CommandEnd, MAX_ARGV_BYTES, type RunningCommand, type Transport } from './transport.ts';

/** After a kill request the end mark comes within milliseconds; later than this the container is restarted. */
const KILL_GRACE_MS = 1500;
const SETTLE_MS = [50, 100, 200, 400];
/** An environment entry is an argv string to the kernel: the same limit. */
const MAX_ENTRY_BYTES = 131_000;

export interface HarnessResult {
  readonly code: number;
  readonly raw: Uint8Array;
  readonly output: string;
  readonly timedOut: boolean;
  readonly omittedBytes: number;
}

/** What channel needs to know of the container, and nothing more. */
export interface ContainerControl {
  /** undefined while it runs. */
  death(evidence: Readonly<Record<string, unknown>>): Promise<EnvironmentError | undefined>;
  /** Kills every process and starts again with the same file system. */
  restart(): Promise<void>;
  /** Watches the writable layer while a command runs; calls back once when it is over the limit. Returns the end of the watch. */
  watchDisk(onFull: (usedBytes: number) => void): () => void;
}

export interface Channel {
  readonly transport: Transport['name'];
  execute(command: string, options?: ExecuteOptions): Promise<CommandResult>;
  /** A script of ours, by bash -p in `cwd`, outside of the agent's limits. */
  harness(
    script: string,
    options: { timeoutS: number; maxBytes?: number; cwd?: string; env?: Record<string, string> },
  ): Promise<HarnessResult>;
  killAll(): Promise<void>;
  close(): void;
}

interface Ended {
  readonly end: CommandEnd;
  readonly why: 'itself' | 'timeout' | 'abort' | 'disk';
  readonly durationMs: number;
  readonly running: RunningCommand;
  readonly usedBytes: number;
  /** Nothing else could end it. */
  readonly restarted: boolean;
}

const refusal = (exitCode: number, exceptionInfo: string, transport: Transport['name']): CommandResult => ({
  output: '',
  raw: new Uint8Array(0),
  exitCode,
  timedOut: false,
  totalBytes: 0,
  omittedBytes: 0,
  replacedBytes: 0,
  durationMs: 0,
  oomKilled: false,
  transport,
  exceptionInfo,
});

/** Shells read a long command from a file (`. FILE`); another interpreter gets it as an argument or not at all. */
const readsFiles = (interpreter: readonly string[]) =>
  interpreter.some((part) => /^(?:.*\/)?(?:ba|da|z|mk|k|a|fi)?sh$/.test(part));

/** Why a command is not run at all, or undefined. Exit code 126, as for something that cannot be executed. */
export function commandRefusal(
  command: string,
  options: ExecuteOptions,
  config: Pick<EnvironmentConfig, 'interpreter' | 'max_command_bytes'>,
): string | undefined {
  const bytes = Buffer.byteLength(command);
  const limit = readsFiles(config.interpreter)
    ? config.max_command_bytes
    : Math.min(config.max_command_bytes, MAX_ARGV_BYTES);
  if (bytes > limit)
    return `command is ${formatSize(bytes)}; limit ${formatSize(limit)}. It was not run: write the content in several smaller commands.`;
  if (command.includes('\0'))
    return 'command contains a NUL character, which no shell can take. It was not run: use printf or python to write such bytes.';
  for (const [name, value] of Object.entries(options.env ?? {})) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || value.includes('\0'))
      return `environment variable ${JSON.stringify(name)} cannot be set. The command was not run.`;
    if (Buffer.byteLength(value) > MAX_ENTRY_BYTES)
      return `environment variable ${name} is ${formatSize(Buffer.byteLength(value))}; limit ${formatSize(MAX_ENTRY_BYTES)}. The command was not run.`;
  }
  return undefined;
}

function refusalOf(why: 'nocwd' | 'nofile' | 'nofork', cwd: string): string {
  const reason = {
    nocwd: `the working directory ${cwd} does not exist.`,
    nofile: 'the command is too long to be passed as an argument and no temporary file can be written.',
    nofork: 'no process could be started.',
  };
  return `${reason[why]} The command was not run.`;
}

export const timeoutInfo = (timeoutS: number): string =>
  `timed out after ${timeoutS}s: the command and everything it started were killed; what it printed until then is kept. Commands have no input (stdin is empty) and no terminal.`;

export function createChannel(
  transport: Transport,
  config: EnvironmentConfig,
  control: ContainerControl,
): Channel {
  let closed = false;
  // One command at a time: callers that overlap wait for each other.
  let last: Promise<unknown> = Promise.resolve();
  const exclusively = <T>(work: () => Promise<T>): Promise<T> => {
    const next = last.then(work, work);
    last = next.catch(() => undefined);
    return next;
  };

  /** A stream ends some milliseconds before the daemon knows that the container did: looks more than once. */
  const deathAfterLoss = async (evidence: Record<string, unknown>): Promise<EnvironmentError | undefined> => {
    for (const wait of [...SETTLE_MS, 0]) {
      const death = await control.death({ ...evidence, supervisor: transport.lastWords().slice(-500) });
      if (death || wait === 0) return death;
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  };

  const died = async (evidence: Record<string, unknown>): Promise<EnvironmentError> =>
    (await deathAfterLoss(evidence)) ??
    new EnvironmentError('died', 'the container runs but no command can be started in it', {
      sub: 'killed',
      evidence: { ...evidence, supervisor: transport.lastWords().slice(-500) },
    });

  const restart = async () => {
    await control.restart();
    transport.reset();
  };

  const start = async (command: Parameters<Transport['run']>[0]): Promise<RunningCommand> => {
    if (closed) throw new EnvironmentError('died', 'the environment is closed', { sub: 'killed' });
    try {
      return await transport.run(command);
    } catch (error) {
      throw await died({ while: 'starting a command', error: String(error) });
    }
  };

  /** Runs to an end, whoever makes it: the command, the clock, the caller or the disk. */
  const finish = async (
    running: RunningCommand,
    timeoutMs: number,
    { signal, watchDisk }: { signal?: AbortSignal | undefined; watchDisk: boolean },
  ): Promise<Ended> => {
    const began = performance.now();
    let why: Ended['why'] = 'itself';
    let usedBytes = 0;
    let onStuck: () => void = () => undefined;
    const stuck = new Promise<'stuck'>((resolve) => {
      onStuck = () => resolve('stuck');
    });
    let grace: NodeJS.Timeout | undefined;
    const stop = (reason: Ended['why']) => {
      if (why !== 'itself') return;
      why = reason;
      running.kill();
      grace = setTimeout(onStuck, KILL_GRACE_MS);
    };
    const timer = timeoutMs > 0 ? setTimeout(() => stop('timeout'), timeoutMs) : undefined;
    const onAbort = () => stop('abort');
    if (signal?.aborted) onAbort();
    signal?.addEventListener('abort', onAbort, { once: true });
    const onFull = (bytes: number) => {
      usedBytes = bytes;
      stop('disk');
    };
    const unwatch = watchDisk ? control.watchDisk(onFull) : () => undefined;
    const first = await Promise.race([running.ended, stuck]);
    clearTimeout(timer);
    clearTimeout(grace);
    unwatch();
    signal?.removeEventListener('abort', onAbort);
    const common = { why, running, usedBytes };
    if (first !== 'stuck')
      return { ...common, end: first, durationMs: performance.now() - began, restarted: false };
    // Nothing inside could kill it (everything was stopped, uninterruptible I/O): the container starts again, files stay.
    const restarted = await restart().then(
      () => true,
      () => false,
    );
    return { ...common, end: { kind: 'lost' }, durationMs: performance.now() - began, restarted };
  };

  /** A fork bomb in the background, of this command or an earlier one, would leave no process for the next. */
  const clearCrowd = async (end: CommandEnd): Promise<string> => {
    const refused =
      end.kind === 'exit' ? end.forksRefused > 0 : end.kind === 'refused' && end.why === 'nofork';
    if (!refused) return '';
    const cleared = await within(
      transport.killAll().catch(() => false),
      KILL_GRACE_MS,
    );
    if (!cleared) await restart();
    return `process limit ${config.pids_limit} reached (fork: Resource temporarily unavailable); every process in the background was killed.`;
  };

  const memoryInfo = (end: CommandEnd): string =>
    end.kind === 'exit' && end.oomKills > 0
      ? `command killed: memory limit ${formatLimit(parseSize(config.memory))} reached (rc ${end.code})`
      : '';

  const toResult = async (
    ended: Ended,
    timeoutS: number,
    cwd: string,
    signal?: AbortSignal,
  ): Promise<CommandResult> => {
    const { end, why, running } = ended;
    if (why === 'abort') signal?.throwIfAborted();
    if (why === 'disk')
      throw new EnvironmentError(
        'disk_full',
        `the container wrote ${formatSize(ended.usedBytes)}, more than environment.disk allows (${config.disk})`,
        { evidence: { usedBytes: ended.usedBytes, limit: config.disk } },
      );
    if (end.kind === 'unstarted') throw await died({ while: 'starting a command' });
    if (end.kind === 'lost' && !ended.restarted) {
      const death = await deathAfterLoss({ while: 'running a command' });
      if (death) throw death;
    }
    const collected = running.output();
    const base = {
      ...collected,
      timedOut: why === 'timeout',
      durationMs: ended.durationMs,
      oomKilled: end.kind === 'exit' && end.oomKills > 0,
      transport: running.transport,
    };
    const crowd = await clearCrowd(end);
    const info = (...parts: string[]) => [...parts, memoryInfo(end), crowd].filter(Boolean).join(' ');
    if (why === 'timeout') return { ...base, exitCode: -1, exceptionInfo: info(timeoutInfo(timeoutS)) };
    if (end.kind === 'lost') {
      await transport.killAll().catch(() => false);
      return {
        ...base,
        exitCode: -1,
        exceptionInfo:
          'the shell that ran the command was killed or its connection was cut; the result is not known.',
      };
    }
    if (end.kind === 'refused')
      return { ...base, exitCode: 126, exceptionInfo: info(refusalOf(end.why, cwd)) };
    return { ...base, exitCode: end.code, exceptionInfo: info() };
  };

  return {
    transport: transport.name,
    execute: (command, options = {}) =>
      exclusively(async () => {
        options.signal?.throwIfAborted();
        const refused = commandRefusal(command, options, config);
        if (refused) return refusal(126, refused, transport.name);
        const timeoutS = options.timeoutS ?? config.timeout;
        const cwd = options.cwd ?? config.cwd;
        const running = await start({
          command,
          cwd,
          env: options.env ?? {},
          maxOutputBytes: config.max_output_bytes,
        });
        return toResult(
          await finish(running, timeoutS * 1000, { signal: options.signal, watchDisk: true }),
          timeoutS,
          cwd,
          options.signal,
        );
      }),
    harness: (script, options) =>
      exclusively(async () => {
        const running = await start({
          command: script,
          cwd: options.cwd ?? '/',
          env: options.env ?? {},
          maxOutputBytes: options.maxBytes ?? 1024 * 1024,
          harness: true,
        });
        // Not watched: what an agent did before it filled the disk is still brought home.
        const { end, why } = await finish(running, options.timeoutS * 1000, { watchDisk: false });
        if ((end.kind === 'lost' || end.kind === 'unstarted') && why === 'itself')
          throw await died({ while: 'running a script of the harness' });
        const { raw, output, omittedBytes } = running.output();
        return {
          code: end.kind === 'exit' ? end.code : -1,
          raw,
          output,
          omittedBytes,
          timedOut: why === 'timeout',
        };
      }),
    killAll: () =>
      exclusively(async () => {
        const done = await within(
          transport.killAll().catch(() => false),
          KILL_GRACE_MS * 2,
        );
        if (done) return;
        const death = await control.death({ while: 'killing what is left' });
        if (death) throw death;
        await control.restart();
        transport.reset();
      }),
    close() {
      closed = true;
      transport.close();
    },
  };
}
