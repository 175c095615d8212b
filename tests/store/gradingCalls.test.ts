// Calls of tests in the ledger: none of the agent's, ended by whoever grades after a process that died, and gone with their run.
import { expect, test } from 'vitest';
import { all } from '../../src/store/query.ts';
import {
  abandonGradingCalls,
  beginCall,
  endedCalls,
  GRADING,
  gradingMoney,
  insertJudgeCall,
  judgeCallsOf,
} from '../../src/store/records/modelCalls.ts';
import { removeRun, spentNano } from '../../src/store/records/runs.ts';
import { beginAttempt, endAttempt, leaseTrial, trialsOf } from '../../src/store/records/trials.ts';
import { verifyRun } from '../../src/store/verifyRun.ts';
import { ending, freshStore, planted } from './storeFixtures.ts';

test('calls of tests are metered, are no calls of the agent, and do not stay in flight', () => {
  const store = freshStore();
  const run = planted(store, { ids: ['a__a-1'] });
  const [trial] = trialsOf(store, run.id);
  leaseTrial(store, trial!.id, 'o', 0);
  const at = '2026-01-01T00:00:00.000Z';
  const { id } = beginAttempt(store, trial!.id, { startedAt: at, slot: 1, config: '{}' });
  endAttempt(store, id, ending('submitted'), 'seal');
  const call = { attempt_id: id, step: 0, try: 0, started_at: at, model_asked: 'judge-1', estimate_nano: 7 };
  beginCall(store, { ...call, label: GRADING });
  expect(abandonGradingCalls(store, run.id)).toBe(1);
  expect(abandonGradingCalls(store, run.id)).toBe(0);
  expect(endedCalls(store, id)).toEqual([]);
  expect(gradingMoney(store, id)).toEqual({
    ...{ calls: 1, failedCalls: 1, unknownCalls: 1, costNano: null, models: 'judge-1' },
  });
  // What may have been billed counts against the budget.
  expect(spentNano(store, run.id)).toMatchObject({ committedNano: 7, unknownCalls: 1 });
  const bytes = Buffer.from('x');
  const said = { dialect: 'chat', operation: 'generate', model: 'judge-1', status: 200, headers: '{}' };
  insertJudgeCall(store, {
    ...{ attempt_id: id, at, key: 'k', ...said, request: bytes, response: bytes, reply: '{}' },
  });
  expect(judgeCallsOf(store, id)).toHaveLength(1);
  expect(verifyRun(store, run).checks.filter(({ ok }) => !ok)).toEqual([]);
  removeRun(store, run.id);
  expect(all(store)`SELECT * FROM judge_calls`).toEqual([]);
});
