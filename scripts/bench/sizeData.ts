// Datasets and results roots of any size for the benchmark of sizes. A run is planned by the program's own code; what its trials left
// is then filled in by SQL, because a hundred thousand real attempts would take days.
import { closeSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { gatherManifest } from '../../src/run/plan/manifest.ts';
import { planRun } from '../../src/run/plan/planRecord.ts';
import { prepareRun } from '../../src/run/plan.ts';
import { makeAndOpen } from '../../src/run/resultsRoot.ts';
import { openStore, type Store } from '../../src/store/open.ts';
import { sumAttempt } from '../../src/store/records/modelCalls.ts';
import { insertRun } from '../../src/store/records/runs.ts';

export const STEPS = 20;
const REPOS = ['django/django', 'sympy/sympy', 'astropy/astropy', 'pytest-dev/pytest', 'psf/requests'];
const LINE = 'The matrix of a nested model is not separable although its parts are, see below.\n';

const rowOf = (i: number) => {
  const repo = REPOS[i % REPOS.length]!;
  return {
    instance_id: `${repo.replace('/', '__')}-${10_000 + i}`,
    repo,
    base_commit: String(i).padStart(40, '0'),
    problem_statement: `Problem ${i}\n${LINE.repeat(6)}`,
    hints_text: '',
    patch: `diff --git a/m${i}.py b/m${i}.py\n${LINE.repeat(4)}`,
    test_patch: `diff --git a/t${i}.py b/t${i}.py\n${LINE.repeat(4)}`,
    version: '1.0',
    created_at: '2024-01-01T00:00:00Z',
    environment_setup_commit: String(i).padStart(40, '0'),
    difficulty: i % 2 ? '15 min - 1 hour' : '<15 min fix',
    FAIL_TO_PASS: JSON.stringify([`tests/test_m${i}.py::test_fix`]),
    PASS_TO_PASS: JSON.stringify(Array.from({ length: 8 }, (_, n) => `tests/test_m${i}.py::test_old_${n}`)),
  };
};

/** Rows of about 1.7 KB. */
export function writeDataset(path: string, rows: number): void {
  const file = openSync(path, 'w');
  for (let from = 0; from < rows; from += 1000) {
    const part = Array.from({ length: Math.min(1000, rows - from) }, (_, n) =>
      JSON.stringify(rowOf(from + n)),
    );
    writeSync(file, `${part.join('\n')}\n`);
  }
  closeSync(file);
}

/** Every tenth trial ends at its limit, every 33rd is tried again after an outage, 60 % of the others are resolved. */
const BLOCK = 500;
const PATCH = `'diff --git a/m.py b/m.py' || char(10) || replace(hex(zeroblob(350)), '00', '+ab')`;

/** The statements for a block of trials; @seed shifts who resolves what. */
const FILL = [
  `INSERT INTO attempts (trial_id, number, state, slot, started_at, ended_at, exit_reason, exit_class, exit_status, patch_source, patch_state,
     model_patch, patch_sha256, steps, history, transport, elapsed_ms, working_ms, config)
   SELECT t.id, 1, 'ended', 1, @at, @at, 'model_unavailable', 'infra', 'ModelFailed', 'none', 'empty', '', 'empty', 1, 'sealed', 'supervisor',
     9000, 8000, a.config
   FROM trials t JOIN arms a ON a.id = t.arm_id WHERE t.run_id = @run AND t.position >= @from AND t.position < @to AND t.position % 33 = 3`,
  `INSERT INTO attempts (trial_id, number, state, slot, started_at, ended_at, exit_reason, exit_class, exit_status, submission, captured_patch,
     patch_source, patch_state, model_patch, patch_sha256, steps, history, transport, elapsed_ms, working_ms, config)
   SELECT t.id, iif(t.position % 33 = 3, 2, 1), 'ended', 1, @at, @at, iif(t.position % 10 = 7, 'limit_steps', 'submitted'),
     iif(t.position % 10 = 7, 'limit', 'agent'), iif(t.position % 10 = 7, 'LimitsExceeded', 'Submitted'),
     CAST(${PATCH} || t.id AS BLOB), CAST(${PATCH} || t.id AS BLOB), 'submitted', 'ok', ${PATCH} || t.id, 'sha-' || t.id, @steps, 'sealed', 'supervisor',
     60000 + (t.id * 7919) % 900000, 50000 + (t.id * 7919) % 900000, a.config
   FROM trials t JOIN arms a ON a.id = t.arm_id WHERE t.run_id = @run AND t.position >= @from AND t.position < @to`,
  `UPDATE trials SET state = 'sealed', final_attempt_id = (SELECT max(id) FROM attempts WHERE trial_id = trials.id)
   WHERE run_id = @run AND position >= @from AND position < @to`,
  ...['assistant', 'user'].map(
    (role, n) => `INSERT INTO messages (attempt_id, seq, role, content, data, created_at)
     SELECT f.id, 2 * s.value + ${n}, '${role}', b.text, json_object('role', '${role}', 'content', b.text), @at
     FROM block f, generate s, (SELECT replace(hex(zeroblob(${n ? 150 : 60})), '00', 'ab ') AS text) b WHERE s.value < f.steps`,
  ),
  `INSERT INTO model_calls (attempt_id, step, try, state, started_at, latency_ms, status_code, model_asked, model_answered, response_id,
     finish_reason, usage, input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens, price_version, cost_nano,
     estimate_nano, request_bytes)
   SELECT f.id, s.value + 1, 1, 'ok', @at, 2500, 200, 'gpt-x', 'gpt-x-2026-01-01', 'resp-' || f.id || '-' || s.value, 'stop',
     '{"prompt_tokens":4000,"completion_tokens":200,"total_tokens":4200,"prompt_tokens_details":{"cached_tokens":3000}}',
     1000, 3000 + (f.id * 31 + s.value) % 700, 0, 200, 60, '2026-01', 4000000 + (f.id * 7919 + s.value) % 900000, 9000000, 20000
   FROM block f, generate s WHERE s.value < f.steps`,
  `INSERT INTO commands (attempt_id, step, idx, message_seq, command, output, exit_code, timed_out, total_bytes, omitted_bytes, replaced_bytes,
     oom_killed, transport, started_at, duration_ms)
   SELECT f.id, s.value + 1, 0, 2 * s.value + 1, 'grep -rn separable .', zeroblob(400), 0, 0, 400, 0, 0, 0, 'supervisor', @at, 120
   FROM block f, generate s WHERE s.value < f.steps`,
  `INSERT INTO phases (attempt_id, seq, name, offset_ms, duration_ms)
   SELECT f.id, s.value, CASE WHEN s.value < 3 THEN iif(s.value = 0, 'queue', iif(s.value = 1, 'start', 'seal')) WHEN s.value % 2 THEN 'model' ELSE 'exec' END,
     s.value * 900 - 1, 800 + s.value FROM block f, generate s WHERE s.value < 2 * f.steps + 4`,
  `INSERT INTO evaluations (run_id, trial_id, attempt_id, instance_id, model, patch_sha256, spec_hash, dialect, outcome, resolved, report, log,
     source, started_at, duration_ms)
   SELECT t.run_id, t.id, f.id, i.instance_id, a.model, f.patch_sha256, 'spec', 'v5', iif((t.position * 31 + @seed) % 100 < 60, 'resolved', 'unresolved'),
     (t.position * 31 + @seed) % 100 < 60, replace(hex(zeroblob(300)), '00', '"x"'), randomblob(3000), 'native', @at, 45000
   FROM trials t JOIN attempts f ON f.id = t.final_attempt_id JOIN instances i ON i.id = t.instance_pk JOIN arms a ON a.id = t.arm_id
   WHERE t.run_id = @run AND t.position >= @from AND t.position < @to`,
  ...['trial_started', 'trial_ended', 'graded'].map(
    (type) => `INSERT INTO events (run_id, at, type, data)
     SELECT t.run_id, @at, '${type}', json_object('trial', json_object('trialId', t.id, 'instanceId', 'i-' || t.id, 'arm', 'a', 'epoch', 1), 'slot', 1)
     FROM trials t WHERE t.run_id = @run AND t.position >= @from AND t.position < @to`,
  ),
];

function fill(store: Store, run: number, trials: number, seed: number): void {
  store.exec(`CREATE TEMP TABLE IF NOT EXISTS generate AS WITH RECURSIVE n(value) AS (SELECT 0 UNION ALL SELECT value + 1 FROM n WHERE value < 99)
    SELECT value FROM n`);
  store.exec('CREATE TEMP TABLE IF NOT EXISTS block (id INTEGER PRIMARY KEY, steps INTEGER)');
  for (let from = 0; from < trials; from += BLOCK) {
    const values = {
      run,
      from,
      to: Math.min(trials, from + BLOCK),
      seed,
      steps: STEPS,
      at: '2026-01-01T00:00:00.000Z',
    };
    store.transaction(() => {
      for (const sql of FILL) {
        const statement = store.prepare(sql);
        const used = Object.fromEntries(Object.entries(values).filter(([name]) => sql.includes(`@${name}`)));
        statement.run(used);
        if (!sql.startsWith('UPDATE')) continue;
        store.exec('DELETE FROM block');
        store
          .prepare(
            `INSERT INTO block SELECT a.id, a.steps FROM attempts a JOIN trials t ON t.id = a.trial_id
             WHERE t.run_id = ? AND t.position >= ? AND t.position < ?`,
          )
          .run(run, from, values.to);
      }
      // As the program does when an attempt ends.
      for (const { id } of store.prepare('SELECT id FROM block').all() as { id: number }[])
        sumAttempt(store, id);
    })();
  }
}

/** Two runs over the same rows: "a" is complete, of "b" a tenth is still to do. */
export async function makeRoot(root: string, dataset: string, config: string, trials: number): Promise<void> {
  {
    using store = makeAndOpen(root);
    for (const name of ['a', 'b']) {
      const caller = { env: {}, cwd: root, tell: () => {} };
      const options = { results: root, name, dataset: { subset: dataset, limit: trials }, config: [config] };
      const { request, resolved } = await prepareRun(options, caller);
      const manifest = await gatherManifest(request, resolved, { env: {}, command: [], failedIn: undefined });
      insertRun(store, planRun({ ...request, manifest }));
    }
  }
  using store = openStore(join(root, 'swebatch.db'));
  store.pragma('journal_mode = OFF');
  store.pragma('synchronous = OFF');
  store.pragma('foreign_keys = OFF');
  store.pragma('cache_size = -200000');
  const runs = store.prepare('SELECT id, name FROM runs ORDER BY id').all() as { id: number; name: string }[];
  for (const [i, { id, name }] of runs.entries()) {
    fill(store, id, name === 'a' ? trials : Math.floor(trials * 0.9), i * 3);
    store
      .prepare('UPDATE runs SET status = ?, finished_at = ? WHERE id = ?')
      .run(name === 'a' ? 'complete' : 'interrupted', '2026-01-01T10:00:00.000Z', id);
  }
  store.pragma('journal_mode = WAL');
}
