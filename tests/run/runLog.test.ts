// What a person finds in run.log after a clean run.
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createRedactor } from '../../src/base/text/redact.ts';
import { logEvents, openLog } from '../../src/run/record/runLog.ts';
import { tempDir } from '../support/cli.ts';

test('a clean run leaves its start, the end of each trial and grading, and its own end', () => {
  const dir = tempDir();
  const path = join(dir, 'r1', 'run.log');
  const log = logEvents(openLog(path, createRedactor([])));
  const trial = { trialId: 1, instanceId: 'a__a-1', arm: 'm', epoch: 1 };
  const of = { budgetNano: null, spentNano: 0, arms: 1, epochs: 1, slots: 2 };
  log({ type: 'run_started', run: 'r1', planned: 3, toDo: 2, ...of });
  log({ type: 'trial_started', trial, slot: 1, attempt: 1 });
  log({ type: 'phase', trial, slot: 1, phase: 'start' });
  log({ type: 'step', trial, slot: 1, step: 1, costNano: 0 });
  const end = {
    detail: null,
    message: null,
    sealed: true,
    steps: 1,
    costNano: 0,
    elapsedMs: 10,
    patchBytes: 1,
  };
  log({
    type: 'trial_ended',
    trial,
    slot: 1,
    attempt: 1,
    exitReason: 'submitted',
    exitClass: 'agent',
    ...end,
  });
  log({ type: 'graded', trial, outcome: 'resolved', resolved: true, durationMs: 5 });
  log({ type: 'run_ended', run: 'r1', status: 'complete', counts: { agent: 1 }, spentNano: 0 });
  const lines = readFileSync(path, 'utf8').trim().split('\n');
  const said = lines.map(
    (line) => JSON.parse(line) as { msg: string; time: string; event: { type: string } },
  );
  expect(said.map(({ msg }) => msg)).toEqual([
    'run r1: 2 of 3 trials to do on 2 slots',
    'a__a-1 submitted',
    'a__a-1 graded resolved',
    'run r1 ended: complete',
  ]);
  expect(said[1]!.event).toMatchObject({ type: 'trial_ended', steps: 1 });
  rmSync(dir, { recursive: true });
});
