/**
 * SWE-Gym: rows of SWE-bench's columns for eleven more repositories. Its harness is an early fork of SWE-bench's, which sets no marks
 * around the tests, so it has its own script here, its own commands that apply a patch, and its own way to read a log.
 */
import { eachLineWith } from '../../base/python/lines.ts';
import gymFacts from './sweGym.json' with { type: 'json' };
import { type RepoFacts, type ScriptFacts, type ScriptRow, testDirectives } from './synthesise.ts';

/** By repository in lower case, as its harness looks it up. */
const FACTS: Readonly<Record<string, RepoFacts>> = gymFacts;

export const gymFactsOf = (repo: string): RepoFacts | undefined => {
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
