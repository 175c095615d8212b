// A command of the built program as a process of its own, with what it took.
import { spawn } from 'node:child_process';
import { openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

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
