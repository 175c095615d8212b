// What the size of a dataset and of a record costs: wall time, processor time and memory of the real commands at several sizes, and how
// they grow. Run by hand:
//   npm run bench:size -- [SIZE...] [--rows N,N,N] [--only ls,report] [--keep DIR] [--json]
// Default: 500, 5000 and 50000 trials of 20 steps, two runs in each results root, and datasets of 10 times as many rows. The largest root
// takes about 7 GB in the temporary folder; it is removed at the end, unless --keep names a folder, where a later call finds it again.
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import Database from 'better-sqlite3';
import { gatherManifest } from '../../src/run/plan/manifest.ts';
import { runRows } from '../../src/run/plan/planRecord.ts';
import { plan } from '../../src/run/plan.ts';
import { makeAndOpen } from '../../src/run/resultsRoot.ts';
import { openStore, type Store } from '../../src/store/open.ts';
import { sumAttempt } from '../../src/store/records/modelCalls.ts';
import { insertRun } from '../../src/store/records/runs.ts';
import { atMost, type Bar, barLine, command, start, type Use } from './bars.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rows: { type: 'string' },
    only: { type: 'string' },
    keep: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});
const SIZES = positionals.length > 0 ? positionals.map(Number) : [500, 5000, 50_000];
const ROWS = values.rows?.split(',').map(Number) ?? SIZES.map((n) => 10 * n);
const say = (text: string) => {
  if (!values.json) console.log(text);
};

/** Seconds and megabytes. Bars hold on a quiet machine, at the size that they are said for. */
const BARS: Record<string, { readonly at: number; readonly seconds: number; readonly mb: number }> = {
  'ls RUN': { at: 50_000, seconds: 2, mb: 400 },
  report: { at: 50_000, seconds: 2, mb: 400 },
  'show RUN': { at: 50_000, seconds: 2, mb: 400 },
  'show RUN INSTANCE': { at: 50_000, seconds: 2, mb: 400 },
  compare: { at: 50_000, seconds: 4, mb: 400 },
  'view, first list': { at: 50_000, seconds: 1, mb: 400 },
  'resume, first trial': { at: 50_000, seconds: 5, mb: 400 },
  'run --dry-run': { at: 500_000, seconds: 15, mb: 300 },
};
const MOST_GROWTH = 1.1;

interface Line extends Use {
  readonly what: string;
  readonly size: number;
}

interface Place {
  readonly dir: string;
  readonly root: string;
  readonly size: number;
}

/** Of a process that still works. */
function usedBy(pid: number): Omit<Use, 'wall_s'> {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')
    .map(Number);
  const peak = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1];
  return { user_s: fields[11]! / 100, system_s: fields[12]! / 100, rss_mb: Number(peak) / 1024 };
}

/** Starts a command that does not end by itself, waits until `look` finds what it is to do, and kills it after `then`. */
async function untilSeen<T>(
  place: Place,
  args: readonly string[],
  everyMs: number,
  look: () => T | undefined,
  then: (found: T) => number | Promise<number>,
): Promise<Use> {
  const child = start(place, args, join(place.dir, 'unused'));
  const closed = new Promise<void>((resolve) => child.on('close', () => resolve()));
  try {
    while (child.exitCode === null && child.signalCode === null) {
      const found = look();
      if (found !== undefined) return { wall_s: await then(found), ...usedBy(child.pid!) };
      await wait(everyMs);
    }
    throw new Error(`${args[0]} ended early: ${readFileSync(join(place.dir, 'stderr'), 'utf8')}`);
  } finally {
    child.kill('SIGKILL');
    await closed;
  }
}

/** Until the run has taken a trial. The next measurement finds what an interrupted run leaves, and the lock of a dead process. */
async function resume(place: Place): Promise<Use> {
  const db = new Database(join(place.root, 'swebatch.db'), { readonly: true });
  const taken = db.prepare(
    `SELECT 1 FROM trials WHERE run_id = (SELECT id FROM runs WHERE name = 'b') AND lease_at_ms >= ? LIMIT 1`,
  );
  const [since, began] = [Date.now(), performance.now()];
  const args = ['resume', 'b', '-o', place.root, '--progress', 'none'];
  const look = () => taken.get(since);
  return untilSeen(place, args, 20, look, () => (performance.now() - began) / 1000).finally(() => db.close());
}

/** For somebody who opens the address as soon as it is there. */
const firstList = (place: Place): Promise<Use> =>
  untilSeen(
    place,
    ['view', '-o', place.root, '--port', '0'],
    5,
    () => /^http\S+$/m.exec(readFileSync(join(place.dir, 'stdout'), 'utf8'))?.[0],
    async (address) => {
      const began = performance.now();
      const list = await (await fetch(new URL('/api/first', address))).text();
      if (!list.includes('"b"')) throw new Error('the list lacks a run');
      return (performance.now() - began) / 1000;
    },
  );

/** `pick` says which instance is shown: one in the middle. */
const COMMANDS: readonly { readonly what: string; readonly run: (place: Place) => Promise<Use> }[] = [
  { what: 'ls RUN', run: (p) => command(p, ['ls', 'a', '-o', p.root]) },
  { what: 'report', run: (p) => command(p, ['report', 'a', '-o', p.root]) },
  { what: 'show RUN', run: (p) => command(p, ['show', 'a', '-o', p.root]) },
  {
    what: 'show RUN INSTANCE',
    run: (p) =>
      command(p, ['show', 'a', `django__django-${10_000 + 5 * Math.floor(p.size / 10)}`, '-o', p.root]),
  },
  { what: 'compare', run: (p) => command(p, ['compare', 'a', 'b', '-o', p.root]) },
  { what: 'view, first list', run: firstList },
  { what: 'resume, first trial', run: resume },
];
const PLAN = 'run --dry-run';
const wanted = (what: string) => !values.only || values.only.split(',').some((part) => what.startsWith(part));

function config(dir: string): string {
  const script = join(dir, 'script.json');
  writeFileSync(script, JSON.stringify(['```bash\necho step\n```']));
  const path = join(dir, 'config.json');
  writeFileSync(
    path,
    JSON.stringify({
      agent: { step_limit: STEPS, cost_limit: 0 },
      environment: { environment_class: 'local', cwd: dir },
      model: { model_name: `scripted:${script}` },
      run: { workers: 8, breaker: { empty_patches: 0 }, disk_floor: '0' },
    }),
  );
  return path;
}

const gb = (path: string) => (statSync(path).size / 2 ** 30).toFixed(2);

async function measure(): Promise<Line[]> {
  const base = values.keep ?? mkdtempSync(join(tmpdir(), 'swebatch-size-'));
  const lines: Line[] = [];
  const keep = (what: string, size: number, use: Use) => {
    lines.push({ what, size, ...use });
    say(
      `${what.padEnd(20)} ${String(size).padStart(7)} · wall ${use.wall_s.toFixed(2)} s · user ${use.user_s.toFixed(2)} s · system ${use.system_s.toFixed(2)} s · peak RSS ${use.rss_mb.toFixed(0)} MB`,
    );
  };
  try {
    for (const size of SIZES) {
      const dir = join(base, `trials-${size}`);
      const place = { dir, root: join(dir, 'out'), size };
      const todo = COMMANDS.filter(({ what }) => wanted(what));
      if (todo.length === 0) continue;
      if (!existsSync(place.root)) {
        mkdirSync(dir, { recursive: true });
        writeDataset(join(dir, 'data.jsonl'), size);
        await makeRoot(place.root, join(dir, 'data.jsonl'), config(dir), size);
      }
      say(
        `${size} trials x ${STEPS} steps, two runs: ${gb(join(place.root, 'swebatch.db'))} GB; load ${loadavg()[0]!.toFixed(1)}`,
      );
      for (const { what, run } of todo) keep(what, size, await run(place));
      if (!values.keep) rmSync(dir, { recursive: true, force: true });
    }
    for (const size of wanted(PLAN) ? ROWS : []) {
      const dir = join(base, `rows-${size}`);
      mkdirSync(dir, { recursive: true });
      const data = join(dir, 'data.jsonl');
      writeDataset(data, size);
      const plan = ['run', '--dry-run', '--subset', data, '-c', config(dir), '-o', join(dir, 'out')];
      keep(PLAN, size, await command({ dir }, plan));
      rmSync(dir, { recursive: true, force: true });
    }
    return lines;
  } finally {
    if (!values.keep) rmSync(base, { recursive: true, force: true });
  }
}

/** Slope between two sizes on paper with two logarithmic scales: 1 is linear. What starting the program costs is taken away first. */
const exponent = (a: Line, b: Line, floor: number): number => {
  const [x, y] = [a.user_s + a.system_s - floor, b.user_s + b.system_s - floor].map((s) => Math.max(s, 0.05));
  return Math.log(y! / x!) / Math.log(b.size / a.size);
};

// Datasets and results roots of any size for the benchmark of sizes. A run is planned by the program's own code; what its trials left
// is then filled in by SQL, because a hundred thousand real attempts would take days.
const STEPS = 20;
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
function writeDataset(path: string, rows: number): void {
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
  `INSERT INTO evaluations (run_id, trial_id, attempt_id, instance_id, model, patch_sha256, spec_hash, harness, outcome, resolved, report, log,
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
async function makeRoot(root: string, dataset: string, config: string, trials: number): Promise<void> {
  {
    using store = makeAndOpen(root);
    for (const name of ['a', 'b']) {
      const caller = { env: {}, cwd: root, tell: () => {} };
      const options = { results: root, name, dataset: { subset: dataset, limit: trials }, config: [config] };
      const { request, resolved } = await plan(options, caller);
      const manifest = await gatherManifest(request, resolved, {
        env: {},
        cwd: '',
        command: [],
        failedIn: undefined,
      });
      insertRun(store, runRows({ ...request, manifest }));
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

const lines = await measure();
const groups = [...Map.groupBy(lines, (line) => line.what)];
const place = { dir: mkdtempSync(join(tmpdir(), 'swebatch-size-')), root: '', size: 0 };
const starts: number[] = [];
for (let i = 0; i < 5; i++) {
  const { user_s, system_s } = await command(place, ['ls', '--help']);
  starts.push(user_s + system_s);
}
rmSync(place.dir, { recursive: true, force: true });
const floor = Math.min(...starts);
say(`starting the program: ${floor.toFixed(2)} s`);
const growth = groups.flatMap(([what, [first, ...rest]]) =>
  rest.length === 0 ? [] : [{ what, exponent: exponent(first!, rest.at(-1)!, floor) }],
);
const bars: Bar[] = [
  ...lines.flatMap(({ what, size, wall_s, rss_mb }) => {
    const bar = BARS[what]!;
    if (bar.at !== size) return [];
    return [
      atMost(`${what} at ${size}, seconds`, wall_s, bar.seconds),
      atMost(`${what} at ${size}, MB`, rss_mb, bar.mb),
    ];
  }),
  ...growth.map((g) => atMost(`${g.what}, growth exponent of processor time`, g.exponent, MOST_GROWTH)),
];
for (const bar of bars) say(barLine(bar));
if (values.json) console.log(JSON.stringify({ lines, growth, bars }));
