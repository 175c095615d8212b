/** Turns a dataset row into everything that grading needs: image, script, parser, expected tests. A row that cannot be graded gets a reason. */

import { z } from 'zod';
import { eachLineWith } from '../../base/python/lines.ts';
import { sha256 } from '../../base/sha256.ts';
import { nearest } from '../../base/text/closest.ts';
import { type Instance, imageOf } from '../../dataset/instance.ts';
import type { HarnessVersion } from '../parsers/logParser.ts';
import { findParser, officialRegistry, type ParserRegistry } from '../parsers/parserRegistry.ts';
import { type LogSuite, MARK } from '../readLog.ts';
import { foreignRow } from './foreignRows.ts';
import repositories from './repositories.json' with { type: 'json' };

export interface GradeSpec {
  readonly instanceId: string;
  readonly repo: string;
  readonly version: string;
  readonly image: string;
  readonly workdir: string;
  /** The script as the row has it or as it was made from the tables; `scriptToRun` is what runs. */
  readonly evalScript: string;
  readonly scriptToRun: string;
  readonly logParser: string;
  readonly evalType: 'pass_and_fail' | 'fail_only';
  readonly failToPass: readonly string[];
  readonly passToPass: readonly string[];
  readonly testPatch: string;
  readonly goldPatch: string;
  readonly assets: readonly Asset[];
  readonly harness: HarnessVersion;
  /** The suite whose harness reads logs and applies patches in its own way; absent for that of SWE-bench. */
  readonly suite?: LogSuite;
  /** The source of the script. */
  readonly source: 'row' | 'install_config' | 'tables';
  /** sha256 of everything that decides the verdict. */
  readonly specHash: string;
}

export interface SpecOptions {
  readonly harness?: HarnessVersion;
  readonly parsers?: ParserRegistry;
}
type SpecResult =
  | { readonly ok: true; readonly spec: GradeSpec }
  | { readonly ok: false; readonly reason: string };

const SHEBANG = '#!/bin/bash';
const FLAGS = 'set -uxo pipefail';
const OWN_LINES = new RegExp(`(?<![^\\n])(?:${SHEBANG}|${FLAGS})\\n`, 'g');

/**
 * The script as harness 5 runs it: the test command's own exit code is kept before the end marker and printed after it, where no
 * parser looks. A script without an end marker stays as it is.
 */
export function withExitCode(script: string): string {
  const lines = `${script.trim()}\n`.replace(OWN_LINES, '');
  const mark = lines.indexOf(MARK.end);
  const [from, end] = mark < 0 ? [0, 0] : [lines.lastIndexOf('\n', mark) + 1, lines.indexOf('\n', mark)];
  const told =
    mark < 0
      ? lines
      : `${lines.slice(0, from)}SWEBENCH_TEST_EXIT_CODE=$?
${lines.slice(from, end)}
echo "${MARK.exitCode}: $SWEBENCH_TEST_EXIT_CODE"${lines.slice(end)}`;
  return `${SHEBANG}\n${FLAGS}\n${told}`;
}

/** A binary file that a text patch cannot carry (Multimodal): put in place just before the tests. */
const assetSchema = z.object({ path: z.string().min(1), url: z.string().optional() });
type Asset = z.infer<typeof assetSchema>;
const assetsSchema = z.object({
  test_patch: z.array(assetSchema).nullish(),
  patch: z.array(assetSchema).nullish(),
});

/** `image_assets` is JSON text in the published datasets and an object in task repositories (observed: tests/grading/spec.test.ts). */
function assetsOf(raw: unknown): Asset[] | string {
  if (raw === undefined || raw === null || raw === '') return [];
  try {
    const parsed = assetsSchema.parse(typeof raw === 'string' ? JSON.parse(raw) : raw);
    return [...(parsed.test_patch ?? []), ...(parsed.patch ?? [])];
  } catch {
    return 'its image_assets column cannot be read';
  }
}

interface ScriptFacts {
  readonly test_cmd: string;
  readonly install?: string | undefined;
  readonly eval_commands?: readonly string[] | null | undefined;
}

type VersionFacts = Partial<ScriptFacts> & { readonly versions?: string };

/** The tables of the harness. Versions of a repository in groups differ from it in what the group says. */
interface RepoFacts extends VersionFacts {
  readonly log_parser: string;
  readonly groups?: readonly VersionFacts[];
}

const USUAL = { test_cmd: 'pytest -rA', install: 'python -m pip install -e .' };
const {
  'swe-bench': TABLE,
  'swe-gym': GYM_TABLE,
}: Record<'swe-bench' | 'swe-gym', Readonly<Record<string, RepoFacts>>> = repositories;
const repoIn = (table: typeof TABLE, repo: string): RepoFacts | undefined =>
  Object.hasOwn(table, repo) ? table[repo] : undefined;

function factsOf({ groups, ...repo }: RepoFacts, version: string): ScriptFacts | undefined {
  const group = (groups ?? [repo]).find(({ versions = '' }) => versions.split(' ').includes(version));
  return group && version !== '' ? { ...USUAL, ...repo, ...group } : undefined;
}

const textOrList = z.union([z.string(), z.array(z.string())]).nullish();
const installConfigSchema = z.object({
  test_cmd: z.union([z.string().min(1), z.array(z.string()).min(1)]),
  install: textOrList,
  eval_commands: z.array(z.string()).nullish(),
  log_parser: z.string().nullish(),
});

/** SWE-rebench images have no locale set: its harness puts this before both commands. */
const REBENCH_LOCALE = 'LANG=C.UTF-8 LC_ALL=C.UTF-8';

/** A text is why there is none. */
type Script = Pick<GradeSpec, 'evalScript' | 'logParser' | 'source' | 'suite'> | string;
function fromInstallConfig(instance: Instance, raw: unknown): Script {
  const parsed = installConfigSchema.safeParse(raw);
  if (!parsed.success) return 'its install_config has no usable test_cmd';
  const { test_cmd, install, eval_commands, log_parser } = parsed.data;
  const logParser = log_parser ?? instance.log_parser;
  if (!logParser) return 'its install_config names no log_parser';
  const test = Array.isArray(test_cmd) ? test_cmd.at(-1)! : test_cmd;
  const setup = Array.isArray(install) ? install.join(' ; ') : install;
  const facts = {
    test_cmd: `${REBENCH_LOCALE} ${test}`,
    install: setup ? `${REBENCH_LOCALE} ${setup}` : undefined,
    eval_commands,
  };
  // The harness is a fork of 4.x and resets existing test files only.
  return { evalScript: synthesiseScript(instance, facts, 'v4.1'), logParser, source: 'install_config' };
}

const foreignReason = ({ extra, ...columns }: Instance): string | undefined =>
  foreignRow({ ...extra, ...columns });

function scriptOf(instance: Instance, harness: HarnessVersion): Script {
  const { repo, version, eval_script, log_parser, extra } = instance;
  const table = repoIn(TABLE, repo);
  if (eval_script !== undefined) {
    const known = log_parser ?? table?.log_parser;
    if (known === undefined) return 'it has an eval_script but names no log_parser';
    return { evalScript: eval_script, logParser: known, source: 'row' };
  }
  if (instance.test_patch === '')
    return foreignReason(instance) ?? 'it has neither an eval_script nor a test_patch';
  if (extra.install_config != null) return fromInstallConfig(instance, extra.install_config);
  // By repository in lower case, as the harness of SWE-Gym looks it up.
  const known = table ?? repoIn(GYM_TABLE, repo.toLowerCase());
  if (!known)
    return foreignReason(instance) ?? `it has no eval_script, and no test command is known for "${repo}"`;
  const facts = factsOf(known, version);
  if (!facts) return `it has no eval_script, and no test command is known for ${repo} version "${version}"`;
  const logParser = log_parser ?? known.log_parser;
  if (table) return { evalScript: synthesiseScript(instance, facts, harness), logParser, source: 'tables' };
  const evalScript = synthesiseScript(instance, facts, 'swe-gym');
  return { evalScript, logParser, source: 'tables', suite: 'swe-gym' };
}

/** The repositories whose parsers record failures only, as 4.1 and 5.x list them, for rows without the column. */
const FAIL_ONLY_V41 = ['chartjs/Chart.js', 'processing/p5.js', 'markedjs/marked'];
const FAIL_ONLY: Readonly<Record<HarnessVersion, readonly string[]>> = {
  'v4.1': FAIL_ONLY_V41,
  v5: [...FAIL_ONLY_V41, 'bpmn-io/bpmn-js', 'openlayers/openlayers', 'eslint/eslint'],
};

export function resolveGradeSpec(instance: Instance, options: SpecOptions = {}): SpecResult {
  const asked = options.harness ?? 'v5';
  const refuse = (why: string) =>
    ({ ok: false, reason: `${instance.instance_id} cannot be graded: ${why}` }) as const;
  const script = scriptOf(instance, asked);
  if (typeof script === 'string') return refuse(script);
  const { suite, evalScript, logParser, source } = script;
  // A suite has one harness, whatever version is asked for.
  const harness = suite === undefined ? asked : 'v4.1';
  const parsers = options.parsers ?? officialRegistry();
  if (!findParser(parsers, logParser))
    return refuse(
      `no log parser is called "${logParser}"${nearest(logParser, parsers.keys()) || ';'} give one under grading.parsers`,
    );
  const {
    instance_id: instanceId,
    repo,
    version,
    FAIL_TO_PASS: failToPass,
    PASS_TO_PASS: passToPass,
  } = instance;
  if (failToPass.length + passToPass.length === 0) return refuse('it expects no tests at all');
  const assets = assetsOf(instance.extra.image_assets);
  if (typeof assets === 'string') return refuse(assets);

  const decides = {
    image: imageOf(instance),
    evalScript,
    logParser,
    evalType: instance.eval_type ?? (FAIL_ONLY[harness].includes(repo) ? 'fail_only' : 'pass_and_fail'),
    failToPass,
    passToPass,
    assets,
    ...(suite !== undefined && { suite }),
  } as const;
  return {
    ok: true,
    spec: {
      ...decides,
      instanceId,
      repo,
      version,
      workdir: '/testbed',
      scriptToRun: harness === 'v5' ? withExitCode(evalScript) : evalScript,
      testPatch: instance.test_patch,
      goldPatch: instance.patch,
      harness,
      source,
      specHash: sha256(JSON.stringify(decides)),
    },
  };
}

// The eval script of a classic row (12 columns, Python), from the facts the harness had in its tables. SWE-Gym has rows of SWE-bench's columns for
// eleven more repositories. SWE-Gym's harness is an early fork of SWE-bench's, which sets no marks around the tests, so it has its own commands
// that apply a patch, and its own way to read a log.

/** Files of these kinds are not named on the command line as tests; `csv` has no dot in the harness either. */
const NOT_TESTS = ['.json', '.png', 'csv', '.txt', '.md', '.jpg', '.jpeg', '.pkl', '.yml', '.yaml', '.toml'];
const HEREDOC = 'EOF_114329324912';

const HEADER = 'diff --git a/';

/** Every `diff --git a/… b/…` in the patch: what stands after the last ` b/`. */
export function touchedPaths(patch: string): string[] {
  const paths: string[] = [];
  eachLineWith(patch, HEADER, (line) => {
    const path = line.lastIndexOf(' b/');
    if (path >= line.indexOf(HEADER) + HEADER.length) paths.push(line.slice(path + 3));
  });
  return paths;
}

/** The paths that exist before the patch: `--- a/…` headers, which is what 4.1 resets. */
export function modifiedPaths(patch: string): string[] {
  const paths: string[] = [];
  eachLineWith(patch, '--- a/', (line, end) => {
    if (line.startsWith('--- a/') && patch.startsWith('+++ ', end + 1))
      paths.push(line.slice(6).split('\t')[0]!);
  });
  return paths;
}

export function testDirectives(repo: string, testPatch: string): string[] {
  const paths = touchedPaths(testPatch).filter((path) => !NOT_TESTS.some((ending) => path.endsWith(ending)));
  if (repo !== 'django/django') return paths;
  return paths.map((path) =>
    path
      .replace(/\.py$/, '')
      .replace(/^tests\//, '')
      .replaceAll('/', '.'),
  );
}

/** The harness of SWE-Gym takes everything behind the first `--- a/` of a line, wherever in the line that stands. */
export function gymResetPaths(patch: string): string[] {
  const paths: string[] = [];
  eachLineWith(patch, '--- a/', (line) => {
    paths.push(line.slice(line.indexOf('--- a/') + '--- a/'.length));
  });
  return paths;
}

const CASE = '[case ';

/** mypy keeps its tests in data files: each `[case name]` of the test patch, also one in a line around a change, is a keyword of pytest. */
function caseNames(patch: string): string[] {
  const names: string[] = [];
  for (let at = patch.indexOf(CASE); at >= 0; at = patch.indexOf(CASE, at)) {
    at += CASE.length;
    const end = patch.indexOf(']', at);
    if (end < 0) break;
    if (end > at) names.push(patch.slice(at, end));
    at = end;
  }
  return names;
}

/** Byte for byte the script that official rows carry, or that SWE-Gym makes; `v4.1` resets existing files only, with the bug that follows from it. */
export function synthesiseScript(
  { repo, base_commit, test_patch }: Pick<Instance, 'repo' | 'base_commit' | 'test_patch'>,
  facts: ScriptFacts,
  harness: HarnessVersion | LogSuite = 'v5',
): string {
  const gym = harness === 'swe-gym';
  const files = { v5: touchedPaths, 'v4.1': modifiedPaths, 'swe-gym': gymResetPaths }[harness](test_patch);
  const reset = `git checkout ${base_commit} ${files.join(' ')}`;
  const test =
    gym && repo === 'python/mypy'
      ? `${facts.test_cmd} "${caseNames(test_patch).join(' or ')}"`
      : [facts.test_cmd, ...testDirectives(repo, test_patch)].join(' ');
  const lines = [
    '#!/bin/bash',
    gym ? 'set -xo pipefail' : 'set -uxo pipefail',
    'source /opt/miniconda3/bin/activate',
    'conda activate testbed',
    'cd /testbed',
    ...(facts.eval_commands ?? []),
    'git config --global --add safe.directory /testbed',
    'cd /testbed',
    'git status',
    'git show',
    `git${gym ? '' : ' -c core.fileMode=false'} diff ${base_commit}`,
    'source /opt/miniconda3/bin/activate',
    'conda activate testbed',
    ...(facts.install === undefined ? [] : [facts.install]),
    reset,
    `git apply -v - <<'${HEREDOC}'\n${test_patch}\n${HEREDOC}`,
    ...(gym ? [test] : [`: '${MARK.start}'`, test, `: '${MARK.end}'`]),
    reset,
  ];
  return `${lines.join('\n')}\n`;
}
