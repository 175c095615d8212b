// A test log decides a verdict: a secret in it changes no byte, and is told of.
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { createRedactor } from '../../../src/base/text/redact.ts';
import type { EvaluationResult } from '../../../src/grading/gradingFrame.ts';
import { createEvents, type RunEvent } from '../../../src/run/events.ts';
import { tellVerdict, writeGradedFiles, writeVerdict } from '../../../src/run/record/verdicts.ts';
import { gradableTrials } from '../../../src/store/records/evaluations.ts';
import * as trials from '../../../src/store/records/trials.ts';
import { ending, freshStore, planted } from '../../store/storeFixtures.ts';
import { tempDir } from '../../support/cli.ts';

const redactor = createRedactor([{ name: 'WORD', value: 'sunday' }]);

test('the log is kept as it is, flagged, and readable by its owner only', async () => {
  const store = freshStore();
  const run = planted(store, { ids: ['a__a-1'] });
  const [trial] = trials.trialsOf(store, run.id);
  trials.leaseTrial(store, trial!.id, 'me', 1);
  const { id } = trials.beginAttempt(store, trial!.id, { startedAt: 'now', slot: 1, config: '{}' });
  trials.endAttempt(store, id, ending('submitted'), 'seal');
  const [gradable] = gradableTrials(store, run.id);
  const log = 'PASSED t.py::test_sunday\n';
  const result = {
    ...{ instanceId: 'a__a-1', outcome: 'resolved', resolved: true, resolvedStrict: true, log, script: '' },
    ...{ report: { 'a__a-1': { resolved: true, tests: ['t.py::test_sunday'] } }, suspicion: [], runLog: [] },
    ...{ harness: 'v5', network: 'default', startedAt: new Date(0), durationMs: 1, errorMessage: null },
    ...{ applyMethod: null, exitCode: 0, infraReason: null, imageDigest: null, specHash: '' },
  } as unknown as EvaluationResult;
  const label = { trialId: trial!.id, arm: 'default', instanceId: 'a__a-1', epoch: 1 };
  writeVerdict({ store, row: run, redactor }, gradable!, result);
  const row = store.prepare('SELECT log, report, suspicion FROM evaluations').get() as {
    log: Uint8Array;
    report: string;
    suspicion: string;
  };
  expect(gunzipSync(row.log).toString()).toBe(log);
  expect(JSON.parse(row.report)).toEqual(result.report);
  expect(JSON.parse(row.suspicion)).toMatchObject([{ rule: 'log_holds_secret', strict: false }]);

  const dir = tempDir();
  await writeGradedFiles({ store, row: run, dir, redactor }, { model: 'm', model_patch: '' }, label, result);
  const path = join(dir, 'logs/run_evaluation', run.name, 'm/a__a-1/test_output.txt');
  expect(readFileSync(path, 'utf8')).toBe(log);
  expect(statSync(path).mode & 0o077).toBe(0);
});

test.each([
  ['infra', { message: 'a__a-1: no reward of ‹redacted:WORD›' }],
  ['unresolved', {}],
])('the event of a verdict says why where nothing was decided: %s', (outcome, said) => {
  const result = {
    ...{ instanceId: 'a__a-1', outcome, resolved: null, resolvedStrict: null, log: null, script: '' },
    ...{ report: null, suspicion: [], runLog: [], limits: null, errorMessage: 'a__a-1: no reward of sunday' },
    ...{ harness: 'v5', network: 'default', startedAt: new Date(0), durationMs: 1, specHash: '' },
    ...{ applyMethod: null, exitCode: 0, infraReason: null, imageDigest: null },
  } as unknown as EvaluationResult;
  const label = { trialId: 1, arm: 'default', instanceId: 'a__a-1', epoch: 1 };
  const events = createEvents();
  const heard: RunEvent[] = [];
  events.on((event) => heard.push(event));
  tellVerdict({ redactor, events }, label, result);
  expect(heard).toEqual([{ type: 'graded', trial: label, outcome, resolved: null, durationMs: 1, ...said }]);
});
