// What the benchmarks are held to, and a rate of `docker exec` measured beside them: one of these
// is what every step of the peer costs, so it is the peer's rate on this machine in this minute.
import { execFileSync, spawn } from 'node:child_process';
import { openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Bar {
  readonly bar: string;
  readonly value: number;
  readonly limit: number;
  readonly pass: boolean;
}

export const atLeast = (bar: string, value: number, limit: number): Bar => ({
  bar,
  value,
  limit,
  pass: value >= limit,
});
export const atMost = (bar: string, value: number, limit: number): Bar => ({
  bar,
  value,
  limit,
  pass: value <= limit,
});

const short = (value: number) => (value >= 100 ? value.toFixed(0) : value.toFixed(2));
export const barLine = ({ bar, value, limit, pass }: Bar): string =>
  `${pass ? 'pass' : 'FAIL'}  ${bar}: ${short(value)} (limit ${short(limit)})`;

/** `docker exec CONTAINER bash -c true` by the CLI, `width` at a time, each with a checked exit code: how many a second. */
export async function dockerExecRate(image: string, width: number, seconds: number): Promise<number> {
  const id = execFileSync(
    'docker',
    ['run', '-d', '--init', '--network', 'none', '--label', 'swebatch.bench=1', image, 'sleep', '600'],
    { encoding: 'utf8' },
  ).trim();
  const once = () =>
    new Promise<void>((resolve, reject) => {
      spawn('docker', ['exec', id, 'bash', '-c', 'exit 7'], { stdio: 'ignore' })
        .on('error', reject)
        .on('close', (code) =>
          code === 7 ? resolve() : reject(new Error(`docker exec ended with ${code}`)),
        );
    });
  try {
    await once();
    let done = 0;
    const began = performance.now();
    await Promise.all(
      Array.from({ length: width }, async () => {
        while (performance.now() - began < seconds * 1000) {
          await once();
          done += 1;
        }
      }),
    );
    return (done / (performance.now() - began)) * 1000;
  } finally {
    execFileSync('docker', ['rm', '-f', id], { stdio: 'ignore' });
  }
}

// A command of the built program as a process of its own, with what it took.
const BIN = join(import.meta.dirname, '..', '..', 'dist', 'cli', 'bin.js');
const USAGE = join(import.meta.dirname, 'sizeUsage.mjs');

/** Where it works; its output lies there in stdout and stderr. */
interface Place {
  readonly dir: string;
}

export interface Use {
  readonly wall_s: number;
  readonly user_s: number;
  readonly system_s: number;
  readonly rss_mb: number;
}
export const start = ({ dir }: Place, args: readonly string[], usage: string) =>
  spawn(process.execPath, ['--import', USAGE, BIN, ...args], {
    cwd: dir,
    stdio: ['ignore', openSync(join(dir, 'stdout'), 'w'), openSync(join(dir, 'stderr'), 'w')],
    env: { ...process.env, NO_COLOR: '1', SWEBATCH_BENCH_OUT: usage },
  });

export async function command({ dir }: Place, args: readonly string[]): Promise<Use> {
  const usage = join(dir, 'usage.json');
  const began = performance.now();
  const child = start({ dir }, args, usage);
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  const wall_s = (performance.now() - began) / 1000;
  if (code !== 0)
    throw new Error(`${args.join(' ')} ended with ${code}: ${readFileSync(join(dir, 'stderr'), 'utf8')}`);
  return { wall_s, ...(JSON.parse(readFileSync(usage, 'utf8')) as Omit<Use, 'wall_s'>) };
}
