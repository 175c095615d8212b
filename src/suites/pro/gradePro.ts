/**
 * SWE-bench Pro: its run_script.sh and its parser.py are data of the row. They run in the container, and nothing of them is ported. An
 * instance is resolved when every expected test is among those that the parser calls PASSED.
 */

import { z } from 'zod';
import { strip } from '../../base/python/text.ts';
import type { Instance } from '../../dataset/instance.ts';
import { parseTestIds } from '../../dataset/read/row.ts';
import type { Environment } from '../../environment/environment.ts';
import type { GradeRequest, PlannedGrading } from '../../grading/gradingFrame.ts';
import {
  allPassed,
  type Judged,
  lostResult,
  notGradable,
  planOwnRules,
  textInside,
} from '../../grading/ownRules.ts';
import type { TestRun } from '../../grading/runTests.ts';
import type { SpecOptions } from '../../grading/specs/spec.ts';

const WORKSPACE = '/workspace';

export const proText = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Some columns arrive as JSON text of a string. */
export function unquoted(value: unknown): string {
  const text = proText(value);
  if (!/^".*"$/s.test(text)) return text;
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'string' ? parsed : text;
  } catch {
    return text;
  }
}

const outputSchema = z.object({ tests: z.array(z.object({ name: z.string(), status: z.string() })) });

/** Names that parser.py calls PASSED; a message where the text is not what it writes. */
export function passedIn(text: string): { passed: ReadonlySet<string> } | { message: string } {
  try {
    const { tests } = outputSchema.parse(JSON.parse(text));
    return { passed: new Set(tests.filter(({ status }) => status === 'PASSED').map(({ name }) => name)) };
  } catch {
    return { message: "the output.json of the row's parser.py is not a list of tests" };
  }
}

/** `git apply` says so and the script goes on; git's complaint about a path of the tests is another one. */
const applied = (log: string): boolean =>
  !log.split('\n').some((line) => line.startsWith('error: ') && !line.startsWith('error: pathspec'));

/** What the script left: its output, and the tests that the parser names. */
async function judge(
  { FAIL_TO_PASS: failToPass, PASS_TO_PASS: passToPass }: Instance,
  environment: Environment,
  run: TestRun,
  { signal }: GradeRequest,
): Promise<Judged> {
  const inside = (name: string) => textInside(environment, `${WORKSPACE}/${name}`, signal);
  const stdout = await inside('stdout.log');
  const stderr = await inside('stderr.log');
  const output = await inside('output.json');
  const log = `${run.log}\n>>>>> stdout.log\n${stdout?.text ?? ''}\n>>>>> stderr.log\n${stderr?.text ?? ''}`;
  if (output === undefined) return lostResult("the row's parser.py wrote no output.json", log, true);
  if (!output.whole)
    return lostResult("the output.json of the row's parser.py is too large to be read", log, true);
  const read = passedIn(output.text);
  if ('message' in read) return lostResult(read.message, log, true);
  return {
    ok: true,
    verdict: allPassed({ failToPass, passToPass }, read.passed),
    log,
    applied: applied(run.log),
  };
}

// The script that SWE-bench Pro runs in the container, byte for byte as its own evaluation makes it: the ENV lines of both Dockerfiles, the
// commit, the patch, the tests, the row's run_script.sh, and the row's parser.py. Pure.

interface ProScriptFacts {
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

export function gradePro(instance: Instance, { dialect }: SpecOptions): PlannedGrading {
  const { extra, base_commit } = instance;
  const [runScript, parser] = [proText(extra.run_script), proText(extra.parser)];
  if (runScript === '' || parser === '')
    return notGradable(
      instance,
      'its run_script.sh and parser.py are not in the row; give a clone of SWE-bench_Pro-os as the dataset',
    );
  const selected = parseTestIds(extra.selected_test_files_to_run);
  if (!selected.ok) return notGradable(instance, `its selected_test_files_to_run ${selected.message}`);
  const script = entryScript({
    baseCommit: base_commit,
    beforeRepoSetCmd: unquoted(extra.before_repo_set_cmd),
    testFiles: selected.ids,
    dockerfiles: [proText(extra.base_dockerfile), proText(extra.instance_dockerfile)],
  });
  return planOwnRules(
    {
      ...{ instance, script, cwd: '/', container: { cwd: '/app' } },
      decides: { runScript, parser },
      files: (patch) => ({
        [`${WORKSPACE}/patch.diff`]: withoutBinaryHunks(patch),
        [`${WORKSPACE}/run_script.sh`]: runScript,
        [`${WORKSPACE}/parser.py`]: parser,
      }),
      judge: (environment, run, request) => judge(instance, environment, run, request),
    },
    dialect,
  );
}
