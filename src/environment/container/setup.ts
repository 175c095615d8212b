/** The work in every container before the agent: the commands that make it ready, and the picture of its start tree. */

import { randomBytes } from 'node:crypto';
import { errorFirst } from '../../base/text/errorFirst.ts';
import { EnvironmentError, type StartRequest } from '../environment.ts';
import type { EnvironmentConfig } from '../environmentConfig.ts';
import type { Channel } from '../exec/channel.ts';
import { type GitSnapshot, takeSnapshot } from '../patch/capture.ts';
import { keepTree, type TreeSnapshot } from '../patch/treeSnapshot.ts';
import type { Channels } from './container.ts';

/** Tells the next phase; throws when the start was aborted. */
export const phasesOf =
  ({ signal, onPhase }: StartRequest) =>
  (name: string): void => {
    signal?.throwIfAborted();
    onPhase?.(name);
  };

/**
 * Resolves to the picture; undefined where none is wanted or there can be none. `known`: the picture that the image has, as long as no command
 * changes the tree.
 */
export async function setUp(
  { own, worker = own }: Channels,
  config: EnvironmentConfig,
  request: StartRequest,
  { snapshot = true, known }: { snapshot?: boolean | undefined; known?: GitSnapshot | undefined },
): Promise<GitSnapshot | TreeSnapshot | undefined> {
  const phase = phasesOf(request);
  // The task's own command waits until the ENTRYPOINT is ready; the configured command may build on that.
  const commands = [
    { channel: own, command: request.container?.startupCommand ?? '' },
    { channel: worker, command: request.startupCommand ?? '' },
  ].filter(({ command }) => command !== '');
  for (const { channel, command } of commands) {
    phase('setup');
    await runSetup(channel, config, command, request.signal);
  }
  const { cwd, capture_timeout: timeoutS } = config;
  // A copy of everything is no snapshot.
  if (!snapshot || cwd === '/') return undefined;
  phase('snapshot');
  if (known && commands.length === 0) return known;
  const name = randomBytes(6).toString('hex');
  // By git where there is one, else as a copy.
  return (
    (await takeSnapshot(own.harness, cwd, name, timeoutS)) ??
    (await keepTree(own.harness, cwd, name, timeoutS))
  );
}

async function runSetup(
  channel: Channel,
  config: EnvironmentConfig,
  command: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const done = await channel.execute(command, { timeoutS: config.start_timeout, signal });
  if (done.exitCode === 0) return;
  const tail = errorFirst(done.output, 400);
  throw new EnvironmentError(
    'setup_failed',
    `setup failed (rc ${done.exitCode}): ${[done.exceptionInfo, tail].filter(Boolean).join(' ') || 'no output'}`,
    { evidence: { exitCode: done.exitCode, timedOut: done.timedOut, output: done.output.slice(-2000) } },
  );
}
