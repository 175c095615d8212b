// End states that nobody asks for any more, where the engine takes long to let go of one.
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { EnvironmentFactory } from '../../src/environment/environment.ts';
import type { EvaluationResult } from '../../src/grading/gradingFrame.ts';
import { createStepGrading } from '../../src/run/grader/gradeTrial.ts';
import type { PlannedTrial } from '../../src/run/plannedTrial.ts';
import { openedRun } from './openedRun.ts';

test('a removal that takes long holds up no attempt, is awaited at the end of the run, and says there why it failed', async () => {
  const run = openedRun();
  const told: string[] = [];
  run.events.on((event) => event.type === 'note' && told.push(event.text));
  const stuck = Promise.withResolvers<void>();
  const asked: string[] = [];
  const environmentFactory = {
    discardWork: (image: string) => {
      asked.push(image);
      return image.endsWith('stuck') ? stuck.promise : Promise.resolve();
    },
  } as unknown as EnvironmentFactory;
  const trial = { arm: { environmentFactory, row: {} }, label: {} } as unknown as PlannedTrial;
  const verdict = { outcome: 'ungradable' } as EvaluationResult;
  const stepGrading = createStepGrading({ ...run, ensureGraded: undefined }, () => {});
  const work = JSON.stringify([{ image: 'work:stuck' }, { image: null }, { image: 'work:free' }]);
  stepGrading.judged(trial, { patch: '', work, verdict });
  expect(asked).toEqual(['work:stuck', 'work:free']);

  let closed = false;
  const closing = stepGrading.close().then(() => {
    closed = true;
  });
  await setImmediate();
  expect([closed, told]).toEqual([false, []]);
  stuck.reject(new Error('container abc did not stop'));
  await closing;
  expect(told).toEqual(['work:stuck could not be removed: container abc did not stop']);
});
