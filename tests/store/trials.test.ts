// The trial and attempt state machine, by example and against a reference model under random interleavings.

import { describe, expect, test } from 'vitest';
import { recoverRun } from '../../src/run/control/recover.ts';
import { beginCall } from '../../src/store/records/modelCalls.ts';
import * as trials from '../../src/store/records/trials.ts';
import { verifyRun } from '../../src/store/verifyRun.ts';
import fc from '../support/property.ts';
import { ending, freshStore, planted } from './storeFixtures.ts';

const begin = (store: ReturnType<typeof freshStore>, trialId: number) =>
  trials.beginAttempt(store, trialId, { startedAt: 'now', slot: 1, config: '{}' });

describe('trials and attempts', () => {
  test('only one of two takers leases a trial', () => {
    const store = freshStore();
    const [trial] = trials.trialsOf(store, planted(store).id);
    expect(trials.leaseTrial(store, trial!.id, 'a', 1)).toBe(true);
    expect(trials.leaseTrial(store, trial!.id, 'b', 1)).toBe(false);
  });

  test('the first terminal state wins; what arrives late changes nothing [T-55]', () => {
    const store = freshStore();
    const [trial] = trials.trialsOf(store, planted(store).id);
    trials.leaseTrial(store, trial!.id, 'a', 1);
    const attempt = begin(store, trial!.id);
    expect(trials.endAttempt(store, attempt.id, ending('submitted'), 'seal')).toBe(true);
    expect(trials.endAttempt(store, attempt.id, ending('stalled'), 'again')).toBe(false);
    expect(trials.trialById(store, trial!.id)).toMatchObject({
      state: 'sealed',
      final_attempt_id: attempt.id,
    });
    expect(trials.attemptById(store, attempt.id)?.exit_reason).toBe('submitted');
  });

  test('an attempt cannot begin on a trial that nobody leased', () => {
    const store = freshStore();
    const [trial] = trials.trialsOf(store, planted(store).id);
    expect(() => begin(store, trial!.id)).toThrow(/not leased/);
  });

  test('what says nothing about the trial leaves it not run, with the reason', () => {
    const store = freshStore();
    const run = planted(store);
    const [trial] = trials.trialsOf(store, run.id);
    trials.leaseTrial(store, trial!.id, 'a', 1);
    trials.endAttempt(store, begin(store, trial!.id).id, ending('budget_stopped'), 'not_run');
    trials.markNotRun(store, run.id, 'budget_stopped');
    expect(Object.fromEntries(trials.classCounts(store, run.id))).toEqual({ not_run: 2 });
    expect(trials.trialsOf(store, run.id).map((t) => t.not_run_reason)).toEqual([
      'budget_stopped',
      'budget_stopped',
    ]);
  });

  test('a decided trial that was asked for once more and has not run yet is not run: the run is not complete', () => {
    const store = freshStore();
    const run = planted(store, { ids: ['a__a-1'] });
    const [trial] = trials.trialsOf(store, run.id);
    trials.leaseTrial(store, trial!.id, 'a', 1);
    trials.endAttempt(store, begin(store, trial!.id).id, ending('submitted'), 'seal');
    trials.reopenTrials(store, [trial!.id]);
    expect(Object.fromEntries(trials.classCounts(store, run.id))).toEqual({ not_run: 1 });
  });

  test('redoing a sealed trial adds an attempt and moves the final mark', () => {
    const store = freshStore();
    const run = planted(store, { ids: ['a__a-1'] });
    const [trial] = trials.trialsOf(store, run.id);
    for (const reason of ['limit_steps', 'submitted'] as const) {
      trials.reopenTrials(store, [trial!.id]);
      trials.leaseTrial(store, trial!.id, 'a', 1);
      trials.endAttempt(store, begin(store, trial!.id).id, ending(reason), 'seal');
    }
    const attempts = trials.attemptsOf(store, trial!.id);
    expect(attempts.map((a) => [a.number, a.exit_reason])).toEqual([
      [1, 'limit_steps'],
      [2, 'submitted'],
    ]);
    expect(trials.trialById(store, trial!.id)?.final_attempt_id).toBe(attempts[1]!.id);
  });

  test('recovery ends what a dead process left and counts calls that may have been billed', () => {
    const store = freshStore();
    const run = planted(store);
    const [first, second] = trials.trialsOf(store, run.id);
    trials.leaseTrial(store, first!.id, 'dead', 1);
    trials.leaseTrial(store, second!.id, 'dead', 1);
    const attempt = begin(store, first!.id);
    beginCall(store, {
      attempt_id: attempt.id,
      step: 1,
      try: 0,
      started_at: 'now',
      model_asked: 'm',
      estimate_nano: null,
    });
    expect(recoverRun(store, run.id, 'later')).toEqual({ trials: 2, possiblyBilled: 1 });
    expect(trials.trialsOf(store, run.id).map((t) => t.state)).toEqual(['pending', 'pending']);
    expect(verifyRun(store, run)).toMatchObject({ ok: true });
  });
});

type Step = {
  kind: 'lease' | 'begin' | 'seal' | 'again' | 'not_run' | 'late' | 'crash' | 'reopen';
  trial: number;
};

describe('model-based', () => {
  test('random interleavings of finish, retry, crash and reopening keep every invariant [T-67]', () => {
    const stepArb: fc.Arbitrary<Step> = fc.record({
      kind: fc.constantFrom('lease', 'begin', 'seal', 'again', 'not_run', 'late', 'crash', 'reopen'),
      trial: fc.nat({ max: 2 }),
    });
    fc.assert(
      fc.property(fc.array(stepArb, { maxLength: 40 }), (script) => {
        const store = freshStore();
        const run = planted(store, { ids: ['a__a-1', 'a__a-2', 'a__a-3'] });
        const ids = trials.trialsOf(store, run.id).map((t) => t.id);
        // The reference: state, running attempt and last final attempt of each trial.
        const model = ids.map(() => ({ state: 'pending', running: 0, final: 0, ended: [] as number[] }));
        for (const { kind, trial } of script) {
          const id = ids[trial]!;
          const m = model[trial]!;
          if (kind === 'lease') {
            expect(trials.leaseTrial(store, id, 'me', 1)).toBe(m.state === 'pending');
            if (m.state === 'pending') m.state = 'leased';
          } else if (kind === 'begin' && m.state === 'leased') {
            m.running = begin(store, id).id;
            m.state = 'running';
          } else if ((kind === 'seal' || kind === 'again' || kind === 'not_run') && m.state === 'running') {
            const reason = kind === 'seal' ? 'submitted' : kind === 'again' ? 'env_died' : 'budget_stopped';
            expect(trials.endAttempt(store, m.running, ending(reason), kind)).toBe(true);
            m.ended.push(m.running);
            Object.assign(m, {
              state: kind === 'seal' ? 'sealed' : 'pending',
              final: kind === 'not_run' ? 0 : m.running,
              running: 0,
            });
          } else if (kind === 'late' && m.ended.length > 0) {
            expect(trials.endAttempt(store, m.ended[0]!, ending('stalled'), 'again')).toBe(false);
          } else if (kind === 'crash') {
            recoverRun(store, run.id, 'later');
            for (const each of model) {
              if (each.state === 'running') {
                each.ended.push(each.running);
                Object.assign(each, { final: each.running, running: 0 });
              }
              if (each.state !== 'sealed') each.state = 'pending';
            }
          } else if (kind === 'reopen') {
            trials.reopenTrials(store, [id]);
            if (m.state === 'sealed') m.state = 'pending';
          }
          const row = trials.trialById(store, id)!;
          expect({ state: row.state, final: row.final_attempt_id ?? 0 }).toEqual({
            state: m.state,
            final: m.final,
          });
        }
        const counted = [...trials.classCounts(store, run.id).values()].reduce((a, b) => a + b, 0);
        expect(counted).toBe(3);
        expect(verifyRun(store, run).checks.filter((c) => !c.ok)).toEqual([]);
        store.close();
      }),
      { numRuns: 150 },
    );
  });
});
