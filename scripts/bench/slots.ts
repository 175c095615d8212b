// A simulated night at many slots in one process: how far the wall time is from what list scheduling could reach, memory and event loop.
//   npm run bench:slots -- [--slots 512] [--trials 5000] [--scale 0.25] [--json]
// Model and environment only wait; runner, agent loop, pool of eight engines, record and exports are the real ones.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import Database from 'better-sqlite3';
import { atMost, type Bar, barLine } from './bars.ts';
import { simulatedTrial, trialMs } from './slots/simulated.ts';

const { values } = parseArgs({
  options: {
    slots: { type: 'string', default: '512' },
    trials: { type: 'string', default: '5000' },
    scale: { type: 'string', default: '0.25' },
    json: { type: 'boolean', default: false },
  },
});
if (process.env.SWEBATCH_BENCH_SCALE !== values.scale) {
  // The simulation reads it when it is loaded, here and in the measured process.
  const again = spawn(process.execPath, [import.meta.filename, ...process.argv.slice(2)], {
    stdio: 'inherit',
    env: { ...process.env, SWEBATCH_BENCH_SCALE: values.scale },
  });
  process.exit(await new Promise<number>((resolve) => again.on('close', (code) => resolve(code ?? 1))));
}
const ROOT = join(import.meta.dirname, '..', '..');
const BIN = join(ROOT, 'dist', 'cli', 'bin.js');
const TRIALS = Number(values.trials);
const idOf = (n: number): string => `bench__bench-${n + 1}`;

/** The wall time of a perfect runner: each trial goes to the slot that is free first, in the order of the dataset. */
function listScheduled(slots: number): number {
  const free = new Float64Array(slots);
  for (let n = 0; n < TRIALS; n++) {
    let first = 0;
    for (let slot = 1; slot < slots; slot++) if (free[slot]! < free[first]!) first = slot;
    free[first]! += trialMs(simulatedTrial(idOf(n)));
  }
  return Math.max(...free) / 1000;
}

function writeInputs(dir: string, slots: number): { dataset: string; config: string } {
  const dataset = join(dir, 'data.jsonl');
  const rows = Array.from({ length: TRIALS }, (_, n) => ({
    ...{ instance_id: idOf(n), image: 'none', base_commit: '0'.repeat(40) },
    problem_statement: 'bench',
  }));
  writeFileSync(dataset, rows.map((row) => JSON.stringify(row)).join('\n'));
  const config = join(dir, 'config.json');
  writeFileSync(
    config,
    JSON.stringify({
      agent: { step_limit: 0, cost_limit: 0 },
      environment: { environment_class: join(import.meta.dirname, 'slots', 'slotsEnvironment.ts') },
      model: {
        model_name: 'simulated',
        model_class: join(import.meta.dirname, 'slots', 'slotsModel.ts'),
        prices: 'free',
      },
      run: { workers: slots, order: 'dataset', disk_floor: '0', breaker: { empty_patches: 0 } },
    }),
  );
  return { dataset, config };
}

interface Seen {
  readonly loop_p99_ms: number;
  readonly loop_max_ms: number;
  readonly peak_rss_mb: number;
  readonly rss_mb: readonly number[];
  readonly cpu_s: number;
  readonly cpu_wait_s: number | null;
}

async function measure(slots: number) {
  const dir = mkdtempSync(join(tmpdir(), 'swebatch-bench-'));
  const { dataset, config } = writeInputs(dir, slots);
  const out = join(dir, 'monitor.json');
  const monitor = join(import.meta.dirname, 'monitor.mjs');
  const run = ['run', '--subset', dataset, '-c', config, '-o', join(dir, 'out'), '--run-id', 'bench'];
  const loadBefore = loadavg()[0]!;
  const child = spawn(process.execPath, ['--import', monitor, BIN, ...run, '--progress', 'none'], {
    cwd: ROOT,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, SWEBATCH_BENCH_OUT: out, SWEBATCH_BENCH_SLOTS: String(slots) },
  });
  const exit = await new Promise<number | null>((resolve) => child.on('close', resolve));
  const db = new Database(join(dir, 'out', 'swebatch.db'), { readonly: true });
  const whole = db
    .prepare(
      `SELECT count(*) AS n, min(started_at) AS first, max(ended_at) AS last, sum(steps) AS steps,
         sum(exit_reason = 'submitted') AS submitted FROM attempts`,
    )
    .get() as { n: number; first: string; last: string; steps: number; submitted: number };
  db.close();
  const seen = JSON.parse(readFileSync(out, 'utf8')) as Seen;
  rmSync(dir, { recursive: true, force: true });
  const wall = (Date.parse(whole.last) - Date.parse(whole.first)) / 1000;
  const bound = listScheduled(slots);
  const fifth = Math.max(1, Math.floor(seen.rss_mb.length / 5));
  const mean = (list: readonly number[]) => list.reduce((a, b) => a + b, 0) / Math.max(1, list.length);
  return {
    ...{ slots, trials: whole.n, submitted: whole.submitted, steps: whole.steps, exit },
    ...{ wall_s: wall, bound_s: bound, over: wall / bound - 1, steps_per_s: whole.steps / wall },
    ...{ peak_rss_mb: seen.peak_rss_mb, loop_p99_ms: seen.loop_p99_ms, loop_max_ms: seen.loop_max_ms },
    growth: mean(seen.rss_mb.slice(-fifth)) / mean(seen.rss_mb.slice(fifth, 2 * fifth)),
    ...{ cpu_ms_per_step: (1000 * seen.cpu_s) / whole.steps, cpu_wait_s: seen.cpu_wait_s },
    ...{ load_before: loadBefore, load_after: loadavg()[0]! },
  };
}
type Row = Awaited<ReturnType<typeof measure>>;

const barsOf = (row: Row): Bar[] => [
  atMost(`${row.slots} slots, trials that did not submit`, row.trials - row.submitted, 0),
  atMost(`${row.slots} slots, % over list scheduling`, 100 * row.over, 3),
  atMost(`${row.slots} slots, peak RSS in MB`, row.peak_rss_mb, 300),
  atMost(`${row.slots} slots, RSS at the end to RSS early on`, row.growth, 1.25),
  atMost(`${row.slots} slots, event loop p99 in ms`, row.loop_p99_ms, 100),
];

const rows: Row[] = [];
for (const slots of values.slots.split(',').map(Number)) {
  const row = await measure(slots);
  rows.push(row);
  if (!values.json)
    console.log(
      `${String(slots).padStart(4)} slots · ${row.trials} trials · ${row.steps} steps · ${row.wall_s.toFixed(0)} s, bound ${row.bound_s.toFixed(0)} s (${(100 * row.over).toFixed(1)} % over) · ${row.steps_per_s.toFixed(0)} steps/s · ${row.cpu_ms_per_step.toFixed(2)} ms CPU a step, ${row.cpu_wait_s?.toFixed(0)} s waited for a processor · RSS ${row.peak_rss_mb.toFixed(0)} MB · loop p99 ${row.loop_p99_ms.toFixed(0)} ms · load ${row.load_before.toFixed(1)} to ${row.load_after.toFixed(1)} · exit ${row.exit}`,
    );
}
if (values.json) console.log(JSON.stringify({ scale: Number(values.scale), rows }));
else for (const row of rows) for (const bar of barsOf(row)) console.log(barLine(bar));
