// The whole runner with a model that answers at once: steps per second, machine CPU a step, memory and event-loop delay of the
// orchestrator, at several numbers of slots, each with its bar and whether it is met. Run by hand:
//   npm run bench:runner -- [--slots 1,8,32,64] [--steps 200] [--http] [--json]
//   npm run bench:runner -- --turnover     many short trials: how much containers that are started ahead gain
// Container start is left out of rate and CPU: the clock runs from the moment at which every slot has made its first call to the one at
// which the first slot has made its last. Storage is included.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import Database from 'better-sqlite3';
import { atLeast, atMost, type Bar, barLine, dockerExecRate } from './bars.ts';

const { values } = parseArgs({
  options: {
    slots: { type: 'string' },
    steps: { type: 'string' },
    http: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    turnover: { type: 'boolean', default: false },
    image: { type: 'string', default: 'swebatch-test/base:1' },
  },
});
const ROOT = join(import.meta.dirname, '..', '..');
// The built program is what people run; type stripping alone costs tens of megabytes.
const BIN = join(ROOT, 'dist', 'cli', 'bin.js');
const say = (text: string) => {
  if (!values.json) console.log(text);
};

/** Measured on the peer over HTTP, 8 x 200 steps: steps a second. */
const PEER_HTTP_STEPS_PER_S = 6.9;
/** Machine CPU of one step of the peer, container start apart. */
const PEER_CPU_MS = 76;

/** Busy seconds of all processors, from the kernel's own counters. */
function busySeconds(): number {
  const fields = readFileSync('/proc/stat', 'utf8').split('\n')[0]!.trim().split(/\s+/).slice(1).map(Number);
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = fields;
  return (user + nice + system + irq + softirq) / 100;
}

/** Samples the machine's CPU, so that the part between two moments can be read afterwards. */
function watchCpu() {
  const samples: { at: number; busy: number }[] = [];
  const sample = () => samples.push({ at: Date.now(), busy: busySeconds() });
  sample();
  const timer = setInterval(sample, 100);
  const at = (moment: number) =>
    samples.reduce((best, s) => (Math.abs(s.at - moment) < Math.abs(best.at - moment) ? s : best));
  return {
    between(from: number, to: number) {
      clearInterval(timer);
      sample();
      return at(to).busy - at(from).busy;
    },
  };
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

interface Work {
  readonly slots: number;
  readonly trials: number;
  readonly steps: number;
  readonly url: string | null;
  readonly environment?: Readonly<Record<string, unknown>>;
  readonly env?: Readonly<Record<string, string>>;
}

interface Row {
  slots: number;
  steps: number;
  wall_s: number;
  steps_per_s: number;
  cpu_ms_per_step: number;
  /** From the first attempt's start to the last one's end, containers included. */
  trials_per_s: number;
  peak_rss_mb: number;
  loop_p99_ms: number;
  rss_mb: number[];
  exit: number | null;
}

function writeInputs(dir: string, work: Work): { dataset: string; config: string } {
  const dataset = join(dir, 'data.jsonl');
  const rows = Array.from({ length: work.trials }, (_, i) => ({
    instance_id: `bench__bench-${i + 1}`,
    image: values.image,
    base_commit: '0'.repeat(40),
    problem_statement: 'bench',
  }));
  writeFileSync(dataset, rows.map((row) => JSON.stringify(row)).join('\n'));
  const script = join(dir, 'script.json');
  writeFileSync(script, JSON.stringify(['```bash\necho step\n```']));
  const config = join(dir, 'config.json');
  writeFileSync(
    config,
    JSON.stringify({
      agent: { step_limit: work.steps, cost_limit: 0 },
      environment: { seal_history: false, memory: '256m', pull: 'never', ...work.environment },
      model: work.url
        ? { model_name: 'fake', base_url: work.url, prices: 'free' }
        : { model_name: `scripted:${script}` },
      run: { workers: work.slots, breaker: { empty_patches: 0 } },
    }),
  );
  return { dataset, config };
}

async function measure(work: Work): Promise<Row> {
  const dir = mkdtempSync(join(tmpdir(), 'swebatch-bench-'));
  const { dataset, config } = writeInputs(dir, work);
  const out = join(dir, 'monitor.json');
  const cpu = watchCpu();
  const monitor = join(import.meta.dirname, 'monitor.mjs');
  const run = ['run', '--subset', dataset, '-c', config, '-o', join(dir, 'out'), '--run-id', 'bench'];
  const child = spawn(process.execPath, ['--import', monitor, BIN, ...run, '--progress', 'none'], {
    cwd: ROOT,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, ...work.env, SWEBATCH_BENCH_OUT: out, OPENAI_API_KEY: 'none' },
  });
  const exit = await new Promise<number | null>((resolve) => child.on('close', resolve));
  const db = new Database(join(dir, 'out', 'swebatch.db'), { readonly: true });
  const all = db.prepare(`SELECT count(*) AS n FROM model_calls WHERE state = 'ok'`).get() as { n: number };
  const whole = db
    .prepare(
      `SELECT max(first) AS first, min(last) AS last FROM
         (SELECT min(started_at) AS first, max(started_at) AS last FROM model_calls GROUP BY attempt_id)`,
    )
    .get() as { first: string; last: string };
  const calls = db
    .prepare(
      `SELECT count(*) AS n, min(started_at) AS first, max(started_at) AS last FROM model_calls
       WHERE state = 'ok' AND started_at BETWEEN ? AND ?`,
    )
    .get(whole.first, whole.last) as { n: number; first: string; last: string };
  const attempts = db
    .prepare('SELECT count(*) AS n, min(started_at) AS first, max(ended_at) AS last FROM attempts')
    .get() as { n: number; first: string; last: string };
  db.close();
  const seen = JSON.parse(readFileSync(out, 'utf8')) as Pick<Row, 'peak_rss_mb' | 'loop_p99_ms' | 'rss_mb'>;
  rmSync(dir, { recursive: true, force: true });
  const [from, to] = [Date.parse(calls.first), Date.parse(calls.last)];
  const wall = (to - from) / 1000;
  return {
    slots: work.slots,
    steps: all.n,
    wall_s: wall,
    steps_per_s: calls.n / wall,
    cpu_ms_per_step: (cpu.between(from, to) * 1000) / calls.n,
    trials_per_s: attempts.n / ((Date.parse(attempts.last) - Date.parse(attempts.first)) / 1000),
    peak_rss_mb: seen.peak_rss_mb,
    loop_p99_ms: seen.loop_p99_ms,
    rss_mb: seen.rss_mb,
    exit,
  };
}

const mean = (list: readonly number[]) => list.reduce((a, b) => a + b, 0) / Math.max(1, list.length);

function barsOf(row: Row, execRate: number): Bar[] {
  const where = `${row.slots} slots`;
  // Memory is flat when the last fifth is like the second: the first fills while containers start.
  const fifth = Math.max(1, Math.floor(row.rss_mb.length / 5));
  const growth = mean(row.rss_mb.slice(-fifth)) / mean(row.rss_mb.slice(fifth, 2 * fifth));
  return [
    ...(row.slots <= 32
      ? [
          values.http
            ? atLeast(
                `${where}, steps/s, 25 times the peer over HTTP (${PEER_HTTP_STEPS_PER_S}/s)`,
                row.steps_per_s,
                25 * PEER_HTTP_STEPS_PER_S,
              )
            : atLeast(
                `${where}, steps/s, 15 times docker exec here and now (${execRate.toFixed(1)}/s)`,
                row.steps_per_s,
                15 * execRate,
              ),
        ]
      : []),
    atMost(
      `${where}, machine CPU ms a step, a tenth of the peer (${PEER_CPU_MS} ms)`,
      row.cpu_ms_per_step,
      PEER_CPU_MS / 10,
    ),
    ...(row.slots >= 64
      ? [
          atMost(`${where}, peak RSS in MB`, row.peak_rss_mb, 200),
          atMost(`${where}, RSS at the end to RSS early on`, growth, 1.25),
          atMost(`${where}, event loop p99 in ms`, row.loop_p99_ms, 100),
        ]
      : []),
  ];
}

async function steady(): Promise<void> {
  const server = values.http ? await startServer() : null;
  const rows: Row[] = [];
  const bars: Bar[] = [];
  for (const slots of (values.slots ?? '1,8,32,64').split(',').map(Number)) {
    const execRate = values.http || slots > 32 ? 0 : await dockerExecRate(values.image, slots, 3);
    const work = { slots, trials: slots, steps: Number(values.steps ?? 200), url: server?.url ?? null };
    const row = await measure(work);
    rows.push(row);
    bars.push(...barsOf(row, execRate));
    say(
      `${String(slots).padStart(3)} slots · ${row.steps} steps · ${row.steps_per_s.toFixed(0)} steps/s · ${row.cpu_ms_per_step.toFixed(2)} ms CPU a step · peak RSS ${row.peak_rss_mb.toFixed(0)} MB · loop p99 ${row.loop_p99_ms.toFixed(0)} ms · exit ${row.exit}`,
    );
  }
  server?.child.stdin?.end();
  for (const bar of bars) say(barLine(bar));
  if (values.json)
    console.log(JSON.stringify({ transport: values.http ? 'http' : 'in-process', rows, bars }));
}

const TURNOVER_ROUNDS = 3;
const median = (list: readonly number[]) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)]!;

/** Trials of a few steps, several a slot: here the time goes into containers. With and without in turns, because machines drift. */
async function turnover(): Promise<void> {
  const results: { slots: number; without: number[]; ahead: number[]; gain: number }[] = [];
  for (const slots of (values.slots ?? '1,2,4').split(',').map(Number)) {
    const rates: Record<'0' | '1', number[]> = { '0': [], '1': [] };
    for (let round = 0; round < TURNOVER_ROUNDS; round += 1)
      for (const ahead of ['0', '1'] as const) {
        const row = await measure({
          slots,
          trials: Math.max(12, slots * 6),
          steps: Number(values.steps ?? 5),
          url: null,
          environment: { environment_class: join(import.meta.dirname, 'turnoverEnvironment.ts') },
          env: { SWEBATCH_BENCH_AHEAD: ahead },
        });
        if (row.exit !== 0) throw new Error(`the run ended with exit code ${row.exit}`);
        rates[ahead].push(row.trials_per_s);
      }
    const gain = median(rates['1']) / median(rates['0']);
    results.push({ slots, without: rates['0'], ahead: rates['1'], gain });
    say(
      `${String(slots).padStart(3)} slots · ${median(rates['0']).toFixed(2)} trials/s · started ahead ${median(rates['1']).toFixed(2)} trials/s · ${gain.toFixed(2)} times`,
    );
  }
  if (values.json) console.log(JSON.stringify({ turnover: results }));
}

await (values.turnover ? turnover() : steady());
