/** A pod that runs, with a way to run commands in it. */
import type { V1Pod } from '@kubernetes/client-node';
import { errorText } from '../../base/text/errorText.ts';
import type { StartRequest } from '../environment.ts';
import type { EnvironmentConfig } from '../environmentConfig.ts';
import { type Channel, createChannel } from '../exec/channel.ts';
import { createPlainExecTransport } from '../exec/plainExec.ts';
import type { ContainerControl, StartProcess } from '../exec/ports.ts';
import { createSupervisorTransport } from '../exec/supervisor.ts';
import { NO_ANSWER } from '../exec/supervisorSession.ts';
import type { Transport } from '../exec/transport.ts';
import type { ScriptRunner } from '../patch/capture.ts';
import { deathOf } from './podDeath.ts';
import { putFile } from './podFiles.ts';
import { podProcesses } from './podProcess.ts';
import { type PodRelay, podRelay } from './podRelay.ts';
import type { Death, PodShared } from './podShared.ts';
import { runningPod } from './runningPod.ts';

export interface OpenPod {
  readonly name: string;
  readonly pod: V1Pod;
  readonly channel: Channel;
  readonly run: ScriptRunner;
  readonly startProcess: StartProcess;
  readonly death: Death;
  /** Where pods of the factory have one. */
  readonly relay: PodRelay | undefined;
  remove(): Promise<void>;
}

const SUPERVISOR_START_MS = 20_000;

export async function openPod(
  shared: PodShared,
  request: StartRequest,
  image: string,
  notes: string[],
): Promise<OpenPod> {
  const pod = await runningPod(shared, request, image);
  const name = pod.metadata?.name ?? '';
  const remove = () => shared.discard(name);
  try {
    const lost: { why?: string } = {};
    const death = deathOf(shared, name, lost);
    const startProcess = podProcesses(shared.cluster, name, (why) => {
      lost.why ??= why;
    });
    const channel = await openChannel(shared, startProcess, death, notes);
    const run: ScriptRunner = (script, more) => channel.harness(script, more);
    const relay = shared.options.relay ? podRelay(shared, name, death) : undefined;
    return { name, pod, channel, run, startProcess, death, relay, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

async function openChannel(
  { config }: PodShared,
  startProcess: StartProcess,
  death: Death,
  notes: string[],
): Promise<Channel> {
  const control: ContainerControl = {
    death,
    // A container that is started again has a new file system, and this one none of the agent's work.
    restart: () => Promise.reject(new Error('a pod cannot be started again with its files')),
    // The kubelet evicts a pod that writes more than its limit.
    watchDisk: () => () => undefined,
  };
  const transport =
    (config.supervisor ? await supervise(startProcess, config, control, notes) : undefined) ??
    (await createPlainExecTransport(startProcess, config.interpreter, (path, content) =>
      putFile(startProcess, path, content, 0o644),
    ));
  return createChannel(transport, config, control);
}

/** undefined, with a note why, where the pod lives and cannot run it. */
async function supervise(
  startProcess: StartProcess,
  config: EnvironmentConfig,
  control: ContainerControl,
  notes: string[],
  again = true,
): Promise<Transport | undefined> {
  const configured = config.start_timeout > 0 ? config.start_timeout * 1000 : Number.POSITIVE_INFINITY;
  try {
    const timeoutMs = Math.min(configured, SUPERVISOR_START_MS);
    return await createSupervisorTransport(startProcess, config.interpreter, timeoutMs);
  } catch (error) {
    const text = errorText(error);
    const death = await control.death({ while: 'starting the supervisor', error: text });
    if (death) throw death;
    // The stream could not be opened, or fell silent: that says nothing about the image.
    if (again && (text.endsWith(NO_ANSWER) || text.includes('could not be opened')))
      return supervise(startProcess, config, control, notes, false);
    notes.push(`plain exec instead of the supervisor: ${text}`);
    return undefined;
  }
}
