/** The commands of every grading in a started environment: the harness's ladder of commands that apply a prediction, and the eval script. */
import { type CommandResult, type Environment, EnvironmentError } from '../environment/environment.ts';
import type { HarnessVersion } from './parsers/logParser.ts';
import type { LogSuite } from './readLog.ts';
import { MARK } from './readLog.ts';

export const PATCH_PATH = '/tmp/patch.diff';

/** The first one that exits 0 wins and is recorded. */
const RUNGS: Readonly<Record<HarnessVersion | LogSuite, readonly string[]>> = {
  v5: [
    'git apply --verbose',
    'git apply --verbose --3way',
    'git apply --verbose --reject',
    'patch --batch --forward --fuzz=5 -p1 -i',
  ],
  'v4.1': ['git apply --verbose', 'git apply --verbose --reject', 'patch --batch --fuzz=5 -p1 -i'],
  'swe-gym': ['git apply --allow-empty -v', 'patch --batch --fuzz=5 -p1 -i'],
};

/** Recorded where every rung failed and yet the patch is in the tree (5.x only). */
export const ALREADY_APPLIED = 'already applied';

export interface Applied {
  /** The command that worked, without the patch's path; null when none did. */
  readonly method: string | null;
  /** The output of the last command. */
  readonly output: string;
  /** The commands that failed before. */
  readonly failed: readonly string[];
}

export async function applyPatch(
  environment: Environment,
  harness: HarnessVersion | LogSuite,
  at: { readonly cwd: string; readonly timeoutS: number; readonly signal?: AbortSignal | undefined },
): Promise<Applied> {
  const run = async (command: string): Promise<CommandResult> => {
    const result = await environment.execute(command, { ...at, env: QUIET_GIT });
    // Nothing of the patch runs here that could end its own shell.
    if (result.exitCode === -1 && !result.timedOut)
      throw new EnvironmentError('died', 'the connection was cut while the patch was applied', {
        sub: 'daemon_lost',
        evidence: { command },
      });
    return result;
  };
  // A rung that failed leaves parts behind; 5.x starts the next one from a clean tree, 4.1 does not (observed:
  // tests/suites/sweBench/evaluateDocker.test.ts).
  const clean = harness === 'v5';
  const failed: string[] = [];
  let output = '';
  for (const rung of RUNGS[harness]) {
    if (clean && failed.length > 0) await run('git checkout -- . ; git clean -fd');
    const result = await run(`${rung} ${PATCH_PATH}`);
    output = result.output;
    if (result.exitCode === 0) return { method: rung, output, failed };
    failed.push(rung);
  }
  if (clean) {
    const reverse = await run(readingGit(`apply --check --reverse ${PATCH_PATH}`));
    if (reverse.exitCode === 0) return { method: ALREADY_APPLIED, output, failed };
  }
  return { method: null, output, failed };
}

// git as the grader itself runs it, as root, in a tree that a patch has been applied to. The repository's configuration may be the
// patch's: it names programs (core.fsmonitor, hooks, filters, diff drivers) that git would run (observed:
// tests/suites/sweBench/evaluateDocker.test.ts).

/** The variables for git on the repository itself: hooks and fsmonitor are off. git before 2.31 does not know these variables. */
const QUIET_GIT: Readonly<Record<string, string>> = {
  GIT_CONFIG_COUNT: '2',
  GIT_CONFIG_KEY_0: 'core.fsmonitor',
  GIT_CONFIG_VALUE_0: 'false',
  GIT_CONFIG_KEY_1: 'core.hooksPath',
  GIT_CONFIG_VALUE_1: '/dev/null',
};

const CLEAN =
  'GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_OPTIONAL_LOCKS=0 GIT_PAGER=cat';

/**
 * Reads the tree in the working directory with a repository of our own around the index and the objects, so that no configuration is
 * read at all. A work tree whose `.git` is not a folder keeps its configuration, without the settings that are known to run programs.
 */
export const readingGit = (args: string): string =>
  `if [ -f .git/index ] && g=$(mktemp -d); then mkdir "$g/refs" && cp .git/index "$g/index" && echo ref: refs/heads/none >"$g/HEAD"; ` +
  `${CLEAN} HOME="$g" XDG_CONFIG_HOME="$g" GIT_DIR="$g" GIT_WORK_TREE="$PWD" GIT_OBJECT_DIRECTORY="$PWD/.git/objects" git ${args}; c=$?; rm -rf "$g"; (exit $c); ` +
  `else ${CLEAN} git -c core.fsmonitor=false -c core.hooksPath=/dev/null -c diff.external= ${args}; fi`;

// The tests: from a file, in one ordered stream, with a deadline inside and one outside.

const SCRIPT_PATH = '/eval.sh';
/** After the deadline inside: TERM, this long, KILL; then the deadline outside. */
const KILL_AFTER_S = 5;
export const OUTSIDE_S = KILL_AFTER_S + 15;
/** `timeout` exits 124, or 137 when it had to kill (observed: tests/suites/sweBench/evaluate.test.ts). */
const DEADLINE_CODES: ReadonlySet<number> = new Set([124, 137]);

export interface TestRun {
  readonly log: string;
  readonly timedOut: boolean;
  /** The connection was cut: the script's work is not known. */
  readonly lost: boolean;
  readonly oomKilled: boolean;
  readonly exitCode: number;
  /** Limits of the container that were met, in words; empty when none was. */
  readonly limitsMet: string;
  readonly durationMs: number;
  /** Bytes that did not fit; the middle of the log is missing then (observed: tests/suites/sweBench/evaluate.test.ts). */
  readonly omittedBytes: number;
  /** The script was still the one that was put in when it had ended (observed: tests/suites/sweBench/evaluate.test.ts). */
  readonly scriptKept: boolean;
  /** The script came to its last line: no signal ended it, and its last output is there (observed: tests/suites/sweBench/evaluate.test.ts). */
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
    timedOut,
    oomKilled,
    exitCode,
    durationMs,
    omittedBytes,
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
