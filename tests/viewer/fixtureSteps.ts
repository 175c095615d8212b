/** What a synthetic attempt holds: messages, calls, commands, phases, and its verdict. */
import { gzipSync } from 'node:zlib';
import type { Store } from '../../src/store/open.ts';
import { iso, put, sha } from './fixtureRows.ts';

const COMMANDS = [
  'grep -rn "def separability_matrix" --include=*.py .',
  "sed -n '1,80p' astropy/modeling/separable.py",
  'python -m pytest tests/test_mod.py -q',
  'git diff --stat',
];

export function addSteps(
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

export function addStep(
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

export function addEvaluation(
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
    harness: 'swebench-5',
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
