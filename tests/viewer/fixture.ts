/** A results root with synthetic runs, small or 500 x 200. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { currentOwner } from '../../src/environment/owner.ts';
import { lockFolder } from '../../src/run/control/lock.ts';
import { openStore, type Store } from '../../src/store/open.ts';
import { iso, put, sha } from './fixtureRows.ts';
import { addEvaluation, addMessage, addStep, addSteps } from './fixtureSteps.ts';

export interface FixtureRun {
  name: string;
  instances: number;
  steps: number;
  arms?: readonly string[];
  epochs?: number;
  /** Shifts who resolves what, so that runs disagree. */
  seed?: number;
  status?: string;
  /** Trials from here on are still to do. */
  doneUntil?: number;
  day?: number;
  budgetNano?: number | null;
  /** Taken over from another tool: all times are those of the import, and no phases were seen. */
  imported?: boolean;
}

const REPOS = ['django/django', 'sympy/sympy', 'astropy/astropy', 'pytest-dev/pytest', 'psf/requests'];
const DIFFICULTIES = ['<15 min fix', '15 min - 1 hour', '1-4 hours', '>4 hours'];

/** mulberry32: the same numbers on every machine. */
function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const patchFor = (n: number, word = 'fixed'): string => `diff --git a/pkg/module_${n}.py b/pkg/module_${n}.py
--- a/pkg/module_${n}.py
+++ b/pkg/module_${n}.py
@@ -${n + 10},6 +${n + 10},7 @@ class Separable:
     def matrix(self, left, right):
         if isinstance(left, Model):
             cleft = _coord_matrix(left, 'left', noutp)
         else:
-            cright[-right.shape[0]:, -right.shape[1]:] = 1
+            # ${word}
+            cright[-right.shape[0]:, -right.shape[1]:] = right
         return np.hstack([cleft, cright])
`;

export function openFixture(dir: string): Store {
  const store = openStore(join(dir, 'swebatch.db'));
  store.pragma('synchronous = OFF');
  return store;
}

export function addRun(store: Store, options: FixtureRun): number {
  return store.transaction(() => addRunRows(store, options))();
}

function addRunRows(store: Store, options: FixtureRun): number {
  const { instances, steps, seed = 1, day = 0, arms = ['main'], epochs = 1 } = options;
  const doneUntil = options.doneUntil ?? instances;
  const status = options.status ?? (doneUntil < instances ? 'running' : 'complete');
  const next = random(seed);
  const run = put(store, 'runs', {
    name: options.name,
    status,
    created_at: iso(day, 0),
    finished_at: status === 'running' ? null : iso(day, 7_200_000),
    config: JSON.stringify({
      agent: { step_limit: 250, cost_limit: 3 },
      model: { model_name: 'openai/gpt-x' },
    }),
    config_hash: sha('config'),
    manifest: JSON.stringify({ swebatch: '0.1.0', seed }),
    dataset_source: 'SWE-bench/SWE-bench_Verified',
    dataset_revision: '9fa561428aee',
    dataset_hash: sha(`${instances}`),
    imported: options.imported ? 1 : 0,
    budget_nano: options.budgetNano === undefined ? 300_000_000_000 : options.budgetNano,
  });
  put(store, 'events', {
    run_id: run,
    at: iso(day, 0),
    type: 'run_started',
    data: JSON.stringify({ planned: instances }),
  });
  const armIds = arms.map((name, position) =>
    put(store, 'arms', { run_id: run, position, name, model: `openai/gpt-x-${name}`, config: '{}' }),
  );
  for (let i = 0; i < instances; i += 1) {
    const repo = REPOS[i % REPOS.length]!;
    const instanceId = `${repo.replace('/', '__')}-${10_000 + i}`;
    const pk = addInstance(store, run, i, instanceId, repo, DIFFICULTIES[i % DIFFICULTIES.length]!);
    for (const [armId, epoch] of armIds.flatMap((id) =>
      Array.from({ length: epochs }, (_, n) => [id, n + 1] as const),
    )) {
      const trial = { run, armId, pk, epoch, instanceId, i, day };
      if (i < doneUntil) addEndedTrial(store, trial, { steps, next, arm: armIds.indexOf(armId) });
      else if (i < doneUntil + 4 && status === 'running') addRunningTrial(store, trial, i - doneUntil);
      else
        put(store, 'trials', {
          run_id: run,
          arm_id: armId,
          instance_pk: pk,
          epoch,
          position: i,
          state: 'pending',
        });
    }
  }
  if (options.imported)
    store
      .prepare(
        'DELETE FROM phases WHERE attempt_id IN (SELECT a.id FROM attempts a JOIN trials t ON t.id = a.trial_id WHERE t.run_id = ?)',
      )
      .run(run);
  if (status === 'running') holdLock(dirname(store.name), options.name);
  if (status !== 'running')
    put(store, 'events', {
      run_id: run,
      at: iso(day, 7_200_000),
      type: 'run_ended',
      data: JSON.stringify({ status }),
    });
  return run;
}

/** A run works only while a process of it lives: here this one. */
function holdLock(root: string, run: string): void {
  mkdirSync(lockFolder(root, run), { recursive: true });
  const holder = { ...currentOwner(run, 'run'), since: iso(0, 0) };
  writeFileSync(join(lockFolder(root, run), 'run.lock'), JSON.stringify(holder));
}

function addInstance(
  store: Store,
  run: number,
  position: number,
  instanceId: string,
  repo: string,
  difficulty: string,
): number {
  return put(store, 'instances', {
    run_id: run,
    position,
    instance_id: instanceId,
    repo,
    difficulty,
    image: `swebench/sweb.eval.x86_64.${instanceId}:latest`,
    row_hash: sha(instanceId),
    row: JSON.stringify({
      instance_id: instanceId,
      problem_statement: `Nested CompoundModels are not separable (${instanceId}).\n\nSteps to reproduce: …`,
      patch: patchFor(position, 'as the maintainers did'),
      test_patch: patchFor(position + 1, 'a new test'),
      FAIL_TO_PASS: [`tests/test_mod.py::test_fix[${position}]`],
      PASS_TO_PASS: ['tests/test_mod.py::test_old', 'tests/test_mod.py::test_other'],
    }),
  });
}

interface TrialFacts {
  run: number;
  armId: number;
  pk: number;
  epoch: number;
  instanceId: string;
  i: number;
  day: number;
}

const ENDINGS = [
  { reason: 'submitted', class: 'agent', status: 'Submitted' },
  { reason: 'submitted', class: 'agent', status: 'Submitted' },
  { reason: 'submitted', class: 'agent', status: 'Submitted' },
  { reason: 'submitted', class: 'agent', status: 'Submitted' },
  { reason: 'limit_steps', class: 'limit', status: 'LimitsExceeded' },
  { reason: 'model_unavailable', class: 'infra', status: 'ModelFailed' },
];

function addEndedTrial(
  store: Store,
  trial: TrialFacts,
  how: { steps: number; next: () => number; arm: number },
): void {
  const { i, day } = trial;
  const trialId = put(store, 'trials', {
    run_id: trial.run,
    arm_id: trial.armId,
    instance_pk: trial.pk,
    epoch: trial.epoch,
    position: i,
    state: 'pending',
  });
  const ending = ENDINGS[(i * 7) % ENDINGS.length]!;
  const retried = i % 11 === 3;
  if (retried) addAttempt(store, trialId, trial, 1, ENDINGS[5]!, 2, how.next);
  const steps = Math.max(2, Math.round(how.steps * (0.9 + how.next() * 0.2)));
  const { attempt, patch } = addAttempt(store, trialId, trial, retried ? 2 : 1, ending, steps, how.next);
  const sealed = ending.class !== 'infra';
  store
    .prepare('UPDATE trials SET state = ?, final_attempt_id = ? WHERE id = ?')
    .run(sealed ? 'sealed' : 'pending', attempt, trialId);
  if (!sealed) return;
  const resolved = how.next() < 0.6 + how.arm * 0.1;
  addEvaluation(store, {
    run: trial.run,
    trialId,
    attempt,
    instanceId: trial.instanceId,
    patch,
    resolved,
    at: iso(day, i * 15_000 + 60_000),
    i,
  });
}

function addAttempt(
  store: Store,
  trialId: number,
  trial: TrialFacts,
  number: number,
  ending: (typeof ENDINGS)[number],
  steps: number,
  next: () => number,
): { attempt: number; patch: string } {
  const start = trial.i * 15_000;
  const patch = ending.class === 'infra' ? '' : patchFor(trial.i);
  const attempt = put(store, 'attempts', {
    trial_id: trialId,
    number,
    state: 'ended',
    slot: trial.i % 8,
    started_at: iso(trial.day, start),
    ended_at: iso(trial.day, start + steps * 3_000 + 20_000),
    exit_reason: ending.reason,
    exit_class: ending.class,
    exit_status: ending.status,
    error_message: ending.class === 'infra' ? 'HTTP 503 from the provider after 6 tries' : null,
    submission: ending.reason === 'submitted' ? Buffer.from(patch) : null,
    captured_patch: Buffer.from(patch),
    patch_source: patch === '' ? 'none' : ending.reason === 'submitted' ? 'submitted' : 'captured_at_exit',
    patch_state: patch === '' ? 'empty' : 'ok',
    model_patch: patch,
    patch_sha256: sha(patch),
    steps,
    container_id: `c${trial.i}`,
    history: 'sealed',
    transport: 'supervisor',
    elapsed_ms: steps * 3_000 + 20_000,
    working_ms: steps * 2_900,
    suspicion:
      trial.i % 13 === 5
        ? JSON.stringify([{ rule: 'network_fetch', step: 2, evidence: 'curl https://github.com/…' }])
        : '[]',
    notes:
      trial.i % 17 === 1 ? JSON.stringify(['two embedded repositories were left out of the patch']) : '[]',
  });
  addSteps(store, attempt, trial, steps, next);
  return { attempt, patch };
}

function addRunningTrial(store: Store, trial: TrialFacts, slot: number): void {
  const trialId = put(store, 'trials', {
    run_id: trial.run,
    arm_id: trial.armId,
    instance_pk: trial.pk,
    epoch: trial.epoch,
    position: trial.i,
    state: 'running',
  });
  const attempt = put(store, 'attempts', {
    trial_id: trialId,
    number: 1,
    state: 'running',
    slot,
    started_at: iso(trial.day, trial.i * 15_000),
  });
  const next = random(trial.i);
  const at = (ms: number) => iso(trial.day, trial.i * 15_000 + ms);
  addMessage(store, attempt, 0, 'system', 'You are a helpful assistant.', at(0));
  addMessage(store, attempt, 1, 'user', `Please solve ${trial.instanceId}`, at(0));
  for (let step = 1; step <= slot + 1; step += 1)
    addStep(store, { attempt, step, seq: step * 2, at, ms: step * 3_000, next });
  put(store, 'phases', {
    attempt_id: attempt,
    seq: 0,
    name: ['model', 'exec', 'pull', 'rate_wait'][slot % 4]!,
    offset_ms: 4_000,
  });
}
