/** Turns a dataset row into everything that grading needs: image, script, parser, expected tests. A row that cannot be graded gets a reason. */
import { z } from 'zod';
import { eachLineWith } from '../../base/python/lines.ts';
import { sha256 } from '../../base/sha256.ts';
import { type Instance, imageOf } from '../../dataset/instance.ts';
import type { HarnessDialect } from '../parsers/logParser.ts';
import { findParser, officialRegistry, type ParserRegistry } from '../parsers/parserRegistry.ts';
import { type LogSuite, MARK } from '../readLog.ts';
import pythonFacts from './python.json' with { type: 'json' };
import gymFacts from './sweGym.json' with { type: 'json' };
import {
  type RepoFacts,
  type ScriptFacts,
  type ScriptRow,
  synthesiseScript,
  testDirectives,
} from './synthesise.ts';

/** A binary file that a text patch cannot carry (Multimodal): put in place just before the tests. */
export interface Asset {
  readonly path: string;
  readonly url: string | undefined;
}

export interface GradeSpec {
  readonly instanceId: string;
  readonly repo: string;
  readonly version: string;
  readonly image: string;
  readonly workdir: string;
  /** As the row has it or as it was made from the tables; `scriptToRun` is what runs. */
  readonly evalScript: string;
  readonly scriptToRun: string;
  readonly logParser: string;
  readonly evalType: 'pass_and_fail' | 'fail_only';
  readonly failToPass: readonly string[];
  readonly passToPass: readonly string[];
  readonly testPatch: string;
  readonly goldPatch: string;
  readonly assets: readonly Asset[];
  readonly dialect: HarnessDialect;
  /** Its harness reads logs and applies patches in its own way; absent for that of SWE-bench. */
  readonly suite?: LogSuite;
  /** Where the script comes from. */
  readonly source: 'row' | 'install_config' | 'tables';
  /** sha256 of everything that decides the verdict. */
  readonly specHash: string;
}

export interface SpecOptions {
  readonly dialect?: HarnessDialect;
  readonly parsers?: ParserRegistry;
}
export type SpecResult =
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

const assetSchema = z.object({ path: z.string().min(1), url: z.string().optional() });
const assetsSchema = z.object({
  test_patch: z.array(assetSchema).nullish(),
  patch: z.array(assetSchema).nullish(),
});

/** `image_assets` is JSON text in the published datasets and an object in task repositories. */
function assetsOf(raw: unknown): Asset[] | { reason: string } {
  if (raw === undefined || raw === null || raw === '') return [];
  try {
    const parsed = assetsSchema.parse(typeof raw === 'string' ? JSON.parse(raw) : raw);
    return [...(parsed.test_patch ?? []), ...(parsed.patch ?? [])].map(({ path, url }) => ({ path, url }));
  } catch {
    return no('its image_assets column cannot be read');
  }
}

const TABLES: Readonly<Record<string, RepoFacts>> = pythonFacts;
const tableOf = (repo: string): RepoFacts | undefined =>
  Object.hasOwn(TABLES, repo) ? TABLES[repo] : undefined;

const textOrList = z.union([z.string(), z.array(z.string())]).nullish();
const installConfigSchema = z.object({
  test_cmd: z.union([z.string().min(1), z.array(z.string()).min(1)]),
  install: textOrList,
  eval_commands: z.array(z.string()).nullish(),
  log_parser: z.string().nullish(),
});

/** SWE-rebench images have no locale set: its harness puts this before both commands. */
const REBENCH_LOCALE = 'LANG=C.UTF-8 LC_ALL=C.UTF-8';

type Script = Pick<GradeSpec, 'evalScript' | 'logParser' | 'source' | 'suite'>;
type ScriptResult = ({ ok: true } & Script) | { ok: false; reason: string };

const no = (reason: string): { ok: false; reason: string } => ({ ok: false, reason });

function fromInstallConfig(instance: Instance, raw: unknown): ScriptResult {
  const parsed = installConfigSchema.safeParse(raw);
  if (!parsed.success) return no('its install_config has no usable test_cmd');
  const { test_cmd, install, eval_commands, log_parser } = parsed.data;
  const logParser = log_parser ?? instance.log_parser;
  if (!logParser) return no('its install_config names no log_parser');
  const test = Array.isArray(test_cmd) ? test_cmd.at(-1)! : test_cmd;
  const setup = Array.isArray(install) ? install.join(' ; ') : install;
  const facts: ScriptFacts = {
    test_cmd: `${REBENCH_LOCALE} ${test}`,
    ...(setup && { install: `${REBENCH_LOCALE} ${setup}` }),
    ...(eval_commands && { eval_commands }),
  };
  return {
    ok: true,
    // Its harness is a fork of 4.x and resets existing test files only.
    evalScript: synthesiseScript(instance, facts, 'v4.1'),
    logParser,
    source: 'install_config',
  };
}

/** Why a row of a related dataset cannot be graded here, so that it does not look like a broken row. */
function foreignReason(instance: Instance): string | undefined {
  const { extra } = instance;
  if (Array.isArray(extra.test_cmds))
    return 'SWE-bench-Live rows bring their own commands and parser, which are not run here';
  if (extra.dockerhub_tag !== undefined)
    return 'SWE-bench Pro rows need the run_script and parser of their own repository';
  if (extra.fix_patch !== undefined) return 'Multi-SWE-bench rows are graded by their own harness';
  if (instance.repo.startsWith('swesmith/'))
    return 'SWE-smith rows name no test command and no log parser, and their images hold the repository without the bug of the task: bring images, eval_script and log_parser as docs/grading.md says';
  return undefined;
}

function fromTables(instance: Instance, dialect: HarnessDialect): ScriptResult {
  const gym = gymFactsOf(instance.repo);
  const repo = tableOf(instance.repo) ?? gym;
  if (!repo)
    return no(
      foreignReason(instance) ?? `it has no eval_script, and no test command is known for "${instance.repo}"`,
    );
  const facts = repo.groups.find(({ versions }) => versions.split(' ').includes(instance.version));
  if (!facts || instance.version === '')
    return no(
      `it has no eval_script, and no test command is known for ${instance.repo} version "${instance.version}"`,
    );
  const logParser = instance.log_parser ?? repo.log_parser;
  if (repo === gym)
    return {
      ...{ ok: true, evalScript: gymScript(instance, facts), logParser, source: 'tables', suite: 'swe-gym' },
    };
  return { ok: true, evalScript: synthesiseScript(instance, facts, dialect), logParser, source: 'tables' };
}

function scriptOf(instance: Instance, dialect: HarnessDialect): ScriptResult {
  const { eval_script, log_parser, extra } = instance;
  if (eval_script !== undefined) {
    const known = log_parser ?? tableOf(instance.repo)?.log_parser;
    if (known === undefined) return no('it has an eval_script but names no log_parser');
    return { ok: true, evalScript: eval_script, logParser: known, source: 'row' };
  }
  if (instance.test_patch === '')
    return no(foreignReason(instance) ?? 'it has neither an eval_script nor a test_patch');
  if (extra.install_config != null) return fromInstallConfig(instance, extra.install_config);
  return fromTables(instance, dialect);
}

/** For rows without the column: the repositories whose parsers record failures only, as 4.1 and 5.x list them. */
const FAIL_ONLY: Readonly<Record<HarnessDialect, readonly string[]>> = {
  'v4.1': ['chartjs/Chart.js', 'processing/p5.js', 'markedjs/marked'],
  v5: [
    'chartjs/Chart.js',
    'processing/p5.js',
    'markedjs/marked',
    'bpmn-io/bpmn-js',
    'openlayers/openlayers',
    'eslint/eslint',
  ],
};
const evalTypeOf = ({ eval_type, repo }: Instance, dialect: HarnessDialect): GradeSpec['evalType'] =>
  eval_type ?? (FAIL_ONLY[dialect].includes(repo) ? 'fail_only' : 'pass_and_fail');

export function resolveGradeSpec(instance: Instance, options: SpecOptions = {}): SpecResult {
  const asked = options.dialect ?? 'v5';
  const refuse = (reason: string) => no(`${instance.instance_id} cannot be graded: ${reason}`);
  const script = scriptOf(instance, asked);
  if (!script.ok) return refuse(script.reason);
  const { suite } = script;
  // Whatever dialect is asked for: a suite has one harness.
  const dialect = suite === undefined ? asked : 'v4.1';
  if (!findParser(options.parsers ?? officialRegistry(), script.logParser))
    return refuse(`no log parser is called "${script.logParser}"; give one under grading.parsers`);
  if (instance.FAIL_TO_PASS.length + instance.PASS_TO_PASS.length === 0)
    return refuse('it expects no tests at all');
  const assets = assetsOf(instance.extra.image_assets);
  if (!Array.isArray(assets)) return refuse(assets.reason);

  const decides = {
    image: imageOf(instance),
    evalScript: script.evalScript,
    logParser: script.logParser,
    evalType: evalTypeOf(instance, dialect),
    failToPass: instance.FAIL_TO_PASS,
    passToPass: instance.PASS_TO_PASS,
    assets,
    ...(suite !== undefined && { suite }),
  } as const;
  return {
    ok: true,
    spec: {
      ...decides,
      instanceId: instance.instance_id,
      repo: instance.repo,
      version: instance.version,
      workdir: '/testbed',
      scriptToRun: dialect === 'v5' ? withExitCode(script.evalScript) : script.evalScript,
      testPatch: instance.test_patch,
      goldPatch: instance.patch,
      dialect,
      source: script.source,
      specHash: sha256(JSON.stringify(decides)),
    },
  };
}

// SWE-Gym: rows of SWE-bench's columns for eleven more repositories. Its harness is an early fork of SWE-bench's, which sets no marks
// around the tests, so it has its own script here, its own commands that apply a patch, and its own way to read a log.

/** By repository in lower case, as its harness looks it up. */
const FACTS: Readonly<Record<string, RepoFacts>> = gymFacts;

const gymFactsOf = (repo: string): RepoFacts | undefined => {
  const name = repo.toLowerCase();
  return Object.hasOwn(FACTS, name) ? FACTS[name] : undefined;
};

const HEREDOC = 'EOF_114329324912';
const OLD_NAME = '--- a/';

/** Its harness takes everything behind the first `--- a/` of a line, wherever in the line that stands. */
export function gymResetPaths(patch: string): string[] {
  const paths: string[] = [];
  eachLineWith(patch, OLD_NAME, (line) => {
    paths.push(line.slice(line.indexOf(OLD_NAME) + OLD_NAME.length));
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

const testCommand = (row: ScriptRow, facts: ScriptFacts): string =>
  row.repo === 'python/mypy'
    ? `${facts.test_cmd} "${caseNames(row.test_patch).join(' or ')}"`
    : [facts.test_cmd, ...testDirectives(row.repo, row.test_patch)].join(' ');

/** Byte for byte the eval script of its harness. */
export function gymScript(row: ScriptRow, facts: ScriptFacts): string {
  const reset = `git checkout ${row.base_commit} ${gymResetPaths(row.test_patch).join(' ')}`;
  const lines = [
    '#!/bin/bash',
    'set -xo pipefail',
    'source /opt/miniconda3/bin/activate',
    'conda activate testbed',
    'cd /testbed',
    ...(facts.eval_commands ?? []),
    'git config --global --add safe.directory /testbed',
    'cd /testbed',
    'git status',
    'git show',
    `git diff ${row.base_commit}`,
    'source /opt/miniconda3/bin/activate',
    'conda activate testbed',
    ...(facts.install === undefined ? [] : [facts.install]),
    reset,
    `git apply -v - <<'${HEREDOC}'\n${row.test_patch}\n${HEREDOC}`,
    testCommand(row, facts),
    reset,
  ];
  return `${lines.join('\n')}\n`;
}
