/**
 * Gives meaning to the reports of a transport: timeouts, memory kills, refusals, lost streams, dead containers, full disks. A command's
 * own failure becomes a result; a failure of the container or the daemon becomes an EnvironmentError.
 */
import { sleep, startTimer, type Timer, within } from '../../base/async/timer.ts';
import { errorText } from '../../base/text/errorText.ts';
import { formatLimit, formatSize, parseSize } from '../../base/text/units.ts';
import {
  type CommandResult,
  EnvironmentError,
  type ExecuteOptions,
  type LeftRunning,
} from '../environment.ts';
import type { EnvironmentConfig } from '../environmentConfig.ts';
import { commandRefusal, placeRefusal, refusedResult, timeoutInfo } from './exceptionInfo.ts';
import type {
  CommandEnd,
  ContainerControl,
  RunningCommand,
  Transport,
  TransportCommand,
} from './transport.ts';

/** The evidence's word for a script of ours whose connection was lost. */
export const HARNESS = 'running a script of the harness';
const SETTLE_MS = [50, 100, 200, 400];
/**
 * Waits where no command can be started any more: on a machine that is drowning the daemon learns of a death seconds later
 * (observed: tests/environment/exec/lateDeath.test.ts).
 */
const LATE_MS = [...SETTLE_MS, 1000, 2000, 3000, 4000];

interface HarnessResult {
  readonly code: number;
  readonly raw: Uint8Array;
  readonly output: string;
  readonly timedOut: boolean;
  readonly omittedBytes: number;
}

interface HarnessOptions {
  readonly timeoutS: number;
  readonly maxBytes?: number;
  readonly cwd?: string;
  readonly env?: Record<string, string>;
}

export interface Channel {
  readonly transport: Transport['name'];
  execute(command: string, options?: ExecuteOptions): Promise<CommandResult>;
  /** A script of ours, by bash -p in `cwd`, outside of the agent's limits. */
  harness(script: string, options: HarnessOptions): Promise<HarnessResult>;
  killAll(): Promise<void>;
  left(): Promise<LeftRunning | undefined>;
  /** Somebody else has started the container again. */
  reset(): void;
  close(): void;
}

export function createChannel(
  transport: Transport,
  config: EnvironmentConfig,
  control: ContainerControl,
): Channel {
  let closed = false;
  /** The next result's sentence on the time before it. */
  let cleared = '';
  // One command at a time: callers that overlap wait for each other.
  let last: Promise<unknown> = Promise.resolve();
  const exclusively = <T>(work: () => Promise<T>): Promise<T> => {
    const next = last.then(work, work);
    last = next.catch(() => undefined);
    return next;
  };

  async function restart(): Promise<void> {
    if (!control.restart) throw stuck({ error: 'a container of its kind cannot' });
    // Before the restart: a listener to the end of a stream would ask the next life of the container about this one.
    transport.reset();
    try {
      await control.restart();
    } catch (error) {
      const evidence = { while: 'starting the container anew', error: errorText(error) };
      throw (await control.death(evidence)) ?? (error instanceof EnvironmentError ? error : stuck(evidence));
    }
  }
  const killedAll = (ms: number): Promise<boolean | undefined> =>
    within(
      transport.killAll().catch(() => false),
      ms,
    );
  const lastWords = () => transport.lastWords().slice(-500);

  /** A stream ends some milliseconds before the daemon knows that the container did: looks more than once. */
  async function deathAfterLoss(
    evidence: Record<string, unknown>,
    waits = SETTLE_MS,
  ): Promise<EnvironmentError | undefined> {
    for (const wait of [...waits, 0]) {
      const death = await control.death({ ...evidence, supervisor: lastWords() });
      if (death || wait === 0) return death;
      await sleep(wait);
    }
  }
  const notStartable = (evidence: Record<string, unknown>): EnvironmentError =>
    new EnvironmentError('died', 'the container runs but no command can be started in it', {
      sub: 'killed',
      evidence: { ...evidence, supervisor: lastWords() },
    });
  const stuck = (evidence: { readonly error: string }): EnvironmentError =>
    new EnvironmentError(
      'died',
      `nothing in the container could be killed, and it could not be started anew: ${evidence.error}`,
      { sub: 'unanswered', evidence: { ...evidence, supervisor: lastWords() } },
    );
  const died = async (evidence: Record<string, unknown>): Promise<EnvironmentError> =>
    (await deathAfterLoss(evidence, LATE_MS)) ?? notStartable(evidence);

  async function startCommand(command: TransportCommand): Promise<RunningCommand> {
    if (closed) throw new EnvironmentError('died', 'the environment is closed', { sub: 'killed' });
    try {
      return await transport.run(command);
    } catch (error) {
      const evidence = { while: 'starting a command', error: String(error), ...shown(command) };
      const death = await deathAfterLoss(evidence);
      if (death) throw death;
      // The engine may have been away, which looking for the death has waited for. Nothing of the command has run.
      return transport.run(command).catch(() => startAfterAll(command, evidence));
    }
  }

  /** A process of an earlier command may stop whatever is started, before it can begin (observed: tests/environment/docker/stoppedExec.test.ts). */
  async function startAfterAll(
    command: TransportCommand,
    evidence: Record<string, unknown>,
  ): Promise<RunningCommand> {
    const death = await deathAfterLoss(evidence, LATE_MS);
    if (death || !control.restart) throw death ?? notStartable(evidence);
    await restart();
    try {
      const running = await transport.run(command);
      cleared = 'no command could be started in the container; every process in the background was killed.';
      return running;
    } catch {
      throw notStartable(evidence);
    }
  }

  async function runCommand(command: string, options: ExecuteOptions): Promise<CommandResult> {
    const { signal } = options;
    signal?.throwIfAborted();
    const refused = commandRefusal(command, options, config);
    if (refused) return refusedResult(refused, transport.name);
    const timeoutS = options.timeoutS ?? config.timeout;
    const cwd = options.cwd ?? config.cwd;
    const env = options.env ?? {};
    // From the outside, so that a time limit of the command itself has passed when it says so: the engine may have begun it before it is heard.
    const asked = performance.now();
    const running = await startCommand({ command, cwd, env, maxOutputBytes: config.max_output_bytes });
    const ended = await runToEnd(running, {
      timeoutMs: timeoutS * 1000,
      timeUp: options.timeUp,
      signal,
      watchDisk: control.watchDisk,
      restart,
    });
    if (ended.why === 'abort') signal?.throwIfAborted();
    if (ended.unended && ended.why !== 'disk') throw ended.unended.error;
    await throwForThePlace(ended, shown({ command }));
    // The connection was cut before the command had come through (T-35).
    if (ended.end.kind === 'lost' && ended.why === 'itself' && (await running.neverBegan?.()))
      return runCommand(command, options);
    const result = await toResult(ended, timeoutS, cwd, {
      while: 'running a command',
      ...shown({ command }),
    });
    return { ...result, durationMs: ended.at - asked };
  }

  async function runHarness(script: string, options: HarnessOptions): Promise<HarnessResult> {
    const running = await startCommand({
      command: script,
      cwd: options.cwd ?? '/',
      env: options.env ?? {},
      maxOutputBytes: options.maxBytes ?? 1024 * 1024,
      harness: true,
    });
    // The disk is not watched: what an agent did before it filled the disk is still brought home.
    const { end, why, unended } = await runToEnd(running, { timeoutMs: options.timeoutS * 1000, restart });
    if (unended) throw unended.error;
    if ((end.kind === 'lost' || end.kind === 'unstarted') && why === 'itself')
      throw await died({ while: HARNESS });
    if (end.kind === 'forged') throw forgedError({ reported: end.evidence });
    const { raw, output, omittedBytes } = running.output();
    const code = end.kind === 'exit' ? end.code : -1;
    return { code, raw, output, omittedBytes, timedOut: why === 'timeout' };
  }

  async function killAll(): Promise<void> {
    if (await killedAll(KILL_GRACE_MS * 2)) return;
    const death = await control.death({ while: 'killing what is left' });
    if (death) throw death;
    await restart();
  }

  /** A verifier beside what is left must not take a broken connection for a container in which nothing runs. */
  async function left(): Promise<LeftRunning | undefined> {
    if (!transport.left) return undefined;
    const known = await transport.left().catch(() => undefined);
    if (known) return known;
    const death = await deathAfterLoss({ while: 'listing what is left running' });
    if (death) throw death;
    return transport.left();
  }

  /** Ends that are the container's, its disk's or the daemon's, and no result of the command. */
  async function throwForThePlace(
    { end, why, usedBytes, restarted }: Ended,
    command: ReturnType<typeof shown>,
  ): Promise<void> {
    if (why === 'disk')
      throw new EnvironmentError(
        'disk_full',
        `the container wrote ${formatSize(usedBytes)}, more than environment.disk allows (${config.disk})`,
        { fromWithin: true, evidence: { usedBytes, limit: config.disk, ...command } },
      );
    if (end.kind === 'forged') throw forgedError({ reported: end.evidence, ...command });
    if (end.kind === 'unstarted') throw await died({ while: 'starting a command', ...command });
    if (end.kind === 'lost' && !restarted) {
      const death = await deathAfterLoss({ while: 'running a command', ...command });
      if (death) throw death;
    }
  }

  async function toResult(
    ended: Ended,
    timeoutS: number,
    cwd: string,
    command: Record<string, unknown>,
  ): Promise<Omit<CommandResult, 'durationMs'>> {
    const { end, why, running, restarted } = ended;
    const base = {
      ...running.output(),
      timedOut: why === 'timeout',
      oomKilled: end.kind === 'exit' && end.oomKills > 0,
      transport: running.transport,
    };
    const crowd = await clearCrowd(end);
    const before = cleared;
    cleared = '';
    const info = (...said: string[]) =>
      [before, ...said, memoryInfo(end, config), crowd, cutInfo(end)].filter(Boolean).join(' ');
    if (why === 'timeout') return { ...base, exitCode: -1, exceptionInfo: info(timeoutInfo(timeoutS)) };
    if (end.kind === 'exit') return { ...base, exitCode: end.code, exceptionInfo: info() };
    if (end.kind === 'refused')
      return { ...base, exitCode: 126, exceptionInfo: info(placeRefusal(end.why, cwd)) };
    const swept = await transport.killAll().catch(() => false);
    const death = swept || restarted ? undefined : await deathAfterLoss(command, LATE_MS);
    if (death) throw death;
    const exceptionInfo =
      'the shell that ran the command was killed or its connection was cut; the result is not known.';
    return { ...base, exitCode: -1, exceptionInfo };
  }

  /** A fork bomb in the background, of this command or an earlier one, would leave no process for the next. */
  async function clearCrowd(end: CommandEnd): Promise<string> {
    const refused =
      end.kind === 'exit' ? end.forksRefused > 0 : end.kind === 'refused' && end.why === 'nofork';
    if (!refused) return '';
    if (!(await killedAll(KILL_GRACE_MS))) await restart();
    return `process limit ${config.pids_limit} reached (fork: Resource temporarily unavailable); every process in the background was killed.`;
  }

  return {
    transport: transport.name,
    execute: (command, options = {}) => exclusively(() => runCommand(command, options)),
    harness: (script, options) => exclusively(() => runHarness(script, options)),
    killAll: () => exclusively(killAll),
    left: () => exclusively(left),
    reset: transport.reset,
    close() {
      closed = true;
      transport.close();
    },
  };
}

const SHOWN_CHARS = 200;
/** The command, for the record. */
const shown = ({ command }: Pick<TransportCommand, 'command'>) => ({
  command: command.slice(0, SHOWN_CHARS),
});

/** Nothing that comes out of such a container can be believed any more. */
const forgedError = (evidence: { readonly reported: string }) =>
  new EnvironmentError(
    'died',
    `something in the container interfered with what reports the end of commands: it told ${evidence.reported}`,
    { sub: 'forged', fromWithin: true, evidence },
  );

const memoryInfo = (end: CommandEnd, config: EnvironmentConfig): string =>
  end.kind === 'exit' && end.oomKills > 0
    ? `command killed: memory limit ${formatLimit(parseSize(config.memory))} reached (rc ${end.code})`
    : '';

const cutInfo = (end: CommandEnd): string =>
  end.kind === 'exit' && end.cutShort
    ? 'what carries the output was killed; what the command printed more than 2 s later is missing.'
    : '';

/**
 * After a kill request the end mark comes within milliseconds, on a machine that is drowning within seconds. Later than this the container
 * is restarted, which kills what the agent left running on purpose (observed: tests/environment/exec/slowSweep.test.ts).
 */
const KILL_GRACE_MS = 10_000;
/** How long an engine may take to begin a command, beside the time of the command (observed: tests/environment/exec/slowSweep.test.ts). */
const BEGIN_MS = 30_000;

interface Ended {
  readonly end: CommandEnd;
  readonly why: 'itself' | 'timeout' | 'abort' | 'disk';
  /** The moment on the clock of `performance.now`. */
  readonly at: number;
  readonly running: RunningCommand;
  readonly usedBytes: number;
  /** The restart alone could end the command. */
  readonly restarted: boolean;
  /** Nothing could end the command. */
  readonly unended: { readonly error: unknown } | undefined;
}

interface EndedBy {
  /** 0: no limit. */
  readonly timeoutMs: number;
  readonly timeUp?: AbortSignal | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly watchDisk?: ContainerControl['watchDisk'];
  readonly restart: () => Promise<void>;
}

async function runToEnd(running: RunningCommand, by: EndedBy): Promise<Ended> {
  const { timeoutMs, timeUp, signal, watchDisk, restart } = by;
  const stuck = Promise.withResolvers<'stuck'>();
  let why: Ended['why'] = 'itself';
  let usedBytes = 0;
  let grace: Timer | undefined;
  let over = false;
  const stop = (reason: Ended['why']) => {
    if (why !== 'itself') return;
    why = reason;
    void Promise.resolve(running.kill()).then(() => {
      if (!over) grace = startTimer(KILL_GRACE_MS, () => stuck.resolve('stuck'));
    });
  };
  const onTimeout = () => stop('timeout');
  const limitMs = timeUp ? 0 : timeoutMs;
  const toBeginMs = limitMs > 0 && running.begun !== undefined ? BEGIN_MS : 0;
  let timer = startTimer(limitMs + toBeginMs, onTimeout);
  void running.begun?.then(() => {
    if (over || why !== 'itself') return;
    timer.cancel();
    timer = startTimer(limitMs, onTimeout);
  });
  if (timeUp?.aborted) onTimeout();
  timeUp?.addEventListener('abort', onTimeout, { once: true });
  const onAbort = () => stop('abort');
  if (signal?.aborted) onAbort();
  signal?.addEventListener('abort', onAbort, { once: true });
  const unwatch = watchDisk?.((bytes) => {
    usedBytes = bytes;
    stop('disk');
  });
  const first = await Promise.race([running.ended, stuck.promise]);
  over = true;
  timer.cancel();
  grace?.cancel();
  unwatch?.();
  signal?.removeEventListener('abort', onAbort);
  timeUp?.removeEventListener('abort', onTimeout);
  const restarted = first === 'stuck';
  const unended = restarted
    ? // Nothing inside could kill it (everything was stopped, uninterruptible I/O): the container starts again, files stay.
      await restart().then(
        () => undefined,
        (error: unknown) => ({ error }),
      )
    : undefined;
  const end: CommandEnd = first === 'stuck' ? { kind: 'lost' } : first;
  return { end, why, at: performance.now(), running, usedBytes, restarted, unended };
}
