/** A pod that runs, with a way to run commands in it. Room and its image are waited for; an error names those that cannot come. */
import type { V1Pod } from '@kubernetes/client-node';
import { pause, sleep } from '../../base/async/timer.ts';
import type { Services } from '../../base/services.ts';
import { errorText } from '../../base/text/errorText.ts';
import { parseDuration } from '../../base/text/units.ts';
import { type Channels, type Container, openChannels } from '../container/container.ts';
import type { StartRequest } from '../environment.ts';

import { apiError, readApiFault } from './cluster.ts';
import { kubernetes } from './kubernetes.ts';
import { deathOf, faultError, type PodFault, stateOfPod } from './podFaults.ts';
import { podFiles } from './podFiles.ts';
import { podManifest, podName } from './podManifest.ts';
import { podProcesses } from './podProcess.ts';
import { type PodRelay, podRelay } from './podRelay.ts';
import { withServices } from './podServices.ts';
import type { PodShared } from './podShared.ts';

export interface OpenPod {
  readonly pod: V1Pod;
  readonly container: Container;
  readonly channels: Channels;
  /** Where pods of the factory have one. */
  readonly relay: PodRelay | undefined;
}

const SUPERVISOR_START_MS = 20_000;
/** Never called: its capabilities say so. */
const cannot = () => Promise.reject(new Error('a pod cannot do that'));

/** Removed again when no command can be run in it. `services`: containers that it has beside. */
export async function openPod(
  shared: PodShared,
  request: StartRequest,
  image: string,
  notes: string[],
  services?: Services,
): Promise<OpenPod> {
  const { config, options, watch } = shared;
  const pod = await runningPod(shared, request, image, services);
  const name = pod.metadata?.name ?? '';
  const lost: { why?: string } = {};
  const death = deathOf(shared, name, lost);
  const startProcess = podProcesses(shared, name, (why) => {
    lost.why ??= why;
  });
  const relay = options.relay ? podRelay(shared, name, death) : undefined;
  const container: Container = {
    id: name,
    watch,
    capabilities: { ...kubernetes.capabilities, worksBeside: false, listens: relay !== undefined },
    supervisorMs: SUPERVISOR_START_MS,
    startProcess,
    // A file is written anew when its stream broke: that makes no pod doubtful.
    ...podFiles(podProcesses(shared, name), watch),
    wasCut: (error) => errorText(error).includes('could not be opened'),
    death,
    // A container that is started again has a new file system, and in it none of the agent's work.
    restart: null,
    // The kubelet evicts a pod that writes more than its limit.
    watchDisk: () => () => undefined,
    ...{ as: cannot, keep: cannot, beside: cannot, listen: relay?.listen ?? cannot, unkept: null },
    systemChanges: async () => undefined,
    watchWrites: async () => ({ refused: 'a pod does not tell who writes in it' }),
    putBack: async () => false,
    serviceLogs: async () => [],
    remove: () => shared.discard(name),
  };
  return { pod, container, channels: await openChannels(container, config, notes), relay };
}

const NO_ROOM_MS = 5000;

async function runningPod(
  shared: PodShared,
  request: StartRequest,
  image: string,
  services: Services | undefined,
): Promise<V1Pod> {
  const name = await shared.inTurn(request, 'pull', () => madePod(shared, request, image, services));
  try {
    const outcome = await untilRunning(shared, request, name);
    if ('pod' in outcome) return outcome.pod;
    const events = await shared.cluster.eventsOf(name).catch(() => []);
    throw faultError(outcome.fault, { image, pod: name, events });
  } catch (error) {
    await shared.discard(name);
    throw error;
  }
}

/** A quota that is used up is waited for as room on a node is. Resolves to the pod's name. */
async function madePod(
  shared: PodShared,
  request: StartRequest,
  image: string,
  services: Services | undefined,
): Promise<string> {
  const { cluster, config, clusterConfig, options } = shared;
  const { quietEnv = true, capAdd = [] } = options;
  const sidecar = options.relay ? { program: options.program !== undefined } : undefined;
  for (;;) {
    request.signal?.throwIfAborted();
    const name = podName(request.instanceId);
    const of = { name, image, config, cluster: clusterConfig, request, quietEnv, capAdd, sidecar };
    const parts = { ...of, now: new Date() };
    const pod = podManifest(parts);
    try {
      await cluster.createPod(services ? withServices(pod, services, parts) : pod);
      return name;
    } catch (error) {
      const { meaning, status } = readApiFault(error);
      if (meaning !== 'no_room') {
        // An answer that never came may still have made the pod: its name is ours alone.
        if (status === undefined || status >= 500) await shared.discard(name);
        throw apiError(error, `the pod of ${request.instanceId} could not be made`);
      }
      request.onPhase?.('pull');
      await sleep(NO_ROOM_MS, request.signal);
    }
  }
}

const FIRST_LOOKS_MS = [100, 150, 200, 300, 400];
export const LOOK_MS = 600;
const ROOM_LOOK_MS = 2000;
/** The limit beside the pull: mounts, networks, the container itself. */
const START_LIMIT_MS = 600_000;

/** A pod that has no room waits without a limit: the slot's own deadlines judge that. */
async function untilRunning(
  shared: PodShared,
  request: StartRequest,
  name: string,
): Promise<{ pod: V1Pod } | { fault: PodFault }> {
  const { cluster, config, watch } = shared;
  const lifetimeS = parseDuration(config.container_timeout);
  const looks = [...FIRST_LOOKS_MS];
  let phase = '';
  let since = performance.now();
  for (;;) {
    request.signal?.throwIfAborted();
    let pod: V1Pod;
    try {
      pod = await cluster.readPod(name);
    } catch (error) {
      const { meaning } = readApiFault(error);
      if (meaning === 'gone')
        return {
          fault: { code: 'start_failed', again: true, message: `pod ${name} was deleted before it ran` },
        };
      if (meaning !== 'away') throw apiError(error, `looking at pod ${name}`);
      await watch.back(request.signal);
      await pause(LOOK_MS, request.signal);
      continue;
    }
    const state = stateOfPod(pod, lifetimeS);
    if (state.state === 'running') return { pod };
    if (state.state === 'failed') return { fault: beforeItRan(state.fault) };
    const now = `${state.phase} ${state.stuck}`;
    if (now !== phase) since = performance.now();
    phase = now;
    // Room and image are waited for alike, and that wait has no deadline of the slot's.
    request.onPhase?.(state.phase === 'start' ? 'start' : 'pull');
    const late = lateness(state, performance.now() - since, config.pull_timeout * 1000, name);
    if (late) return { fault: late };
    await pause(state.phase === 'schedule' ? ROOM_LOOK_MS : (looks.shift() ?? LOOK_MS), request.signal);
  }
}

/** A pod that ended before the agent began may be tried again, unless its container itself ended. */
const beforeItRan = (fault: PodFault): PodFault =>
  fault.code === 'died' && (fault.sub === 'daemon_lost' || fault.sub === 'killed')
    ? { ...fault, again: true }
    : fault;

export function lateness(
  state: { readonly phase: string; readonly why: string; readonly stuck: boolean },
  ms: number,
  pullMs: number,
  name: string,
): PodFault | undefined {
  if (state.phase === 'schedule') return undefined;
  const said = state.why ? `: ${state.why}` : '';
  if (state.phase === 'pull' && pullMs > 0 && ms > pullMs)
    return {
      code: 'image_pull_failed',
      sub: 'stalled',
      message: `pod ${name} waited ${Math.round(ms / 1000)} s for its image${said}`,
    };
  return state.phase === 'start' && ms > START_LIMIT_MS
    ? { code: 'start_failed', message: `pod ${name} did not start within ${START_LIMIT_MS / 1000} s${said}` }
    : undefined;
}
