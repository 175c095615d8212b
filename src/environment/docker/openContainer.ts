/** A started container with a way to run commands in it: by a supervisor inside, or by one exec each where that cannot run. */
import type Docker from 'dockerode';
import type { LimitFunction } from 'p-limit';
import { errorText } from '../../base/text/errorText.ts';
import { parseDuration, parseSize } from '../../base/text/units.ts';
import { type Environment, EnvironmentError, type StartRequest } from '../environment.ts';
import type { EnvironmentConfig } from '../environmentConfig.ts';
import { type Channel, createChannel } from '../exec/channel.ts';
import { createPlainExecTransport } from '../exec/plainExec.ts';
import type { ContainerControl, StartProcess } from '../exec/ports.ts';
import { createSupervisorTransport } from '../exec/supervisor.ts';
import { NO_ANSWER } from '../exec/supervisorSession.ts';
import type { Transport } from '../exec/transport.ts';
import type { ScriptRunner } from '../patch/capture.ts';
import { daemonAnswer, readFault } from '../places/dockerFault.ts';
import type { EngineWatch } from '../places/engineWatch.ts';
import type { EnsureImage } from '../places/pullStage.ts';
import type { ProgramVolumes } from '../programs/programVolume.ts';
import { createContainer, type Discard, deathOf } from './container.ts';
import { putFile } from './containerFiles.ts';
import type { QuotaProbe } from './diskQuota.ts';
import { createDiskWatch } from './diskWatch.ts';
import type { DockerFactoryOptions } from './dockerOptions.ts';
import { startRelay } from './relayContainer.ts';
import type { Sealer } from './seal.ts';
import { processStarter } from './startProcess.ts';

export interface DockerShared {
  readonly docker: Docker;
  readonly config: EnvironmentConfig;
  readonly options: DockerFactoryOptions;
  readonly ensure: EnsureImage;
  readonly starting: LimitFunction;
  readonly sealer: Sealer;
  readonly quotaBytes: QuotaProbe;
  readonly programs: ProgramVolumes;
  readonly watch: EngineWatch;
  readonly discard: Discard;
}

const SUPERVISOR_START_MS = 15_000;

export interface OpenContainer {
  readonly container: Docker.Container;
  death(
    lifetimeS: number,
    evidence: Readonly<Record<string, unknown>>,
  ): Promise<EnvironmentError | undefined>;
  readonly channel: Channel;
  readonly run: ScriptRunner;
  readonly listen: NonNullable<Environment['listen']>;
  remove(): Promise<void>;
}

/** A started container with a way to run commands in it; removed again when the latter fails. */
export async function openContainer(
  shared: DockerShared,
  request: StartRequest,
  image: string,
  notes: string[],
  programVolume?: string,
): Promise<OpenContainer> {
  const { docker, config, options, quotaBytes, watch, discard } = shared;
  const { quietEnv = true, capAdd = [] } = options;
  const spec = { config, image, request, quietEnv, capAdd, programVolume, watch, discard };
  const since = watch.mark();
  const create = async () => {
    const storageBytes = await quotaBytes.bytes();
    try {
      return await createContainer(docker, { ...spec, storageBytes });
    } catch (error) {
      if (storageBytes === 0 || !quotaBytes.refused(error)) throw error;
      return createContainer(docker, { ...spec, storageBytes: 0 });
    }
  };
  const container = await shared.starting(create);
  const remove = () => discard(container);
  const death: OpenContainer['death'] = (lifetimeS, evidence) =>
    deathOf({ docker, container, watch, since }, lifetimeS, evidence);
  try {
    const channel = await openChannel(shared, container, death, notes);
    const { starting } = shared;
    const relay = { docker, containerId: container.id, request, starting, watch, discard };
    return {
      container,
      death,
      channel,
      run: (script, more) => channel.harness(script, more),
      listen: (port, onConnection) => startRelay({ ...relay, port, onConnection }),
      remove,
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

async function openChannel(
  { config, options, watch }: DockerShared,
  container: Docker.Container,
  death: OpenContainer['death'],
  notes: string[],
): Promise<Channel> {
  const control: ContainerControl = {
    death: (evidence) => death(parseDuration(config.container_timeout), evidence),
    restart: async () => {
      await daemonAnswer(container.restart({ t: 0 }));
    },
    watchDisk: createDiskWatch(container, parseSize(config.disk), options.diskPollMs),
  };
  const startProcess = processStarter(container, undefined, watch.suspect);
  const transport =
    (config.supervisor ? await supervise(startProcess, config, control, notes) : undefined) ??
    (await createPlainExecTransport(startProcess, config.interpreter, (path, content) =>
      putFile(container, path, content, 0o644),
    ));
  return createChannel(transport, config, control);
}

/** undefined, with a note why, where the container is alive and cannot run it. */
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
    const death = await control.death({ while: 'starting the supervisor' });
    if (death?.sub === 'daemon_lost') throw death;
    if (death)
      throw new EnvironmentError('start_failed', death.message, {
        evidence: { ...death.evidence },
        cause: error,
      });
    const text = errorText(error);
    // The engine was away, or dropped it without a word: that says nothing about the image.
    if (again && (readFault(error).daemonGone || text.endsWith(NO_ANSWER)))
      return supervise(startProcess, config, control, notes, false);
    notes.push(`plain exec instead of the supervisor: ${text}`);
    return undefined;
  }
}
