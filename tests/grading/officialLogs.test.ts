// The 141 real logs with official reports: verdicts, test lists, the run report, cost.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Instance } from '../../src/dataset/instance.ts';
import { type InstanceVerdict, instanceReportText } from '../../src/formats/harness/instanceReport.ts';
import { type RunReport, runReportText } from '../../src/formats/harness/runReport.ts';
import { parsePredictions } from '../../src/formats/predictions.ts';
import { examine } from '../../src/grading/doubts/doubts.ts';
import { gradeLog } from '../../src/grading/grade.ts';
import type { HarnessVersion } from '../../src/grading/parsers/logParser.ts';
import { findParser, officialRegistry } from '../../src/grading/parsers/parserRegistry.ts';
import { resolveGradeSpec } from '../../src/grading/specs/spec.ts';
import { summarizeEvaluation } from '../../src/grading/storedReports.ts';
import { DATA, hasData, type OfficialLog, officialLogs, rowsOf, WITHOUT_DATA } from './officialData.ts';

/** Logs whose row changed between the dataset that was graded by and the one of today: none of these 141. */
const OTHER_REVISION: readonly string[] = [];

describe.skipIf(!hasData)(`official logs (${WITHOUT_DATA})`, () => {
  const rows = new Map<string, Instance>();
  let logs: OfficialLog[] = [];
  let verified: Instance[] = [];
  beforeAll(async () => {
    verified = await rowsOf('SWE-bench_Verified_test');
    for (const row of [
      ...verified,
      ...(await rowsOf('SWE-bench_Lite_test')),
      ...(await rowsOf('SWE-bench_dev')),
    ])
      if (!rows.has(row.instance_id)) rows.set(row.instance_id, row);
    logs = officialLogs();
  });

  const gradeAll = (
    harness: HarnessVersion,
  ): (OfficialLog & { verdict: InstanceVerdict; strict: boolean })[] =>
    logs.map((entry) => {
      const resolved = resolveGradeSpec(rows.get(entry.instanceId)!, { harness });
      if (!resolved.ok) throw new Error(resolved.reason);
      const { spec } = resolved;
      const grade = gradeLog(spec, entry.log, findParser(officialRegistry(), spec.logParser)!, harness);
      const { resolvedStrict } = examine(spec, entry.patch ?? '', grade);
      return { ...entry, verdict: grade.verdict, strict: resolvedStrict };
    });

  test('141 of 141 verdicts agree under v5 and under v4.1', () => {
    expect(logs).toHaveLength(141);
    for (const harness of ['v5', 'v4.1'] as const) {
      const differing = gradeAll(harness).filter(
        ({ verdict, report, instanceId }) => verdict.resolved !== report[instanceId]!.resolved,
      );
      expect(differing.map(({ name }) => name)).toEqual([]);
    }
  });

  test('test lists agree under v4.1, in order, except where the row is of another revision', () => {
    const differing = gradeAll('v4.1').filter(
      ({ verdict, report, instanceId }) =>
        instanceReportText({ [instanceId]: verdict }) !== instanceReportText(report),
    );
    expect(differing.map(({ name }) => name)).toEqual(OTHER_REVISION);
  });

  test('strict reading: of the resolved ones it doubts the one that changes a conftest.py, and no other', () => {
    const doubted = gradeAll('v5').filter(({ verdict, strict }) => verdict.resolved && !strict);
    expect(doubted.map(({ name }) => name)).toEqual(['curated/matplotlib__matplotlib-21568.modal.resolved']);
  });

  test('all of them regrade in under a second of processor time', () => {
    gradeAll('v5');
    const before = process.cpuUsage();
    gradeAll('v5');
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1e6).toBeLessThan(1);
  });

  test('the run report of verified-98 is reproduced, key by key', () => {
    const folder = join(DATA, 'grading-logs', 'verified-98');
    const text = readFileSync(join(folder, 'run-report.json'), 'utf8');
    const official = JSON.parse(text) as RunReport;
    const read = parsePredictions(
      readFileSync(join(folder, 'predictions.jsonl'), 'utf8'),
      'predictions.jsonl',
    );
    if (!read.ok) throw new Error(read.problems.join());
    const completed = new Map(
      gradeAll('v4.1')
        .filter(({ name }) => name.startsWith('verified-98/'))
        .map(({ instanceId, verdict }) => [instanceId, { report: { resolved: verdict.resolved } }] as const),
    );
    expect(completed.size).toBe(98);
    // Its log and report are missing from the published folder, but the run had them: the run report counts it as unresolved.
    completed.set('pydata__xarray-6992', { report: { resolved: false } });
    const report = summarizeEvaluation({
      instanceIds: verified.map((row) => row.instance_id),
      predictions: read.predictions,
      completed,
      harness: 'v4.1',
      leftovers: { containers: [], images: [] },
    });
    // The publisher emptied this list when it merged the reports of several runs; the harness lists all that have no prediction.
    expect(report.incomplete_ids).toHaveLength(400);
    expect(official.incomplete_ids).toEqual([]);
    expect(runReportText({ ...report, incomplete_ids: [] }).trimEnd()).toBe(text.trimEnd());
  });
});
