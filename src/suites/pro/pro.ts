/** SWE-bench Pro: rows of the hub, and its own repository, which keeps the scripts that grade them. */

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { OWN_HOST } from '../../base/imageReference.ts';
import { isRecord } from '../../base/isRecord.ts';
import { strip } from '../../base/python/text.ts';
import { sha256 } from '../../base/sha256.ts';
import { stringOf } from '../../base/text/contentText.ts';
import { instanceIdProblem } from '../../base/text/instanceId.ts';
import type { Instance } from '../../dataset/instance.ts';
import { csvRows } from '../../dataset/read/readCsv.ts';
import { normaliseColumns, parseTestIds, type RawRow, rowHashOf } from '../../dataset/read/row.ts';
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
import type { TestRun } from '../../grading/patchAndTests.ts';
import type { SpecOptions } from '../../grading/specs/spec.ts';
import type { FolderTask, ImageBuild, Suite } from '../suite.ts';

const NAME = 'swe-bench-pro';

export const pro: Suite = {
  rows: { columns: proColumns },
  folders: { read: readProFolder },
  needs: () => ({ container: { cwd: '/app' } }),
  builtImage: proImage,
  builds: proBuilds,
  grading: gradePro,
};

const PUBLISHED = 'jefzda/sweap-images';
const LONGEST_TAG = 128;
/** Published under the whole name of its repository, unlike all others of it. */
const WHOLE_NAME = 'instance_element-hq__element-web-ec0f940ef0e8e3b61078f145f34dc40d1938e6c5-vnan';

/** The tag as Pro's own tools make it from repository and id, for rows that state none. */
export function proTag(id: string, repo: string): string {
  const [owner = '', name = ''] = repo.toLowerCase().split('/');
  const hash = id.replaceAll('instance_', '');
  if (id === WHOLE_NAME) return `${owner}.element-web-${hash}`.slice(0, LONGEST_TAG);
  const short = owner.includes('element-hq') && name.includes('element-web') ? 'element' : name;
  return `${owner}.${short}-${hash.replace(/-vnan$/, '')}`.slice(0, LONGEST_TAG);
}

/** The prompt is the statement with requirements and interface below it. */
function proColumns(raw: RawRow): RawRow {
  // A row that names its image was converted before: its statement is whole.
  if (raw.image != null) return raw;
  const parts = [unquoted(raw.problem_statement)];
  if (stringOf(raw.requirements)) parts.push(`Requirements:\n${unquoted(raw.requirements)}`);
  if (stringOf(raw.interface)) parts.push(`New interfaces introduced:\n${unquoted(raw.interface)}`);
  const tag = stringOf(raw.dockerhub_tag) || proTag(stringOf(raw.instance_id), stringOf(raw.repo));
  return {
    ...raw,
    problem_statement: typeof raw.problem_statement === 'string' ? parts.join('\n\n') : raw.problem_statement,
    image: `${PUBLISHED}:${tag}`,
  };
}

const SCRIPTS = 'run_scripts';
const ROW_FOLDERS = ['', 'helper_code'] as const;

function rowFiles(dir: string): string[] {
  return ROW_FOLDERS.map((name) => join(dir, name))
    .filter((folder) => statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true)
    .flatMap((folder) =>
      readdirSync(folder)
        .filter((name) => /\.(?:jsonl|csv)$/.test(name))
        .sort()
        .map((name) => join(folder, name)),
    );
}

function rowsIn(path: string): unknown[] {
  const text = readFileSync(path, 'utf8');
  if (path.endsWith('.csv')) return csvRows(text);
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line): unknown => JSON.parse(line));
}

const textAt = (path: string): string => (existsSync(path) ? readFileSync(path, 'utf8') : '');

function withScripts(dir: string, raw: RawRow, id: string): RawRow {
  const scripts = join(dir, SCRIPTS, id);
  const dockerfile = (name: string) => textAt(join(dir, 'dockerfiles', name, id, 'Dockerfile'));
  return {
    ...raw,
    run_script: raw.run_script ?? textAt(join(scripts, 'run_script.sh')),
    parser: raw.parser ?? textAt(join(scripts, 'parser.py')),
    base_dockerfile: raw.base_dockerfile ?? dockerfile('base_dockerfile'),
    instance_dockerfile: raw.instance_dockerfile ?? dockerfile('instance_dockerfile'),
  };
}

/**
 * A clone of SWE-bench Pro's repository as tasks: rows of its .jsonl or .csv file, each with the run_script.sh, the parser.py and the
 * Dockerfiles that the repository keeps in folders named like the instance. All text of a task is hashed with its row. A row that cannot be
 * read is a task that is refused, so that the others can run.
 */
function readProFolder(dir: string): readonly FolderTask[] {
  const tasks = new Map<string, FolderTask>();
  for (const path of rowFiles(dir))
    rowsIn(path).forEach((raw, at) => {
      if (!isRecord(raw)) return;
      const id = typeof raw.instance_id === 'string' ? raw.instance_id : `${path}:${at + 1}`;
      if (!tasks.has(id)) tasks.set(id, taskOf(dir, raw, id));
    });
  return [...tasks.values()];
}

function taskOf(dir: string, raw: RawRow, id: string): FolderTask {
  const path = join(dir, SCRIPTS, id);
  const safe = instanceIdProblem(id);
  const read = safe === null ? normaliseColumns(proColumns(withScripts(dir, raw, id)), NAME) : undefined;
  if (read?.ok) {
    const { instance } = read;
    const missing = ['run_script', 'parser'].filter((name) => instance.extra[name] === '');
    const warnings =
      missing.length > 0 ? [`${missing.join(' and ')} missing in ${SCRIPTS}: it cannot be graded`] : [];
    return { id, path, instance, hash: rowHashOf(instance), warnings };
  }
  const refused = safe === null ? (read?.messages ?? []).join('; ') : `its id ${safe}`;
  const instance = { ...emptyInstance(id), kind: NAME };
  return { id, path, instance, hash: rowHashOf(instance), refused, warnings: [] };
}

const emptyInstance = (id: string) => ({
  instance_id: id,
  repo: '',
  base_commit: '',
  problem_statement: '',
  hints_text: '',
  patch: '',
  test_patch: '',
  version: '',
  created_at: '',
  environment_setup_commit: '',
  difficulty: '',
  FAIL_TO_PASS: [],
  PASS_TO_PASS: [],
  extra: {},
});

// Images of SWE-bench Pro from the two Dockerfiles that its repository keeps for each instance. Both become one file of two stages, so that
// one build makes the image, and an engine builds equal base stages once.

const BASE = 'swebatch-base';
/** Scale's own mirror of Docker Hub, which nobody else can ask. */
const MIRROR = /^(FROM\s+(?:--\S+\s+)*)\d+\.dkr\.ecr\.[\w.-]+\/docker-hub\/(?:library\/)?/i;
/** `FROM base_<repository>___<date>` and the same as a tag of Scale's registry: what the base Dockerfile makes. */
const OF_BASE = /^(FROM\s+(?:--\S+\s+)*)(?:\S+:)?base_\S+/i;
const FROM = /^FROM\s/i;
/** The builds install whole systems. */
const TIMEOUT_S = 2 * 3600;

function withoutName(from: string): string {
  const words = from.trim().split(/\s+/);
  return (words.at(-2)?.toUpperCase() === 'AS' ? words.slice(0, -2) : words).join(' ');
}

/** The last stage under the name that the instance's file begins with. */
function namedLast(lines: readonly string[]): string[] {
  const last = lines.findLastIndex((line) => FROM.test(line));
  return lines.map((line, at) => (at === last ? `${withoutName(line)} AS ${BASE}` : line));
}

/** One Dockerfile for both; undefined where one is missing, or the second does not stand on the first. */
export function proDockerfile(base: unknown, instance: unknown): string | undefined {
  if (typeof base !== 'string' || typeof instance !== 'string') return undefined;
  const lines = instance.split('\n');
  if (!base.split('\n').some((line) => FROM.test(line)) || !lines.some((line) => OF_BASE.test(line)))
    return undefined;
  const below = namedLast(base.split('\n').map((line) => line.replace(MIRROR, '$1')));
  return [...below, '', ...lines.map((line) => line.replace(OF_BASE, `$1${BASE}`))].join('\n');
}

const dockerfileOf = ({ extra }: Instance) => proDockerfile(extra.base_dockerfile, extra.instance_dockerfile);
const nameOf = (dockerfile: string): string => `${OWN_HOST}/pro:${sha256(dockerfile).slice(0, 32)}`;

function proImage(instance: Instance): string | undefined {
  const dockerfile = dockerfileOf(instance);
  return dockerfile === undefined ? undefined : nameOf(dockerfile);
}

/** Nothing, where the instance has an image of a registry. */
function proBuilds(instance: Instance): readonly ImageBuild[] {
  const dockerfile = dockerfileOf(instance);
  if (dockerfile === undefined || instance.image !== nameOf(dockerfile)) return [];
  const content = Buffer.from(dockerfile);
  const files = () => [{ path: 'Dockerfile', content, executable: false }];
  return [{ image: instance.image, files, timeoutS: TIMEOUT_S }];
}

// The row's run_script.sh and parser.py run in the container, and nothing of them is ported. An instance is resolved when every
// expected test is among those that the parser calls PASSED.

const WORKSPACE = '/workspace';

/** Some columns arrive as JSON text of a string. */
function unquoted(value: unknown): string {
  const text = stringOf(value);
  if (!/^".*"$/s.test(text)) return text;
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'string' ? parsed : text;
  } catch {
    return text;
  }
}

const outputSchema = z.object({ tests: z.array(z.object({ name: z.string(), status: z.string() })) });

/** Names that parser.py calls PASSED; a message where the text is not what it writes (observed: tests/suites/ownRulesDocker.test.ts). */
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

/** The end of the script: its output, and the tests that the parser names. */
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
export function entryScript(facts: {
  readonly baseCommit: string;
  /** Several lines of shell; only the last one runs, because the others are what the script does itself. */
  readonly beforeRepoSetCmd: string;
  readonly testFiles: readonly string[];
  /** Texts of the Dockerfiles: base, then instance. */
  readonly dockerfiles: readonly string[];
}): string {
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

function gradePro(instance: Instance, { harness }: SpecOptions): PlannedGrading {
  const { extra, base_commit } = instance;
  const [runScript, parser] = [stringOf(extra.run_script), stringOf(extra.parser)];
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
    dockerfiles: [stringOf(extra.base_dockerfile), stringOf(extra.instance_dockerfile)],
  });
  return planOwnRules(
    {
      instance,
      script,
      cwd: '/',
      container: { cwd: '/app' },
      decides: { runScript, parser },
      files: (patch) => ({
        [`${WORKSPACE}/patch.diff`]: withoutBinaryHunks(patch),
        [`${WORKSPACE}/run_script.sh`]: runScript,
        [`${WORKSPACE}/parser.py`]: parser,
      }),
      judge: (environment, run, request) => judge(instance, environment, run, request),
    },
    harness,
  );
}
