// After failures that instances share one of them probes: later where waiting may help, at once where it cannot.
import { expect, test } from 'vitest';
import { runConfigSchema } from '../../../src/config/configSchema.ts';
import type { ExitReason } from '../../../src/outcome.ts';
import type { Run } from '../../../src/run/contract.ts';
import { createPauses } from '../../../src/run/control/pauses.ts';
import type { PlannedTrial } from '../../../src/run/plannedTrial.ts';
import type { TrialQueue } from '../../../src/run/schedule/trialQueue.ts';
import { normaliseRow } from '../../support/suites.ts';

function probesAfter(reason: ExitReason, detail: string): { ms: number[]; said: string[] } {
  const ms: number[] = [];
  const said: string[] = [];
  const run = {
    config: runConfigSchema.parse({ breaker: { consecutive: 2, probe_after_s: 60 } }),
    instances: new Map([1, 2, 3].map((id) => [id, {}])),
    stop: { why: null },
    events: {
      emit: (event: { type: string; reason?: string }) => void said.push(`${event.type}: ${event.reason}`),
    },
  } as unknown as Run;
  const queue = { pause() {} } as unknown as TrialQueue;
  const pauses = createPauses(run, queue, { after: (at) => void ms.push(at), endAll() {} }, () => {});
  for (const id of ['a', 'b']) {
    const row = normaliseRow({ instance_id: id, repo: 'r/r', base_commit: 'c', problem_statement: 'p' });
    const instance = row.ok ? row.instance : undefined;
    const arm = { row: { name: 'arm' }, agent: { agent_class: 'default' } };
    const trial = { label: { instanceId: id }, arm, image: `i/${id}`, instance } as unknown as PlannedTrial;
    const ending = { reason, detail, message: `image of ${reason}`, evidence: null, exitStatus: 'x' };
    pauses.judge(trial, { ending, patchBytes: 0 });
  }
  return { ms, said };
}

test.each([
  ['env_image_missing', 'not_local'],
  ['env_image_missing', 'missing'],
  ['env_image_pull_failed', 'no_access'],
] as const)('%s (%s) is not waited for', (reason, detail) => {
  const { ms, said } = probesAfter(reason, detail);
  expect(ms).toEqual([0]);
  expect(said.at(-1)).toContain('one instance probes now');
});

test.each([
  ['env_image_pull_failed', 'unreachable'],
  ['env_start_failed', ''],
] as const)('%s (%s) has its minute', (reason, detail) => {
  const { ms, said } = probesAfter(reason, detail);
  expect(ms).toEqual([60_000]);
  expect(said.at(-1)).toContain('one instance probes in 60 s');
});
