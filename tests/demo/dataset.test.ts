// The bundled dataset without Docker: its shape, that it is what its sources give, and that its repositories are no toys.

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { draftRows, git } from '../../scripts/demo/draft.ts';
import { headOf, readInstance } from '../../src/dataset/dataset.ts';
import { DEMO_DIR, DEMO_FILE, readDemoRows, streamName } from '../../src/demo/demoDataset.ts';
import { resolveGradeSpec } from '../../src/grading/specs/spec.ts';
import { loadDataset } from '../../src/suites/loadDataset.ts';

const rows = readDemoRows();
const ids = rows.map((row) => row.instance_id);

let work: string;
let drafts: ReturnType<typeof draftRows>;
beforeAll(() => {
  work = mkdtempSync(join(tmpdir(), 'swebatch-demo-test-'));
  drafts = draftRows(work);
});
afterAll(() => rmSync(work, { recursive: true, force: true }));

const repository = (row: { repo: string }) => join(work, streamName(row));
const isTest = (file: string) => /^tests?\//.test(file);
const isSource = (file: string) => /\.(py|m?js)$/.test(file) && !isTest(file);
const filesOf = (patch: string) =>
  [...patch.matchAll(/^diff --git a\/(\S+) b\//gm)].map((found) => found[1]!);

describe('demo dataset', () => {
  test('has at least 12 instances over at least 4 repositories, in Python and JavaScript', () => {
    expect(rows.length).toBeGreaterThanOrEqual(12);
    expect(new Set(ids).size).toBe(rows.length);
    expect(new Set(rows.map((row) => row.repo)).size).toBeGreaterThanOrEqual(4);
    const sources = rows.flatMap((row) => filesOf(row.patch));
    expect(sources.some((file) => file.endsWith('.py'))).toBe(true);
    expect(sources.some((file) => file.endsWith('.js'))).toBe(true);
  });

  test('loads through the reader that a run uses, and every row can be graded', async () => {
    const loaded = await loadDataset(DEMO_FILE);
    if (!loaded.ok) throw new Error(JSON.stringify(loaded));
    expect(loaded.dataset.rows.map((row) => headOf(row).instance_id)).toEqual(ids);
    for (const instance of loaded.dataset.rows.map(readInstance))
      expect(resolveGradeSpec(instance)).toMatchObject({ ok: true });
  });

  test('uses the official parsers pytest, django and tap', () => {
    expect(new Set(rows.map((row) => row.log_parser))).toEqual(
      new Set(['parse_log_pytest', 'parse_log_django', 'parse_log_tap']),
    );
  });

  test('is what its streams and issue texts give, but for the two measured lists', () => {
    const bare = rows.map((row) => ({ ...row, FAIL_TO_PASS: '[]', PASS_TO_PASS: '[]' }));
    expect(bare).toEqual(drafts);
  });

  test('has three gold patches that touch two files or more', () => {
    expect(rows.filter((row) => filesOf(row.patch).length >= 2).length).toBeGreaterThanOrEqual(3);
  });

  test.each(rows)('$instance_id: gold touches sources only, the test patch tests only', (row) => {
    expect(filesOf(row.patch).length).toBeGreaterThan(0);
    expect(filesOf(row.patch).filter(isTest)).toEqual([]);
    expect(filesOf(row.test_patch).length).toBeGreaterThan(0);
    expect(filesOf(row.test_patch).filter((file) => !isTest(file))).toEqual([]);
  });

  test.each(rows)('$instance_id: has tests to fix and tests to keep, all names different', (row) => {
    const fix = JSON.parse(row.FAIL_TO_PASS) as string[];
    const keep = JSON.parse(row.PASS_TO_PASS) as string[];
    expect(fix.length).toBeGreaterThan(0);
    expect(keep.length).toBeGreaterThan(0);
    expect(new Set([...fix, ...keep]).size).toBe(fix.length + keep.length);
  });

  test.each(rows)('$instance_id: the repository has 300 source lines and 20 commits at the base', (row) => {
    const dir = repository(row);
    const commits = Number(git(dir, 'rev-list', '--count', row.base_commit));
    const sources = git(dir, 'ls-tree', '-r', '--name-only', row.base_commit)
      .trim()
      .split('\n')
      .filter(isSource);
    const lines = sources.flatMap((file) =>
      git(dir, 'show', `${row.base_commit}:${file}`)
        .split('\n')
        .filter((line) => line.trim() !== ''),
    );
    expect(commits).toBeGreaterThanOrEqual(20);
    expect(lines.length).toBeGreaterThanOrEqual(300);
  });

  test.each(rows)('$instance_id: the eval script installs nothing and has the official frame', (row) => {
    const lines = row.eval_script.split('\n');
    expect(lines.slice(0, 3)).toEqual(['#!/bin/bash', 'set -uxo pipefail', 'cd /testbed']);
    expect(row.eval_script).not.toMatch(/\b(pip|apt|apt-get|npm|conda|curl|wget) /);
    const start = lines.indexOf(": '>>>>> Start Test Output'");
    expect(lines.indexOf(": '>>>>> End Test Output'")).toBe(start + 2);
    const reset = `git checkout ${row.base_commit} ${filesOf(row.test_patch).join(' ')}`;
    expect(lines.filter((line) => line === reset)).toHaveLength(2);
    expect(row.eval_script).toContain(
      `git apply -v - <<'EOF_114329324912'\n${row.test_patch}EOF_114329324912\n`,
    );
  });

  test('states no solution: no line that gold adds stands in an issue', () => {
    for (const row of rows) {
      const added = row.patch.split('\n').filter((line) => /^\+[^+]/.test(line) && line.trim().length > 25);
      const text = `${row.problem_statement}\n${row.hints_text}`;
      expect(added.filter((line) => text.includes(line.slice(1).trim()))).toEqual([]);
    }
  });
});

describe('scripted replies', () => {
  const STEP_LIMIT = 15;
  interface Script {
    latency_ms: number;
    replies: { content: string }[];
  }
  const scripts = new Map(
    ids.map((id) => [
      id,
      JSON.parse(readFileSync(join(DEMO_DIR, 'replies', `${id}.json`), 'utf8')) as Script,
    ]),
  );
  const commandsOf = (text: string) =>
    [...text.matchAll(/```bash\s*\n([\s\S]*?)\n```/g)].map((found) => found[1]!);
  const submits = (text: string) =>
    commandsOf(text).some((command) => command.startsWith('echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && '));

  test('there is one script for each instance, and none beside', () => {
    expect(existsSync(join(DEMO_DIR, 'replies'))).toBe(true);
    expect(readdirSync(join(DEMO_DIR, 'replies')).sort()).toEqual(ids.map((id) => `${id}.json`).sort());
  });

  test('all but two end with a submission after 4 to 10 steps', () => {
    const submitting = [...scripts.values()].filter((script) => submits(script.replies.at(-1)!.content));
    expect(submitting).toHaveLength(rows.length - 2);
    for (const { replies } of submitting) {
      expect(replies.length).toBeGreaterThanOrEqual(4);
      expect(replies.length).toBeLessThanOrEqual(10);
      expect(replies.map((reply) => commandsOf(reply.content).length)).toEqual(replies.map(() => 1));
      expect(replies.slice(0, -1).filter((reply) => submits(reply.content))).toEqual([]);
    }
  });

  test('one explores until the step limit of the demo', () => {
    const long = [...scripts.values()].filter((script) => script.replies.length >= STEP_LIMIT);
    expect(long).toHaveLength(1);
    expect(long[0]!.replies.filter((reply) => submits(reply.content))).toEqual([]);
    expect(long[0]!.replies.every((reply) => commandsOf(reply.content).length === 1)).toBe(true);
  });

  test('one never submits: its last three replies hold no command', () => {
    const lost = [...scripts.values()].filter(
      (script) => commandsOf(script.replies.at(-1)!.content).length === 0,
    );
    expect(lost).toHaveLength(1);
    expect(lost[0]!.replies.slice(-3).flatMap((reply) => commandsOf(reply.content))).toEqual([]);
  });
});
