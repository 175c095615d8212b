/** The harness's ladder of commands that apply a prediction: the first one that exits 0 wins and is recorded. */
import { type CommandResult, type Environment, EnvironmentError } from '../environment/environment.ts';
import type { HarnessDialect } from './parsers/logParser.ts';
import type { LogSuite } from './readLog.ts';

export const PATCH_PATH = '/tmp/patch.diff';

const RUNGS: Readonly<Record<HarnessDialect | LogSuite, readonly string[]>> = {
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
  /** What the last command printed. */
  readonly output: string;
  /** The commands that failed before. */
  readonly failed: readonly string[];
}

export interface ApplyOptions {
  readonly dialect: HarnessDialect;
  readonly suite?: LogSuite | undefined;
  readonly cwd: string;
  readonly timeoutS: number;
  readonly signal?: AbortSignal | undefined;
}

export async function applyPatch(environment: Environment, options: ApplyOptions): Promise<Applied> {
  const { dialect, suite, cwd, timeoutS, signal } = options;
  const run = async (command: string): Promise<CommandResult> => {
    const result = await environment.execute(command, { cwd, timeoutS, env: QUIET_GIT, signal });
    // Nothing of the patch runs here that could end its own shell.
    if (result.exitCode === -1 && !result.timedOut)
      throw new EnvironmentError('died', 'the connection was cut while the patch was applied', {
        sub: 'daemon_lost',
        evidence: { command },
      });
    return result;
  };
  const failed: string[] = [];
  let output = '';
  for (const rung of RUNGS[suite ?? dialect]) {
    // A rung that failed leaves parts behind; 5.x starts the next one from a clean tree, 4.1 does not.
    if (dialect === 'v5' && failed.length > 0) await run('git checkout -- . ; git clean -fd');
    const result = await run(`${rung} ${PATCH_PATH}`);
    output = result.output;
    if (result.exitCode === 0) return { method: rung, output, failed };
    failed.push(rung);
  }
  if (dialect === 'v5') {
    const reverse = await run(readingGit(`apply --check --reverse ${PATCH_PATH}`));
    if (reverse.exitCode === 0) return { method: ALREADY_APPLIED, output, failed };
  }
  return { method: null, output, failed };
}

// git as the grader itself runs it, as root, in a tree that a patch has been applied to. The repository's configuration may be the
// patch's: it names programs (core.fsmonitor, hooks, filters, diff drivers) that git would run.

/** Where git must work on the repository itself: hooks and fsmonitor are off. git before 2.31 does not know these variables. */
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
