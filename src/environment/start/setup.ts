/** What runs in every container before the agent: the commands that make it ready, and the picture of its start tree. */
import { randomBytes } from 'node:crypto';
import { EnvironmentError, type StartRequest } from '../environment.ts';
import type { EnvironmentConfig } from '../environmentConfig.ts';
import type { Channel } from '../exec/channel.ts';
import { type GitSnapshot, type ScriptRunner, takeSnapshot } from '../patch/capture.ts';
import { keepTree, type TreeSnapshot } from '../patch/treeSnapshot.ts';

/** The task's own waits until what its image starts is ready; the configured one may build on that. */
export const setupsOf = ({
  container,
  startupCommand,
}: Pick<StartRequest, 'container' | 'startupCommand'>): string[] =>
  [container?.startupCommand ?? '', startupCommand ?? ''].filter((command) => command !== '');

export async function runSetup(
  channel: Channel,
  config: EnvironmentConfig,
  command: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const done = await channel.execute(command, { timeoutS: config.start_timeout, signal });
  if (done.exitCode === 0) return;
  const tail = done.output.slice(-400).trim();
  throw new EnvironmentError(
    'setup_failed',
    `setup failed (rc ${done.exitCode}): ${[done.exceptionInfo, tail].filter(Boolean).join(' ') || 'no output'}`,
    { evidence: { exitCode: done.exitCode, timedOut: done.timedOut, output: done.output.slice(-2000) } },
  );
}

/** By git where there is one, else as a copy. */
export async function pictureOf(
  run: ScriptRunner,
  { cwd, capture_timeout }: EnvironmentConfig,
): Promise<GitSnapshot | TreeSnapshot | undefined> {
  // A copy of everything is no snapshot.
  if (cwd === '/') return undefined;
  const name = randomBytes(6).toString('hex');
  return (
    (await takeSnapshot(run, cwd, name, capture_timeout)) ?? (await keepTree(run, cwd, name, capture_timeout))
  );
}
