/** A results root with synthetic runs, small or 500 x 200, and one trajectory that attacks whoever looks at it. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { openStore, type Store, statement } from '../../src/store/open.ts';

export interface FixtureRun {
  name: string;
  instances: number;
  steps: number;
  arms?: readonly string[];
  /** Shifts who resolves what, so that runs disagree. */
  seed?: number;
  status?: string;
  /** Trials from here on are still to do. */
  doneUntil?: number;
  day?: number;
  budgetNano?: number | null;
}

const REPOS = ['django/django', 'sympy/sympy', 'astropy/astropy', 'pytest-dev/pytest', 'psf/requests'];
const DIFFICULTIES = ['<15 min fix', '15 min - 1 hour', '1-4 hours', '>4 hours'];

export const iso = (day: number, ms: number): string =>
  new Date(Date.UTC(2026, 9, 1 + day, 22) + ms).toISOString();

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

const sha = (text: string): string => createHash('sha256').update(text).digest('hex');

export function openFixture(dir: string): Store {
  const store = openStore(join(dir, 'swebatch.db'));
  store.pragma('synchronous = OFF');
  return store;
}

export const put = (store: Store, table: string, row: Record<string, unknown>): number => {
  const names = Object.keys(row);
  const sql = `INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map((name) => `@${name}`).join(', ')})`;
  return Number(statement(store, sql).run(row).lastInsertRowid);
};

export function addRun(store: Store, options: FixtureRun): number {
  return store.transaction(() => addRunRows(store, options))();
}

function addRunRows(store: Store, options: FixtureRun): number {
  const { instances, steps, seed = 1, day = 0, arms = ['main'] } = options;
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
    for (const armId of armIds) {
      const trial = { run, armId, pk, instanceId, i, day };
      if (i < doneUntil) addEndedTrial(store, trial, { steps, next, arm: armIds.indexOf(armId) });
      else if (i < doneUntil + 4 && status === 'running') addRunningTrial(store, trial, i - doneUntil);
      else
        put(store, 'trials', { run_id: run, arm_id: armId, instance_pk: pk, position: i, state: 'pending' });
    }
  }
  if (status !== 'running')
    put(store, 'events', {
      run_id: run,
      at: iso(day, 7_200_000),
      type: 'run_ended',
      data: JSON.stringify({ status }),
    });
  return run;
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

function addEvaluation(
  store: Store,
  facts: {
    run: number;
    trialId: number;
    attempt: number;
    instanceId: string;
    patch: string;
    resolved: boolean;
    at: string;
    i: number;
  },
): number {
  const failing = `tests/test_mod.py::test_fix[${facts.i}]`;
  const log = [
    '============================= test session starts ==============================',
    `\u001b[32mPASSED\u001b[0m tests/test_mod.py::test_old`,
    ...Array.from({ length: 30 }, (_, n) => `collecting module ${n} ... ok`),
    facts.resolved
      ? `\u001b[32mPASSED\u001b[0m ${failing}`
      : `\u001b[31mFAILED\u001b[0m ${failing} - AssertionError: assert 1 == 2`,
    '======================== 1 failed, 2 passed in 0.31s ===========================',
  ].join('\n');
  return put(store, 'evaluations', {
    run_id: facts.run,
    trial_id: facts.trialId,
    attempt_id: facts.attempt,
    instance_id: facts.instanceId,
    model: 'openai/gpt-x',
    patch_sha256: sha(facts.patch),
    spec_hash: sha('spec'),
    dialect: 'swebench-5',
    outcome: facts.resolved ? 'resolved' : 'unresolved',
    resolved: facts.resolved ? 1 : 0,
    resolved_strict: facts.resolved ? 1 : 0,
    report: JSON.stringify({
      [facts.instanceId]: {
        resolved: facts.resolved,
        tests_status: {
          FAIL_TO_PASS: facts.resolved
            ? { success: [failing], failure: [] }
            : { success: [], failure: [failing] },
          PASS_TO_PASS: { success: ['tests/test_mod.py::test_old'], failure: [] },
        },
      },
    }),
    log: gzipSync(log),
    apply_method: 'git apply --verbose',
    exit_code: facts.resolved ? 0 : 1,
    network: 'bridge',
    started_at: facts.at,
    duration_ms: 41_000,
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

const COMMANDS = [
  'grep -rn "def separability_matrix" --include=*.py .',
  "sed -n '1,80p' astropy/modeling/separable.py",
  'python -m pytest tests/test_mod.py -q',
  'git diff --stat',
];

function addSteps(
  store: Store,
  attempt: number,
  trial: { instanceId: string; day: number; i: number },
  steps: number,
  next: () => number,
): void {
  const t0 = Date.parse(iso(trial.day, trial.i * 15_000));
  const at = (ms: number) => new Date(t0 + ms).toISOString();
  let seq = 0;
  let phase = 0;
  const phaseAt = (name: string, offset: number, ms: number) =>
    put(store, 'phases', { attempt_id: attempt, seq: phase++, name, offset_ms: offset, duration_ms: ms });
  phaseAt('pull', 0, 2_000);
  phaseAt('start', 2_000, 500);
  phaseAt('seal', 2_500, 300);
  addMessage(
    store,
    attempt,
    seq++,
    'system',
    'You are a helpful assistant that can interact with a computer.',
    at(2_800),
  );
  addMessage(
    store,
    attempt,
    seq++,
    'user',
    `Please solve this issue: nested models of ${trial.instanceId}`,
    at(2_800),
  );
  for (let step = 1; step <= steps; step += 1) {
    const ms = 3_000 + (step - 1) * 3_000;
    addStep(store, { attempt, step, seq, at, ms, next });
    phaseAt('model', ms, 2_200);
    phaseAt('exec', ms + 2_200, 300);
    seq += 2;
  }
  phaseAt('capture', 3_000 + steps * 3_000, 400);
  phaseAt('stop', 3_400 + steps * 3_000, 200);
  addMessage(store, attempt, seq, 'exit', 'Submitted', at(3_600 + steps * 3_000));
}

export function addMessage(
  store: Store,
  attempt: number,
  seq: number,
  role: string,
  content: string,
  at: string,
  more: object = {},
): void {
  put(store, 'messages', {
    attempt_id: attempt,
    seq,
    role,
    content,
    data: JSON.stringify({ role, content, ...more }),
    created_at: at,
  });
}

function addStep(
  store: Store,
  facts: {
    attempt: number;
    step: number;
    seq: number;
    at: (ms: number) => string;
    ms: number;
    next: () => number;
  },
): void {
  const { attempt, step, seq, at, ms, next } = facts;
  const command = COMMANDS[step % COMMANDS.length]!;
  addMessage(
    store,
    attempt,
    seq,
    'assistant',
    `THOUGHT: step ${step}, I look at how the matrix is built.\n\n\`\`\`bash\n${command}\n\`\`\``,
    at(ms + 2_200),
  );
  put(store, 'model_calls', {
    attempt_id: attempt,
    step,
    try: 0,
    state: 'ok',
    started_at: at(ms),
    latency_ms: 2_200,
    status_code: 200,
    model_asked: 'openai/gpt-x',
    model_answered: 'gpt-x-2026-09-01',
    finish_reason: 'stop',
    input_tokens: 400,
    cache_read_tokens: 1_000 * step,
    cache_write_tokens: 0,
    output_tokens: 120,
    reasoning_tokens: 40,
    cost_nano: 2_000_000 + Math.round(next() * 1_000_000),
  });
  const lines = step % 45 === 4 ? 120 : 4;
  const output = Array.from(
    { length: lines },
    (_, n) =>
      `\u001b[36mastropy/modeling/separable.py\u001b[0m:${n + step}: cright = _coord_matrix(right, 'right', noutp)`,
  ).join('\n');
  const code = step % 5 === 3 ? 1 : 0;
  addMessage(
    store,
    attempt,
    seq + 1,
    'user',
    `<returncode>${code}</returncode>\n<output>\n${output}\n</output>`,
    at(ms + 2_500),
  );
  put(store, 'commands', {
    attempt_id: attempt,
    step,
    idx: 0,
    message_seq: seq + 1,
    command,
    output: Buffer.from(output),
    exit_code: code,
    timed_out: 0,
    total_bytes: output.length,
    omitted_bytes: 0,
    replaced_bytes: 0,
    oom_killed: 0,
    transport: 'supervisor',
    started_at: at(ms + 2_200),
    duration_ms: 300,
  });
}

function addRunningTrial(store: Store, trial: TrialFacts, slot: number): void {
  const trialId = put(store, 'trials', {
    run_id: trial.run,
    arm_id: trial.armId,
    instance_pk: trial.pk,
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

/** Everything a hostile model or container could write, in every field that a page shows. */
export const HOSTILE = {
  script: '</script><script>window.__pwned = "script"</script>',
  image: '<img src=x onerror="window.__pwned = \'img\'">',
  svg: '<svg/onload=window.__pwned="svg">',
  link: '[click](javascript:window.__pwned="link") javascript:alert(1)',
  ansi: '\u001b]0;owned\u0007\u001b[2J\u001b[31mred\u001b[0m \u001b]8;;javascript:alert(1)\u0007link\u001b]8;;\u0007',
  bidi: 'access \u202e level\u2066 user \u2069',
  controls: 'nul \u0000 bell \u0007 backspace \u0008 lone \ud800 del \u007f',
  template: `{{constructor.constructor("window.__pwned=1")()}} $\{window.__pwned=2}`,
};

export function addHostileRun(store: Store): { run: number; attempt: number } {
  return store.transaction(() => {
    const all = Object.values(HOSTILE).join('\n');
    const run = addRunRows(store, { name: `evil ${HOSTILE.image}`, instances: 1, steps: 2, seed: 9 });
    const arm = put(store, 'arms', {
      run_id: run,
      position: 7,
      name: '__proto__',
      model: HOSTILE.script,
      config: '{}',
    });
    const pk = put(store, 'instances', {
      run_id: run,
      position: 5,
      instance_id: 'constructor',
      repo: HOSTILE.svg,
      difficulty: HOSTILE.image,
      image: HOSTILE.link,
      row_hash: 'x',
      row: JSON.stringify({ problem_statement: all, patch: hostilePatch(), FAIL_TO_PASS: ['__proto__'] }),
    });
    const trialId = put(store, 'trials', {
      run_id: run,
      arm_id: arm,
      instance_pk: pk,
      position: 5,
      state: 'sealed',
    });
    const attempt = put(store, 'attempts', {
      trial_id: trialId,
      number: 1,
      state: 'ended',
      started_at: iso(0, 0),
      ended_at: iso(0, 9_000),
      exit_reason: 'submitted',
      exit_class: 'agent',
      exit_status: HOSTILE.image,
      error_message: all,
      model_patch: hostilePatch(),
      patch_sha256: sha(hostilePatch()),
      steps: 2,
      suspicion: JSON.stringify([{ rule: '__proto__', step: 1, evidence: all }, { rule: HOSTILE.image }]),
      notes: JSON.stringify([all]),
    });
    store.prepare('UPDATE trials SET final_attempt_id = ? WHERE id = ?').run(attempt, trialId);
    addMessage(store, attempt, 0, 'system', all, iso(0, 0));
    addMessage(store, attempt, 1, 'assistant', `${all}\n\`\`\`bash\n${all}\n\`\`\``, iso(0, 1), {
      __proto__x: 1,
      tool_calls: [
        {
          id: '1',
          type: 'function',
          function: { name: HOSTILE.image, arguments: JSON.stringify({ command: all }) },
        },
      ],
      reasoning_content: all,
    });
    addMessage(store, attempt, 2, 'user', all, iso(0, 2));
    addMessage(store, attempt, 3, '__proto__', all, iso(0, 3));
    put(store, 'commands', {
      attempt_id: attempt,
      step: 1,
      idx: 0,
      message_seq: 2,
      command: all,
      output: Buffer.from(all),
      exit_code: 0,
      timed_out: 0,
      total_bytes: 9,
      omitted_bytes: 0,
      replaced_bytes: 0,
      oom_killed: 0,
      transport: 'exec',
      started_at: iso(0, 1),
      duration_ms: 1,
    });
    put(store, 'evaluations', {
      run_id: run,
      trial_id: trialId,
      attempt_id: attempt,
      instance_id: 'constructor',
      model: HOSTILE.image,
      patch_sha256: sha(hostilePatch()),
      spec_hash: 'x',
      dialect: HOSTILE.image,
      outcome: 'unresolved',
      resolved: 0,
      report:
        '{"tests_status":{"FAIL_TO_PASS":{"success":[],"failure":["__proto__","<img src=x onerror=window.__pwned=1>"]}}}',
      log: gzipSync(`${all}\nFAILED __proto__\n`),
      started_at: iso(0, 10_000),
      error_message: all,
    });
    put(store, 'events', {
      run_id: run,
      at: iso(0, 1),
      type: 'breaker',
      data: JSON.stringify({ reason: all }),
    });
    return { run, attempt };
  })();
}

const hostilePatch = (): string => `diff --git a/${HOSTILE.image} b/${HOSTILE.image}
--- a/x<script>window.__pwned=1</script>.html
+++ b/x<script>window.__pwned=1</script>.html
@@ -1,2 +1,2 @@ ${HOSTILE.image}
-${HOSTILE.script}
+${HOSTILE.image} ${HOSTILE.svg} ${HOSTILE.bidi}
 context </code></pre></td><script>window.__pwned=1</script>
`;
