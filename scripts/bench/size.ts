// What the size of a dataset and of a record costs: wall time, processor time and memory of the real commands at several sizes, and how
// they grow. Run by hand:
//   npm run bench:size -- [SIZE...] [--rows N,N,N] [--only ls,report] [--keep DIR] [--json]
// Default: 500, 5000 and 50000 trials of 20 steps, two runs in each results root, and datasets of 10 times as many rows. The largest root
// takes about 7 GB in the temporary folder; it is removed at the end, unless --keep names a folder, where a later call finds it again.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import Database from 'better-sqlite3';
import { atMost, type Bar, barLine } from './bars.ts';
import { command, start, type Use } from './measuredCommand.ts';
import { makeRoot, STEPS, writeDataset } from './sizeData.ts';

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
  compare: { at: 50_000, seconds: 5, mb: 400 },
  'resume, first trial': { at: 50_000, seconds: 5, mb: 400 },
  'run --dry-run': { at: 500_000, seconds: 60, mb: 600 },
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

/** Until the run has taken a trial. */
async function resume(place: Place): Promise<Use> {
  const db = new Database(join(place.root, 'swebatch.db'), { readonly: true });
  const taken = db.prepare(
    `SELECT 1 FROM trials WHERE run_id = (SELECT id FROM runs WHERE name = 'b') AND lease_at_ms >= ? LIMIT 1`,
  );
  const [since, began] = [Date.now(), performance.now()];
  const child = start(
    place,
    ['resume', 'b', '-o', place.root, '--progress', 'none'],
    join(place.dir, 'unused'),
  );
  const closed = new Promise<void>((resolve) => child.on('close', () => resolve()));
  try {
    while (child.exitCode === null) {
      if (taken.get(since)) return { wall_s: (performance.now() - began) / 1000, ...usedBy(child.pid!) };
      await wait(20);
    }
    throw new Error(`resume ended early: ${readFileSync(join(place.dir, 'stderr'), 'utf8')}`);
  } finally {
    db.close();
    child.kill('SIGKILL');
    await closed;
    // The next measurement finds what an interrupted run leaves, and the lock of a dead process.
  }
}

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
