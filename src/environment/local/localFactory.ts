/**
 * The same contract on this machine, for tests and for datasets that need no isolation. Never a fallback: it runs only where the
 * configuration says `environment_class: local`. Nothing of this process's environment is passed on, so no secret is.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import type { EnvironmentConfig } from '../config.ts';
import {
  type CommandResult,
  type Environment,
  EnvironmentError,
  type EnvironmentFactory,
  type ExecuteOptions,
  type StartRequest,
} from '../environment.ts';
import { commandRefusal, timeoutInfo } from '../exec/exceptionInfo.ts';
import { createCollector } from '../exec/outputCollector.ts';
import { createPace } from '../exec/pace.ts';
import { MAX_ARGV_BYTES } from '../exec/transport.ts';
import { thisMachine } from '../owner.ts';
import { diffSnapshot, type ScriptRunner, takeSnapshot } from '../patch/capture.ts';
import { QUIET_ENV } from '../quietEnv.ts';
import { shellScript } from '../shellScript.ts';

export interface LocalFactoryOptions {
  /** What commands get besides the configured environment; default PATH and HOME only. */
  readonly baseEnv?: Readonly<Record<string, string>>;
  /** false skips the start snapshot. */
  readonly snapshot?: boolean;
}

/** How long after the end of a command whose output somebody else still holds open its last bytes are waited for. */
const LAST_BYTES_MS = 50;
const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

export function createLocalFactory(
  config: EnvironmentConfig,
  options: LocalFactoryOptions = {},
): EnvironmentFactory {
  return {
    kind: 'local',
    start: (request) => startLocal(config, options, request),
    close: async () => undefined,
  };
}

/** Kills the group and whatever carries the mark: `setsid` children leave the group but keep the environment. */
async function sweep(mark: string, since: number, group?: number): Promise<void> {
  if (group !== undefined) {
    try {
      process.kill(-group, 'SIGKILL');
    } catch {
      // The group is empty already.
    }
  }
  const wanted = `SWEBATCH_CMD=${mark}`;
  for (let pass = 0, found = true; found && pass < 20; pass += 1) {
    found = false;
    const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
    for (const [at, pid] of pids.entries()) {
      // Reads of /proc take microseconds; the pause is for machines with thousands of processes.
      if (at % SWEEP_SLICE === SWEEP_SLICE - 1) await setImmediate();
      // The start time is cheaper to read than the environment, and rules out nearly everything.
      if (Number(thisMachine().startTimeOf(Number(pid)) ?? 0) < since || !carries(pid, wanted)) continue;
      try {
        process.kill(Number(pid), 'SIGKILL');
        found = true;
      } catch {
        // It ended between the reading and the kill.
      }
    }
  }
}

const SWEEP_SLICE = 200;

/** Clock ticks since boot, of which /proc has 100 a second, with room for rounding. */
const ticksNow = () => Number(readFileSync('/proc/uptime', 'latin1').split(' ')[0]) * 100 - 5;

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

interface Spawned {
  readonly line: readonly [string, ...string[]];
  readonly cwd: string;
  readonly env: Record<string, string>;
  readonly timeoutS: number;
  readonly maxBytes: number;
  readonly mark: string;
  readonly signal?: AbortSignal | undefined;
}

const RUN_PROCESS = shellScript('runProcess.sh', import.meta.url);
/** Seconds after which coreutils' timeout ends a command that nobody has stopped. */
const OUTLIVES_S = 5;

async function runProcess(what: Spawned) {
  const collector = createCollector(what.maxBytes);
  const began = performance.now();
  const since = ticksNow();
  let timedOut = false;
  let child: ChildProcess;
  let sweeping: Promise<void> | undefined;
  const code = await new Promise<number | NodeJS.ErrnoException>((resolve) => {
    const [file, ...args] = what.line;
    const deadline = what.timeoutS > 0 ? String(Math.ceil(what.timeoutS) + OUTLIVES_S) : '';
    // One shell joins stderr to stdout, so that their order is the order of writing; detached makes a process group.
    child = spawn('/bin/sh', ['-c', RUN_PROCESS, 'swebatch-local', deadline, file, ...args], {
      cwd: what.cwd,
      env: what.env,
      stdio: ['ignore', 'pipe', 'ignore'],
      detached: true,
    });
    const stop = () => {
      sweeping ??= sweep(what.mark, since, child.pid);
    };
    const timer =
      what.timeoutS > 0
        ? setTimeout(() => {
            timedOut = true;
            stop();
          }, what.timeoutS * 1000)
        : undefined;
    what.signal?.addEventListener('abort', stop, { once: true });
    const pace = child.stdout ? createPace(child.stdout) : undefined;
    child.stdout?.on('data', (chunk: Buffer) => {
      collector.push(chunk);
      pace?.(chunk.length, collector.totalBytes);
    });
    child.on('error', (error) => {
      clearTimeout(timer);
      resolve(error);
    });
    // `exit`, not `close`: a background child that keeps stdout open does not delay the end. What is in the pipe is read first.
    child.on('exit', (status, signalName) => {
      clearTimeout(timer);
      what.signal?.removeEventListener('abort', stop);
      const done = () => resolve(status ?? 128 + (SIGNAL_NUMBERS[signalName ?? ''] ?? 0));
      if (child.stdout?.readableEnded) return done();
      const idle = setTimeout(done, LAST_BYTES_MS);
      child.stdout?.on('end', () => {
        clearTimeout(idle);
        done();
      });
    });
  });
  // The command may be dead before what it left elsewhere is.
  await sweeping;
  return { code, timedOut, durationMs: performance.now() - began, collector };
}

const SIGNAL_NUMBERS: Readonly<Record<string, number>> = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGQUIT: 3,
  SIGILL: 4,
  SIGTRAP: 5,
  SIGABRT: 6,
  SIGBUS: 7,
  SIGFPE: 8,
  SIGKILL: 9,
  SIGUSR1: 10,
  SIGSEGV: 11,
  SIGUSR2: 12,
  SIGPIPE: 13,
  SIGALRM: 14,
  SIGTERM: 15,
};

async function startLocal(
  config: EnvironmentConfig,
  options: LocalFactoryOptions,
  request: StartRequest,
): Promise<Environment> {
  const work = await stat(config.cwd).catch(() => undefined);
  if (!work?.isDirectory())
    throw new EnvironmentError(
      'start_failed',
      `environment.cwd ${config.cwd} is not a folder on this machine`,
    );
  const scratch = await mkdtemp(join(tmpdir(), 'swebatch-local-'));
  // All commands of one environment share this part of the mark, so that close() finds what was left in the background.
  const since = ticksNow();
  const session = randomBytes(8).toString('hex');
  const base = { PATH: DEFAULT_PATH, HOME: homedir(), ...options.baseEnv };
  let closed = false;

  const run: ScriptRunner = async (script, more) => {
    const done = await runProcess({
      line: ['bash', '-p', '-c', script],
      cwd: '/',
      env: { ...base, ...more.env },
      timeoutS: more.timeoutS,
      maxBytes: more.maxBytes ?? 1024 * 1024,
      mark: `${session}harness`,
    });
    return {
      ...done.collector.finish(),
      code: typeof done.code === 'number' ? done.code : -1,
      timedOut: done.timedOut,
    };
  };

  const execute = async (command: string, more: ExecuteOptions = {}): Promise<CommandResult> => {
    if (closed) throw new EnvironmentError('died', 'the environment is closed', { sub: 'killed' });
    more.signal?.throwIfAborted();
    const timeoutS = more.timeoutS ?? config.timeout;
    const cwd = more.cwd ?? config.cwd;
    const missing = (await stat(cwd).catch(() => undefined))?.isDirectory()
      ? undefined
      : `the working directory ${cwd} does not exist. The command was not run.`;
    const refused = commandRefusal(command, more, config) ?? missing;
    const fixed = { transport: 'local' as const, oomKilled: false };
    if (refused)
      return {
        ...createCollector(4096).finish(),
        ...fixed,
        exitCode: 126,
        timedOut: false,
        durationMs: 0,
        exceptionInfo: refused,
      };
    const mark = session + randomBytes(8).toString('hex');
    let text = command;
    if (Buffer.byteLength(command) > MAX_ARGV_BYTES) {
      const file = join(scratch, mark);
      await writeFile(file, command);
      text = `. ${file}`;
    }
    const [first, ...rest] = config.interpreter;
    const done = await runProcess({
      line: [first!, ...rest, text],
      cwd,
      env: { ...base, ...QUIET_ENV, ...config.env, ...more.env, SWEBATCH_CMD: mark },
      timeoutS,
      maxBytes: config.max_output_bytes,
      mark,
      signal: more.signal,
    });
    more.signal?.throwIfAborted();
    if (typeof done.code !== 'number')
      throw new EnvironmentError('died', `no command can be started: ${done.code.message}`, {
        cause: done.code,
      });
    return {
      ...done.collector.finish(),
      ...fixed,
      exitCode: done.timedOut ? -1 : done.code,
      timedOut: done.timedOut,
      durationMs: done.durationMs,
      exceptionInfo: done.timedOut ? timeoutInfo(timeoutS) : '',
    };
  };

  if (request.startupCommand) {
    const setup = await execute(request.startupCommand, { timeoutS: config.start_timeout });
    if (setup.exitCode !== 0)
      throw new EnvironmentError(
        'setup_failed',
        `setup failed (rc ${setup.exitCode}): ${setup.output.slice(-400)}`,
      );
  }
  const snapshot =
    (options.snapshot ?? true)
      ? await takeSnapshot(run, config.cwd, session, config.capture_timeout)
      : undefined;

  return {
    info: { kind: 'local', transport: 'local', history: 'skipped', notes: [] },
    execute,
    templateVars: () => ({
      cwd: config.cwd,
      timeout: config.timeout,
      interpreter: config.interpreter,
      environment_class: 'local',
    }),
    async capturePatch() {
      await sweep(session, since);
      if (!snapshot)
        return { patch: new Uint8Array(0), state: 'invalid', warnings: ['no start snapshot was taken'] };
      return diffSnapshot(run, snapshot, config.cwd, {
        timeoutS: config.capture_timeout,
        maxBytes: config.max_patch_bytes,
      });
    },
    async putFile(path, content, mode = 0o644) {
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, content, { mode });
    },
    getFile: async (path) => new Uint8Array(await readFile(path)),
    async close() {
      if (closed) return;
      closed = true;
      await sweep(session, since).catch(() => undefined);
      await rm(scratch, { recursive: true, force: true }).catch(() => undefined);
      if (snapshot) await rm(snapshot.folder, { recursive: true, force: true }).catch(() => undefined);
    },
  };
}
