// The whole runner with a model that answers at once: steps per second, machine CPU a step, memory and event-loop delay of the
// orchestrator, at several numbers of slots. Run by hand: npm run bench:runner -- [--slots 1,8,32,64] [--steps 200] [--http] [--json].
// Container start is left out of the rate: the clock runs from the first model call to the last. Storage is included.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import Database from 'better-sqlite3';

const { values } = parseArgs({
  options: {
    slots: { type: 'string', default: '1,8,32,64' },
    steps: { type: 'string', default: '200' },
    http: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    image: { type: 'string', default: 'swebatch-test/base:1' },
  },
});
const ROOT = join(import.meta.dirname, '..', '..');
// The built program is what people run; type stripping alone costs tens of megabytes.
const BIN = join(ROOT, 'dist', 'cli', 'bin.js');
const steps = Number(values.steps);

/** Jiffies of all processors that were not idle. */
function machineCpuSeconds(): number {
  const times = cpus().map((c) => c.times);
  return times.reduce((sum, t) => sum + t.user + t.nice + t.sys + t.irq, 0) / 1000;
}

async function startServer(): Promise<{ url: string; child: ChildProcess }> {
  const main = join(ROOT, 'tests', 'support', 'fakeModelServerMain.ts');
  const dir = mkdtempSync(join(tmpdir(), 'swebatch-bench-server-'));
  const script = join(dir, 'script.json');
  writeFileSync(script, JSON.stringify(['```bash\necho step\n```']));
  const child = spawn(process.execPath, [main, '--scripts', script], { stdio: ['pipe', 'pipe', 'inherit'] });
  const url = await new Promise<string>((resolve) => {
    child.stdout?.once('data', (chunk: Buffer) =>
      resolve((JSON.parse(chunk.toString()) as { url: string }).url),
    );
  });
  rmSync(dir, { recursive: true, force: true });
  return { url, child };
}

interface Row {
  slots: number;
  steps: number;
  wall_s: number;
  steps_per_s: number;
  cpu_ms_per_step: number;
  peak_rss_mb: number;
  loop_p99_ms: number;
  rss_mb: number[];
  exit: number | null;
}

async function measure(slots: number, url: string | null): Promise<Row> {
  const dir = mkdtempSync(join(tmpdir(), 'swebatch-bench-'));
  const dataset = join(dir, 'data.jsonl');
  const ids = Array.from({ length: slots }, (_, i) => `bench__bench-${i + 1}`);
  writeFileSync(
    dataset,
    ids
      .map((instance_id) =>
        JSON.stringify({
          instance_id,
          image: values.image,
          base_commit: '0'.repeat(40),
          problem_statement: 'bench',
        }),
      )
      .join('\n'),
  );
  const script = join(dir, 'script.json');
  writeFileSync(script, JSON.stringify(['```bash\necho step\n```']));
  const config = join(dir, 'config.json');
  writeFileSync(
    config,
    JSON.stringify({
      agent: { step_limit: steps, cost_limit: 0 },
      environment: { seal_history: false, memory: '256m', pull: 'never' },
      model: url
        ? { model_name: 'fake', base_url: url, prices: 'free' }
        : { model_name: `scripted:${script}` },
      run: { workers: slots, breaker: { empty_patches: 0 } },
    }),
  );
  const out = join(dir, 'monitor.json');
  const before = machineCpuSeconds();
  const child = spawn(
    process.execPath,
    [
      '--import',
      join(import.meta.dirname, 'monitor.mjs'),
      BIN,
      'run',
      '--subset',
      dataset,
      '-c',
      config,
      '-o',
      join(dir, 'out'),
      '--run-id',
      'bench',
      '--progress',
      'none',
    ],
    {
      cwd: ROOT,
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, SWEBATCH_BENCH_OUT: out, OPENAI_API_KEY: 'none' },
    },
  );
  const exit = await new Promise<number | null>((resolve) => child.on('close', resolve));
  const cpu = machineCpuSeconds() - before;
  const db = new Database(join(dir, 'out', 'swebatch.db'), { readonly: true });
  const { n, first, last } = db
    .prepare(
      `SELECT count(*) AS n, min(started_at) AS first, max(started_at) AS last FROM model_calls WHERE state = 'ok'`,
    )
    .get() as { n: number; first: string; last: string };
  db.close();
  const monitor = JSON.parse(readFileSync(out, 'utf8')) as {
    peak_rss_mb: number;
    loop_p99_ms: number;
    rss_mb: number[];
  };
  rmSync(dir, { recursive: true, force: true });
  const wall = (Date.parse(last) - Date.parse(first)) / 1000;
  const { peak_rss_mb, loop_p99_ms, rss_mb } = monitor;
  return {
    slots,
    steps: n,
    wall_s: wall,
    steps_per_s: n / wall,
    cpu_ms_per_step: (cpu * 1000) / n,
    peak_rss_mb,
    loop_p99_ms,
    rss_mb,
    exit,
  };
}

const server = values.http ? await startServer() : null;
const rows: Row[] = [];
for (const slots of values.slots.split(',').map(Number)) {
  const row = await measure(slots, server?.url ?? null);
  rows.push(row);
  if (!values.json)
    console.log(
      `${String(slots).padStart(3)} slots · ${row.steps} steps · ${row.steps_per_s.toFixed(0)} steps/s · ${row.cpu_ms_per_step.toFixed(2)} ms CPU a step · peak RSS ${row.peak_rss_mb.toFixed(0)} MB · loop p99 ${row.loop_p99_ms.toFixed(0)} ms · exit ${row.exit}`,
    );
}
server?.child.stdin?.end();
if (values.json) console.log(JSON.stringify({ transport: values.http ? 'http' : 'in-process', rows }));
