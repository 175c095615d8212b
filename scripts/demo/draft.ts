// A row of the demo dataset without its two test lists: from the stream of its repository and the text of its issue.
// Both lists are measured by deriveDemo.ts; a test compares everything else with what stands in demo.jsonl.
import { spawnSync } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../../src/demo/baseImage.ts';
import { DEMO_DIR, type DemoRow, streamFile } from '../../src/demo/demoDataset.ts';

interface RepoFacts {
  version: string;
  log_parser: string;
  test_command: string;
  /** Regular expression: which files of a fix are its tests. */
  test_files: string;
  /** How a test file is named on the command line: its path, or as a Python module. */
  directive: 'path' | 'module';
}

interface Issue {
  fix: string;
  difficulty: string;
  text: string;
  hints: string;
}

/** An issue file: "key: value" lines between two "---", the text, and after "---hints---" the hints. */
function readIssue(id: string): Issue {
  const [, head, rest] = /^---\n([\s\S]*?)\n---\n([\s\S]*)$/.exec(
    readFileSync(join(DEMO_DIR, 'issues', `${id}.md`), 'utf8'),
  ) ?? ['', '', ''];
  const facts = Object.fromEntries(head!.split('\n').map((line) => line.split(': ') as [string, string]));
  const [text, hints = ''] = rest!.split('---hints---\n');
  if (!facts.fix || !facts.difficulty || !text)
    throw new Error(`issues/${id}.md lacks fix, difficulty or text`);
  return { fix: facts.fix, difficulty: facts.difficulty, text: text.trim(), hints: hints.trim() };
}

/** A person's own settings would change how a patch looks, and with it the row. */
const PLAIN = ['core.autocrlf=false', 'core.abbrev=7', 'diff.noprefix=false', 'diff.mnemonicPrefix=false'];

/** Runs git in a repository; its output, or an error that names the command. */
export function git(dir: string, ...args: string[]): string {
  const done = run('git', ['-C', dir, ...PLAIN.flatMap((setting) => ['-c', setting]), ...args]);
  if (done.code !== 0) throw new Error(`git ${args.join(' ')}: ${done.stderr}`);
  return done.stdout;
}

function importStream(name: string, into: string): void {
  const dir = join(into, name);
  git('.', 'init', '-q', '--bare', dir);
  const stream = openSync(streamFile(name), 'r');
  const done = spawnSync('git', ['-C', dir, 'fast-import', '--quiet'], {
    stdio: [stream, 'ignore', 'pipe'],
    encoding: 'utf8',
  });
  closeSync(stream);
  if (done.status !== 0) throw new Error(`git fast-import of ${name} failed: ${done.stderr}`);
}

function filesOf(patch: string): string[] {
  return [...patch.matchAll(/^diff --git a\/.* b\/(.*)$/gm)].map((found) => found[1]!);
}

/** The official skeleton (see datasets/README.md); the images hold everything, so there is nothing to install. */
function evalScript(base: string, testPatch: string, facts: RepoFacts): string {
  const files = filesOf(testPatch);
  const directives =
    facts.directive === 'path' ? files : files.map((file) => file.replace(/\.py$/, '').replaceAll('/', '.'));
  const reset = `git checkout ${base} ${files.join(' ')}`;
  return `${[
    '#!/bin/bash',
    'set -uxo pipefail',
    'cd /testbed',
    'git config --global --add safe.directory /testbed',
    'cd /testbed',
    'git status',
    'git show',
    `git -c core.fileMode=false diff ${base}`,
    reset,
    "git apply -v - <<'EOF_114329324912'",
    `${testPatch.replace(/\n$/, '')}`,
    'EOF_114329324912',
    ": '>>>>> Start Test Output'",
    `${facts.test_command} ${directives.join(' ')}`,
    ": '>>>>> End Test Output'",
    reset,
  ].join('\n')}\n`;
}

function draftRow(id: string, repos: Record<string, RepoFacts>, work: string): DemoRow {
  const name = /^swebatch__(.+)-\d+$/.exec(id)?.[1] ?? '';
  const facts = repos[name];
  if (!facts) throw new Error(`${id}: repos.json does not know ${name}`);
  const issue = readIssue(id);
  const dir = join(work, name);
  const fix = git(dir, 'rev-parse', `${issue.fix}^{commit}`).trim();
  const base = git(dir, 'rev-parse', `${fix}^`).trim();
  const changed = git(dir, 'diff', '--name-only', base, fix).trim().split('\n');
  const tests = changed.filter((file) => new RegExp(facts.test_files).test(file));
  const sources = changed.filter((file) => !tests.includes(file));
  const testPatch = git(dir, 'diff', '--no-color', base, fix, '--', ...tests);
  return {
    repo: `swebatch/${name}`,
    instance_id: id,
    base_commit: base,
    patch: git(dir, 'diff', '--no-color', base, fix, '--', ...sources),
    test_patch: testPatch,
    problem_statement: issue.text,
    hints_text: issue.hints,
    created_at: git(dir, 'show', '-s', '--format=%ad', '--date=format:%Y-%m-%dT%H:%M:%SZ', fix).trim(),
    version: facts.version,
    FAIL_TO_PASS: '[]',
    PASS_TO_PASS: '[]',
    environment_setup_commit: base,
    image: `swebatch-demo/${name}-${id.split('-').at(-1)}:1`,
    eval_script: evalScript(base, testPatch, facts),
    log_parser: facts.log_parser,
    eval_type: 'pass_and_fail',
    difficulty: issue.difficulty,
  };
}

/** All rows in the order of their ids; the repositories are unpacked below `work`, one bare repository each. */
export function draftRows(work: string): DemoRow[] {
  const repos = JSON.parse(readFileSync(join(DEMO_DIR, 'repos.json'), 'utf8')) as Record<string, RepoFacts>;
  for (const name of Object.keys(repos)) importStream(name, work);
  const ids = readdirSync(join(DEMO_DIR, 'issues')).map((file) => file.replace(/\.md$/, ''));
  return ids.sort().map((id) => draftRow(id, repos, work));
}
