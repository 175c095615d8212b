/** The eval script of a classic row (12 columns, Python), from the facts the harness had in its tables. */
import { eachLineWith } from '../../base/python/lines.ts';
import type { HarnessDialect } from '../parsers/logParser.ts';

export interface ScriptFacts {
  readonly test_cmd: string;
  readonly install?: string;
  readonly eval_commands?: readonly string[];
}

/** Of one repository, by groups of versions. */
export interface RepoFacts {
  readonly log_parser: string;
  readonly groups: readonly (ScriptFacts & { readonly versions: string })[];
}

export interface ScriptRow {
  readonly repo: string;
  readonly base_commit: string;
  readonly test_patch: string;
}

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

/** Byte for byte the script that official rows carry; `v4.1` resets existing files only, with the bug that follows from it. */
export function synthesiseScript(row: ScriptRow, facts: ScriptFacts, dialect: HarnessDialect = 'v5'): string {
  const files = dialect === 'v5' ? touchedPaths(row.test_patch) : modifiedPaths(row.test_patch);
  const reset = `git checkout ${row.base_commit} ${files.join(' ')}`;
  const lines = [
    '#!/bin/bash',
    'set -uxo pipefail',
    'source /opt/miniconda3/bin/activate',
    'conda activate testbed',
    'cd /testbed',
    ...(facts.eval_commands ?? []),
    'git config --global --add safe.directory /testbed',
    'cd /testbed',
    'git status',
    'git show',
    `git -c core.fileMode=false diff ${row.base_commit}`,
    'source /opt/miniconda3/bin/activate',
    'conda activate testbed',
    ...(facts.install === undefined ? [] : [facts.install]),
    reset,
    `git apply -v - <<'${HEREDOC}'\n${row.test_patch}\n${HEREDOC}`,
    ": '>>>>> Start Test Output'",
    [facts.test_cmd, ...testDirectives(row.repo, row.test_patch)].join(' '),
    ": '>>>>> End Test Output'",
    reset,
  ];
  return `${lines.join('\n')}\n`;
}
