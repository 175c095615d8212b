/** Runs an eval script in a started environment: from a file, in one ordered stream, with a deadline inside and one outside. */
import type { CommandResult, Environment } from '../environment/environment.ts';
import { MARK } from './readLog.ts';

const SCRIPT_PATH = '/eval.sh';
/** After the deadline inside: TERM, this long, KILL; then the deadline outside. */
const KILL_AFTER_S = 5;
export const OUTSIDE_S = KILL_AFTER_S + 15;
/** `timeout` exits 124, or 137 when it had to kill. */
const DEADLINE_CODES: ReadonlySet<number> = new Set([124, 137]);

export interface TestRun {
  readonly log: string;
  readonly timedOut: boolean;
  /** The connection was cut: what the script did is not known. */
  readonly lost: boolean;
  readonly oomKilled: boolean;
  readonly exitCode: number;
  /** Limits of the container that were met, in words; empty when none was. */
  readonly limitsMet: string;
  readonly durationMs: number;
  /** Bytes that did not fit; the middle of the log is missing then. */
  readonly omittedBytes: number;
  /** The script was still the one that was put in when it had ended. */
  readonly scriptKept: boolean;
  /** It came to its last line: no signal ended it, and what it prints at its end is there. */
  readonly scriptEnded: boolean;
}

/** A shell or `timeout` that a signal ended exits with 128 and its number; git's own fatal error is 128. */
function cameToItsEnd(script: string, { exitCode, output }: CommandResult): boolean {
  if (exitCode < 0 || exitCode > 128) return false;
  return !script.includes(MARK.exitCode) || output.lastIndexOf(MARK.exitCode) > output.lastIndexOf(MARK.end);
}

/** `timeout` is looked up because small images lack it; then the outer deadline alone holds. */
export const commandWithin = (timeoutS: number, command: string): string =>
  timeoutS > 0
    ? `if command -v timeout >/dev/null 2>&1; then exec timeout -k ${KILL_AFTER_S} ${timeoutS} ${command} 2>&1; else exec ${command} 2>&1; fi`
    : `exec ${command} 2>&1`;

export const isPastDeadline = (run: CommandResult, timeoutS: number): boolean =>
  run.timedOut || (timeoutS > 0 && DEADLINE_CODES.has(run.exitCode) && run.durationMs >= timeoutS * 1000);

const COMPARE_TIMEOUT_S = 60;

export async function runTests(
  environment: Environment,
  script: string,
  options: { readonly timeoutS: number; readonly cwd: string; readonly signal?: AbortSignal | undefined },
): Promise<TestRun> {
  const { timeoutS, cwd, signal } = options;
  await environment.putFile(SCRIPT_PATH, script, 0o755);
  const result = await environment.execute(commandWithin(timeoutS, `/bin/bash ${SCRIPT_PATH}`), {
    cwd,
    timeoutS: timeoutS > 0 ? timeoutS + OUTSIDE_S : 0,
    signal,
  });
  const { output, exitCode, oomKilled, durationMs, omittedBytes } = result;
  const timedOut = isPastDeadline(result, timeoutS);
  // One byte more than the script has is enough to see a difference, and keeps a file that grew out of memory.
  const head = `head -c ${Buffer.byteLength(script) + 1} ${SCRIPT_PATH}`;
  const stillThere = async () =>
    (await environment.execute(head, { timeoutS: COMPARE_TIMEOUT_S, signal })).output === script;
  return {
    ...{ timedOut, oomKilled, exitCode, durationMs, omittedBytes },
    scriptEnded: timedOut || cameToItsEnd(script, result),
    scriptKept: timedOut || (await stillThere()),
    // The note that the harness itself leaves behind a run it cut off.
    log: timedOut ? `${output}\n\nTimeout error: ${timeoutS} seconds exceeded.` : output,
    lost: exitCode === -1 && !timedOut,
    limitsMet: [
      /process limit \d+ reached/.exec(result.exceptionInfo)?.[0],
      oomKilled && 'memory limit reached',
    ]
      .filter(Boolean)
      .join(', '),
  };
}
