// What the benchmarks are held to, and a rate of `docker exec` measured beside them: one of these
// is what every step of the peer costs, so it is the peer's rate on this machine in this minute.
import { execFileSync, spawn } from 'node:child_process';

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
