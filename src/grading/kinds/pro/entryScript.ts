/**
 * The script that SWE-bench Pro runs in the container, byte for byte as its own evaluation makes it: the ENV lines of both Dockerfiles,
 * the commit, the patch, the tests, the row's run_script.sh, and the row's parser.py. Pure.
 */
import { strip } from '../../../base/python/text.ts';

export const WORKSPACE = '/workspace';

export interface ProScriptFacts {
  readonly baseCommit: string;
  /** Several lines of shell; only the last one runs, because the others are what the script does itself. */
  readonly beforeRepoSetCmd: string;
  readonly testFiles: readonly string[];
  /** Texts of the Dockerfiles: base, then instance. */
  readonly dockerfiles: readonly string[];
}

/** `ENV A=1` becomes `export A=1`. `ENV A 1` becomes `export A 1`, which sets nothing: the official script does the same. */
const exportsOf = (dockerfile: string): string[] =>
  dockerfile
    .split('\n')
    .map((line) => strip(line))
    .filter((line) => line.startsWith('ENV'))
    .map((line) => `export${line.slice('ENV'.length)}`);

/**
 * The list of test files stands without quotes, as in the official script: a `$` in a name is expanded by the shell, and published
 * verdicts were made that way.
 */
export function entryScript(facts: ProScriptFacts): string {
  const environment = facts.dockerfiles.flatMap(exportsOf).join('\n');
  const before = strip(facts.beforeRepoSetCmd).split('\n').at(-1)!;
  return `
${environment}
# apply patch
cd /app
git reset --hard ${facts.baseCommit}
git checkout ${facts.baseCommit}
git apply -v ${WORKSPACE}/patch.diff
${before}
# run test and save stdout and stderr to separate files
bash ${WORKSPACE}/run_script.sh ${facts.testFiles.join(',')} > ${WORKSPACE}/stdout.log 2> ${WORKSPACE}/stderr.log
# run parsing script
python ${WORKSPACE}/parser.py ${WORKSPACE}/stdout.log ${WORKSPACE}/stderr.log ${WORKSPACE}/output.json
`;
}

const BINARY = /^(?:Binary files .* differ|GIT binary patch)$/m;

/** Files of a patch that are binary are left out of it; what stands before the first file stays. */
export function withoutBinaryHunks(patch: string): string {
  if (patch === '') return patch;
  return patch
    .split(/^(?=diff --git )/m)
    .filter((section) => strip(section) !== '' && !BINARY.test(section))
    .join('');
}
