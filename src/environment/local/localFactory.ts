/**
 * The same contract on this machine, for tests and for datasets that need no isolation. Never a fallback: it runs only where the
 * configuration says `environment_class: local`. Nothing of this process's environment is passed on, so no secret is.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { addAbortListener } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { constants, homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Duplex } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { startTimer } from '../../base/async/timer.ts';
import { makeFolder } from '../../base/files/makeFolder.ts';
import { errorFirst } from '../../base/text/errorFirst.ts';
import { completeFactory, type PlainEnvironment } from '../capabilities.ts';
import {
  type CommandResult,
  type Doorway,
  EnvironmentError,
  type EnvironmentFactory,
  type ExecuteOptions,
  type StartRequest,
} from '../environment.ts';
import type { EnvironmentConfig } from '../environmentConfig.ts';
import { commandRefusal, placeRefusal, refusedResult, timeoutInfo } from '../exec/exceptionInfo.ts';
import { createCollector, createPace } from '../exec/outputCollector.ts';
import { MAX_ARGV_BYTES } from '../exec/transport.ts';
import { thisMachine } from '../owner.ts';
import { diffSnapshot, type ScriptRunner, takeSnapshot } from '../patch/capture.ts';
import { QUIET_ENV } from '../quietEnv.ts';
import { shellScript } from '../shellScript.ts';
import { unameVars } from '../uname.ts';

interface LocalFactoryOptions {
  /** Variables of commands besides the configured environment; default PATH and HOME only. */
  readonly baseEnv?: Readonly<Record<string, string>>;
}

const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

export function createLocalFactory(
  config: EnvironmentConfig,
  options: LocalFactoryOptions = {},
): EnvironmentFactory {
  return completeFactory({
    kind: 'local',
    start: (request) => startLocal(config, options, request),
    close: async () => undefined,
  });
}

async function startLocal(
  config: EnvironmentConfig,
  options: LocalFactoryOptions,
  request: StartRequest,
): Promise<PlainEnvironment> {
  const { cwd: workTree, capture_timeout: timeoutS, max_patch_bytes: maxBytes } = config;
  if (!(await isFolder(workTree)))
    throw new EnvironmentError('start_failed', `environment.cwd ${workTree} is not a folder on this machine`);
  const base = { PATH: DEFAULT_PATH, HOME: homedir(), ...options.baseEnv };
  /** The folder for long commands. */
  const scratch = await mkdtemp(join(tmpdir(), 'swebatch-local-'));
  /** The part that the marks of all its commands share. */
  const mark = randomBytes(8).toString('hex');
  const since = ticksNow();
  const doorways: Doorway[] = [];
  let closed = false;

  const run: ScriptRunner = async (script, more) => {
    const { collector, code, timedOut } = await runProcess({
      line: ['bash', '-p', '-c', script],
      cwd: '/',
      env: { ...base, ...more.env },
      timeoutS: more.timeoutS,
      maxBytes: more.maxBytes ?? 1024 * 1024,
      mark: `${mark}harness`,
    });
    return { ...collector.finish(), code: typeof code === 'number' ? code : -1, timedOut };
  };

  async function execute(command: string, more: ExecuteOptions = {}): Promise<CommandResult> {
    const { signal } = more;
    if (closed) throw new EnvironmentError('died', 'the environment is closed', { sub: 'killed' });
    signal?.throwIfAborted();
    const limitS = more.timeoutS ?? config.timeout;
    const cwd = more.cwd ?? workTree;
    const missing = (await isFolder(cwd)) ? undefined : placeRefusal('nocwd', cwd);
    const refused = commandRefusal(command, more, config) ?? missing;
    if (refused) return refusedResult(refused, 'local');
    const own = mark + randomBytes(8).toString('hex');
    const { code, timedOut, durationMs, collector } = await runProcess({
      line: [...config.interpreter, await argumentFor(command, join(scratch, own))],
      cwd,
      env: { ...base, ...QUIET_ENV, ...config.env, ...more.env, SWEBATCH_CMD: own },
      timeoutS: more.timeUp ? 0 : limitS,
      timeUp: more.timeUp,
      maxBytes: config.max_output_bytes,
      mark: own,
      signal,
    });
    signal?.throwIfAborted();
    if (typeof code !== 'number')
      throw new EnvironmentError('died', `no command can be started: ${code.message}`, { cause: code });
    return {
      ...collector.finish(),
      transport: 'local',
      oomKilled: false,
      exitCode: timedOut ? -1 : code,
      timedOut,
      durationMs,
      exceptionInfo: timedOut ? timeoutInfo(limitS) : '',
    };
  }

  if (request.startupCommand) {
    const setup = await execute(request.startupCommand, { timeoutS: config.start_timeout });
    if (setup.exitCode !== 0)
      throw new EnvironmentError(
        'setup_failed',
        `setup failed (rc ${setup.exitCode}): ${errorFirst(setup.output, 400)}`,
      );
  }
  const snapshot = await takeSnapshot(run, workTree, mark, timeoutS);
  return {
    info: { kind: 'local', transport: 'local', history: 'skipped', notes: [] },
    execute,
    templateVars: () => ({
      ...unameVars(),
      cwd: workTree,
      timeout: config.timeout,
      interpreter: config.interpreter,
      environment_class: 'local',
    }),
    async capturePatch({ beside = [] } = {}) {
      await sweepMarked(mark, since);
      return snapshot
        ? diffSnapshot(run, snapshot, workTree, { timeoutS, maxBytes, beside }, (path) => readFile(path))
        : { patch: new Uint8Array(0), state: 'invalid', warnings: ['no start snapshot was taken'] };
    },
    async putFile(path, content, mode = 0o644) {
      makeFolder(dirname(path));
      await writeFile(path, content, { mode });
    },
    getFile: async (path) => new Uint8Array(await readFile(path)),
    async listen(_port, onConnection) {
      const doorway = await openLocalDoorway(onConnection);
      doorways.push(doorway);
      return doorway;
    },
    async close() {
      if (closed) return;
      closed = true;
      await Promise.all(doorways.map((doorway) => doorway.close()));
      await sweepMarked(mark, since).catch(() => undefined);
      const folders = snapshot ? [scratch, snapshot.folder] : [scratch];
      for (const folder of folders) await rm(folder, { recursive: true, force: true }).catch(() => undefined);
    },
  };
}

const isFolder = async (path: string): Promise<boolean> =>
  (await stat(path).catch(() => undefined))?.isDirectory() ?? false;

/** The command itself, or what reads it from a file where it is too long for an argument. */
async function argumentFor(command: string, file: string): Promise<string> {
  if (Buffer.byteLength(command) <= MAX_ARGV_BYTES) return command;
  await writeFile(file, command);
  return `. ${file}`;
}

export async function openLocalDoorway(onConnection: (connection: Duplex) => void): Promise<Doorway> {
  const open = new Set<Socket>();
  const broken = Promise.withResolvers<EnvironmentError>();
  const listening = Promise.withResolvers<void>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket));
    onConnection(socket);
  });
  server.on('error', (error) => {
    listening.reject(new EnvironmentError('start_failed', `no port can be opened: ${error.message}`));
    broken.resolve(new EnvironmentError('died', `the port broke: ${error.message}`, { sub: 'relay' }));
  });
  server.listen(0, '127.0.0.1', () => listening.resolve());
  await listening.promise;
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    broken: broken.promise,
    async close() {
      for (const socket of open) socket.destroy();
      if (server.listening) server.close();
    },
  };
}

const RUN_PROCESS = shellScript('runProcess.sh', import.meta.url);
/** Seconds after its timeout at which coreutils ends a command that nobody has stopped (observed: tests/environment/local/localOrphan.test.ts). */
const OUTLIVES_S = 5;
/** How long after the end of a command whose output somebody else still holds open its last bytes are waited for. */
const LAST_BYTES_MS = 50;

interface LocalCommand {
  readonly line: readonly string[];
  readonly cwd: string;
  readonly env: Record<string, string>;
  readonly timeoutS: number;
  readonly maxBytes: number;
  readonly mark: string;
  readonly timeUp?: AbortSignal | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** `code` is an error when nothing could be started. */
async function runProcess(command: LocalCommand) {
  const { timeoutS, timeUp, signal, mark } = command;
  const collector = createCollector(command.maxBytes);
  const began = performance.now();
  const since = ticksNow();
  const child = start(command);
  let timedOut = false;
  let sweeping: Promise<void> | undefined;
  const stop = () => {
    sweeping ??= sweepMarked(mark, since, child.pid);
  };
  const onTimeout = () => {
    timedOut = true;
    stop();
  };
  const timer = startTimer(timeoutS * 1000, onTimeout);
  const listening = [timeUp && addAbortListener(timeUp, onTimeout), signal && addAbortListener(signal, stop)];
  const pace = child.stdout ? createPace(child.stdout) : undefined;
  child.stdout?.on('data', (chunk: Buffer) => {
    collector.push(chunk);
    pace?.(chunk.length, collector.totalBytes);
  });
  const code = await endOf(child, () => {
    timer.cancel();
    for (const one of listening) one?.[Symbol.dispose]();
  });
  // The command may be dead before what it left elsewhere is.
  await sweeping;
  return { code, timedOut, durationMs: performance.now() - began, collector };
}

function start({ line, cwd, env, timeoutS }: LocalCommand): ChildProcess {
  const deadline = timeoutS > 0 ? String(Math.ceil(timeoutS) + OUTLIVES_S) : '';
  // Detached makes a process group.
  return spawn('/bin/sh', ['-c', RUN_PROCESS, 'swebatch-local', deadline, ...line], {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
  });
}

/** `exit`, not `close`: a background child that keeps stdout open does not delay the end. The rest of the pipe is read first. */
function endOf(child: ChildProcess, onExit: () => void): Promise<number | NodeJS.ErrnoException> {
  return new Promise((resolve) => {
    child.on('error', (error) => {
      onExit();
      resolve(error);
    });
    child.on('exit', (status, signalName) => {
      onExit();
      const done = () => resolve(status ?? 128 + (signalName ? constants.signals[signalName] : 0));
      if (child.stdout?.readableEnded) return done();
      // On a busy machine the time is over before the pipe was looked at: one turn of the event loop reads what is in it (local/lastBytes.test.ts).
      const idle = startTimer(LAST_BYTES_MS, () => void setImmediate().then(done));
      child.stdout?.on('end', () => {
        idle.cancel();
        done();
      });
    });
  });
}

// Processes of this machine are killed by the mark in their environment.

/** Processes looked at in one turn of the event loop: reads of /proc take microseconds, some machines have thousands of processes. */
const TURN = 200;
const MAX_PASSES = 20;

/** Clock ticks since boot, with room for rounding; /proc counts 100 a second. */
const ticksNow = () => Number(readFileSync('/proc/uptime', 'latin1').split(' ')[0]) * 100 - 5;

/** Kills the group and whatever carries the mark: `setsid` children leave the group but keep the environment. */
async function sweepMarked(mark: string, since: number, group?: number): Promise<void> {
  if (group !== undefined) kill(-group);
  const wanted = `SWEBATCH_CMD=${mark}`;
  for (let pass = 0, found = true; found && pass < MAX_PASSES; pass += 1) {
    found = false;
    const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
    for (const [at, pid] of pids.entries()) {
      if (at % TURN === TURN - 1) await setImmediate();
      // The start time is cheaper to read than the environment, and rules out nearly everything.
      if (Number(thisMachine().startTimeOf(Number(pid)) ?? 0) < since || !carries(pid, wanted)) continue;
      if (kill(Number(pid))) found = true;
    }
  }
}

/** False when it has ended already. */
function kill(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL');
  } catch {
    return false;
  }
}

function carries(pid: string, wanted: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1')
      .split('\0')
      .some((entry) => entry.startsWith(wanted));
  } catch {
    // Gone, or somebody else's.
    return false;
  }
}
