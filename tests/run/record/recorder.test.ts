// The record of an attempt: what was paid is never lost, what an attempt does after its end is not done, and secrets are in no column.
import { describe, expect, test } from 'vitest';
import { createRedactor } from '../../../src/base/text/redact.ts';
import type { CallRecord } from '../../../src/model/model.ts';
import { createBudget } from '../../../src/run/control/budget.ts';
import { createRecorder } from '../../../src/run/record/attemptJournal.ts';
import { spentNano } from '../../../src/store/records/runs.ts';
import * as trials from '../../../src/store/records/trials.ts';
import { verifyRun } from '../../../src/store/verifyRun.ts';
import { callRecord } from '../../model/harness.ts';
import { ending, freshStore, planted } from '../../store/storeFixtures.ts';
import { openedRun } from '../openedRun.ts';

const KEY = 'sk-canary/0123456789';
const DOLLAR = 1_000_000_000;
const CTX = { instanceId: 'a__a-1', step: 1 };
const began = { try: 0, modelAsked: 'm', startedAt: 0, estimateNano: 0.4 * DOLLAR };
const answered = (more: Partial<CallRecord> = {}) => callRecord({ costNano: 0.1 * DOLLAR, ...more });

function attempt() {
  const store = freshStore();
  const run = planted(store, { ids: ['a__a-1'] });
  const [trial] = trials.trialsOf(store, run.id);
  trials.leaseTrial(store, trial!.id, 'me', 1);
  const { id } = trials.beginAttempt(store, trial!.id, { startedAt: 'now', slot: 1, config: '{}' });
  const budget = createBudget(DOLLAR, 0);
  const redactor = createRedactor([{ name: 'KEY', value: KEY }]);
  const recorder = createRecorder(openedRun({ store, row: run, redactor, budget }), id, {
    onPhase: () => {},
    onCommand: () => {},
    onStep: () => {},
  });
  const end = () => {
    recorder.close();
    trials.endAttempt(store, id, ending('stalled'), 'seal');
  };
  const calls = () => store.prepare('SELECT * FROM model_calls').all() as Record<string, unknown>[];
  return { store, run, budget, recorder, on: recorder.callbacks, end, calls };
}

describe('recorder', () => {
  test('calls that are out at a time keep their rows, their labels and their money apart', async () => {
    const { budget, recorder, on, calls } = attempt();
    const main = { ...CTX, call: 0 };
    const title = { ...CTX, call: 1, label: 'title' };
    await on.onCallWanted!(main, 0.4 * DOLLAR, undefined, () => {});
    await on.onCallWanted!(title, 0.1 * DOLLAR, undefined, () => {});
    on.onCallBegan!(title, { ...began, estimateNano: 0.1 * DOLLAR });
    on.onCallBegan!(main, began);
    on.onCallEnded!(main, answered({ costNano: 0.3 * DOLLAR }));
    on.onCallEnded!(title, answered({ costNano: 0.05 * DOLLAR }));
    expect(calls()).toMatchObject([
      { label: 'title', state: 'ok', estimate_nano: 0.1 * DOLLAR, cost_nano: 0.05 * DOLLAR },
      { label: null, state: 'ok', estimate_nano: 0.4 * DOLLAR, cost_nano: 0.3 * DOLLAR },
    ]);
    expect(budget.spent()).toBe(0.35 * DOLLAR);
    expect(recorder.tally.costNano).toBe(0.35 * DOLLAR);
    // Nothing is held back any more.
    (await budget.reserve(0.6 * DOLLAR, undefined, () => {}))(0);
  });

  test('a call whose attempt ends first is in the record as possibly billed, with its estimate against the budget [T-22]', () => {
    const { store, run, budget, on, end, calls } = attempt();
    on.onCallBegan!(CTX, began);
    end();
    expect(calls()).toMatchObject([{ state: 'aborted', cost_nano: null }]);
    expect(calls()[0]!.notes).toContain('possibly billed');
    expect(budget.spent()).toBe(0.4 * DOLLAR);
    expect(spentNano(store, run.id)).toEqual({ nano: 0, unknownCalls: 1, committedNano: 0.4 * DOLLAR });
    expect(verifyRun(store, run).checks.filter((c) => !c.ok)).toEqual([]);
  });

  test('an answer that comes after the end of its attempt was paid: its cost is recorded, and nothing else happens [T-22]', () => {
    const { store, run, on, end, calls } = attempt();
    on.onCallBegan!(CTX, began);
    end();
    on.onCallEnded!(CTX, answered());
    expect(calls()).toMatchObject([{ state: 'ok', cost_nano: 0.1 * DOLLAR }]);
    expect(spentNano(store, run.id)).toMatchObject({ nano: 0.1 * DOLLAR, unknownCalls: 0 });
  });

  test('an agent that goes on after its end can neither pay nor write', async () => {
    const { on, end, calls } = attempt();
    end();
    await expect(on.onCallWanted!(CTX, 1, undefined, () => {})).rejects.toThrow(/has ended/);
    expect(() => on.onCallBegan!(CTX, began)).toThrow(/has ended/);
    expect(() => on.onMessage!(CTX, { role: 'user', content: 'late' }, 0)).toThrow(/has ended/);
    expect(calls()).toEqual([]);
  });

  test('whatever a server puts the key into, no column of the ledger has it [T-58]', () => {
    const { on, calls } = attempt();
    on.onCallBegan!(CTX, began);
    on.onCallEnded!(
      CTX,
      answered({
        errorMessage: `bad ${KEY}`,
        modelAnswered: KEY,
        responseId: `id-${KEY}`,
        fingerprint: KEY,
        finishReason: KEY,
        rawUsage: { note: KEY, nested: JSON.stringify({ key: KEY }) },
        notes: [`answered by ${KEY}`],
      }),
    );
    expect(JSON.stringify(calls())).not.toContain(KEY);
    expect(JSON.stringify(calls())).toContain('redacted:KEY');
  });
});
