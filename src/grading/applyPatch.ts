/** The harness's ladder of commands that apply a prediction: the first one that exits 0 wins and is recorded. */
import { type CommandResult, type Environment, EnvironmentError } from '../environment/environment.ts';
import { QUIET_GIT, readingGit } from './ownGit.ts';
import type { Dialect } from './parsers/logParser.ts';
import type { Suite } from './readLog.ts';

export const PATCH_PATH = '/tmp/patch.diff';

const RUNGS: Readonly<Record<Dialect | Suite, readonly string[]>> = {
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
  readonly dialect: Dialect;
  readonly suite?: Suite | undefined;
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
