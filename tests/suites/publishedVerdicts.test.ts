// Verdicts that others published, read and judged again by our rules. The files are not part of the project.

import { spawnSync } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseTestIds } from '../../src/dataset/read/row.ts';
import { verdictInRunLog } from '../../src/formats/harness/instanceReport.ts';
import { readLeaderboardResults } from '../../src/formats/leaderboard/results.ts';
import { readVerdictMap } from '../../src/formats/pro/pro.ts';
import { resolutionOf } from '../../src/grading/grade.ts';
import { doubtedScores } from '../../src/report/measure/summary.ts';
import { judgeLive } from '../../src/suites/live/live.ts';
import { normaliseRow, planGrading } from '../support/suites.ts';

const tasks = join(import.meta.dirname, '../../../shared/data/tasks');

describe.skipIf(!existsSync(tasks))('published verdicts (needs ../shared/data/tasks)', () => {
  let dir = '';
  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), 'swebatch-tasks-'));
    for (const name of ['swe-bench-pro', 'multi-swe-bench-java', 'swe-bench-live'])
      spawnSync('tar', ['xJf', join(tasks, `${name}.tar.xz`), '-C', dir]);
  });
  afterAll(() => rmSync(dir, { recursive: true, force: true }));

  test('SWE-bench Pro: 1,273 verdicts of nine models are read and scored with each denominator, and 200 of 200 instances have a plan of grading', () => {
    const verdicts = globSync(join(dir, 'traj/*/eval_results.json')).map((path) =>
      readVerdictMap(readFileSync(path)),
    );
    expect(verdicts.every((read) => read.ok)).toBe(true);
    const all = verdicts.flatMap((read) => (read.ok ? [...read.value] : []));
    expect(all).toHaveLength(1273);
    // The second denominators, over all verdicts together: the label says which instances are left out.
    const trials = all.map(([instanceId, resolved]) => ({ instanceId, resolved, valid: true }));
    expect(
      doubtedScores(trials, 1).map(({ label, resolvedWithout: { x, n } }) => [label.split(' (')[0], x, n]),
    ).toEqual([
      ['whose gold patch fails its own grader', 286, 1264],
      ['whose text does not determine what their tests check', 267, 1136],
      ['of either list', 267, 1127],
    ]);

    const ids = readdirSync(join(dir, 'run_scripts'));
    const planned = ids.filter((id) => {
      const at = (name: string) => readFileSync(join(dir, 'run_scripts', id, name), 'utf8');
      const info = at('instance_info.txt');
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(info)?.[1] ?? '';
      const read = normaliseRow({
        ...{
          instance_id: id,
          repo: field('Repository'),
          base_commit: field('Base Commit'),
          problem_statement: 'x',
        },
        ...{
          fail_to_pass: field('FAIL_TO_PASS'),
          pass_to_pass: field('PASS_TO_PASS'),
          before_repo_set_cmd: 'true',
        },
        ...{
          selected_test_files_to_run: field('Test Files'),
          run_script: at('run_script.sh'),
          parser: at('parser.py'),
        },
      });
      expect(parseTestIds(field('FAIL_TO_PASS'))).toMatchObject({ ok: true });
      return read.ok && planGrading(read.instance).ok;
    });
    expect([planned.length, ids.length]).toEqual([200, 200]);
  });

  test('Multi-SWE-bench: the statuses that 50 of 50 logs end with give the published verdict', () => {
    const counts = { resolved: 0, unresolved: 0, incomplete: 0 };
    for (const path of globSync(join(dir, 'evaluation/java/verified/*/logs/*/run_instance.log'))) {
      const id = path.split('/').at(-2)!;
      const published = readLeaderboardResults(readFileSync(join(path, '../../../results/results.json')));
      if (!published.ok) throw new Error(published.message);
      const { resolved: won, incomplete_ids } = published.value;
      const read = verdictInRunLog(readFileSync(path), id);
      const resolved = resolutionOf(read!.tests_status!) === 'RESOLVED_FULL';
      expect([resolved, read!.resolved], path).toEqual([won.includes(id), won.includes(id)]);
      // Some were published as incomplete, though their log ends with a verdict: none of them is a success.
      const lost = (incomplete_ids as string[]).includes(id);
      counts[resolved ? 'resolved' : lost ? 'incomplete' : 'unresolved']++;
    }
    expect(counts).toEqual({ resolved: 1, unresolved: 39, incomplete: 10 });
  });

  test('SWE-bench-Live: every instance whose parser is known has a plan; lists made of its own statuses are resolved by them', () => {
    let [plans, judged, broken] = [0, 0, 0];
    for (const path of globSync(join(dir, '*/playground/*/result.json'))) {
      let result: Record<string, unknown>;
      try {
        // Python's json wrote NaN.
        result = JSON.parse(readFileSync(path, 'utf8').replaceAll(/\bNaN\b/g, 'null'));
      } catch {
        broken++;
        continue;
      }
      const statuses = new Map(Object.entries((result.test_status ?? {}) as Record<string, string>));
      const passed = [...statuses].filter(([, status]) => status === 'pass').map(([name]) => name);
      if (!existsSync(join(path, '../instance.json'))) continue;
      const row = JSON.parse(readFileSync(join(path, '../instance.json'), 'utf8')) as Record<string, unknown>;
      const read = normaliseRow({
        ...{ ...row, test_cmds: result.test_commands, rebuild_cmds: result.rebuild_commands },
        ...{ print_cmds: result.print_commands, log_parser: result.log_parser ?? '' },
        ...{ FAIL_TO_PASS: passed.slice(0, 1), PASS_TO_PASS: passed.slice(1) },
      });
      if (passed.length === 0 || !read.ok) continue;
      if (planGrading(read.instance).ok) plans++;
      if (judgeLive(read.instance, statuses).resolved) judged++;
    }
    expect({ plans, judged, broken }).toEqual({ plans: 55, judged: 55, broken: 1 });
  });
});
