/** The driver of pods: one pod an attempt. */
import type { V1Pod } from '@kubernetes/client-node';
import { createTurnstile } from '../../base/async/room.ts';
import type { ContainerNeeds } from '../../base/containerNeeds.ts';
import { errorText } from '../../base/text/errorText.ts';
import { type Container, openFolders, ownConfig } from '../container/container.ts';
import { createContainerFactory, type OpenedContainer } from '../container/containerFactory.ts';
import { sealInside } from '../container/sealedHistory.ts';
import { phasesOf } from '../container/setup.ts';
import { EnvironmentError, type EnvironmentFactory, isLoss, type StartRequest } from '../environment.ts';
import type { EnvironmentConfig } from '../environmentConfig.ts';
import type { Removed } from '../places/leftovers.ts';
import { createProgramSpools } from '../programs/packageTar.ts';
import { type Cluster, connectCluster, readApiFault } from './cluster.ts';
import { clusterOf } from './clusterConfig.ts';
import { createNetworkCheck, type NetworkCheck } from './networkCheck.ts';
import { type OpenPod, openPod } from './openPod.ts';
import { MAIN } from './podManifest.ts';
import { podProcesses } from './podProcess.ts';
import type { PodOptions, PodShared } from './podShared.ts';
import { type PodServices, servicesOfPod } from './runServices.ts';

export interface KubernetesOptions extends PodOptions {
  /** Default: the one that the configuration names. */
  readonly cluster?: Cluster;
  readonly maxPrepared?: number;
}

/** Each more only makes all of them slower. */
const CONCURRENT_PROGRAMS = 4;
/** An API server that is started anew is back before; attempts wait so long for it, and then for the run to be resumed. */
const OUTAGE_MS = 600_000;

/** Rejects with ClusterConfigError when no cluster can be asked; asks none. */
export async function createKubernetesFactory(
  config: EnvironmentConfig,
  options: KubernetesOptions = {},
): Promise<EnvironmentFactory> {
  const clusterConfig = clusterOf(config);
  const cluster = options.cluster ?? (await connectCluster(clusterConfig));
  return createContainerFactory({
    ...options,
    kind: 'kubernetes',
    ping: pingOf(cluster),
    outageMs: OUTAGE_MS,
    driver: ({ watch, discard, inTurn }) => {
      const shared: PodShared = {
        ...{ cluster, config, clusterConfig, options, watch, inTurn },
        discard: (name) =>
          discard({
            name: `pod ${name}`,
            remove: () => removed(cluster, name),
            byHand: `kubectl -n ${cluster.namespace} delete pod ${name}`,
          }),
        filling: createTurnstile(CONCURRENT_PROGRAMS),
        spools: createProgramSpools(),
      };
      const network = createNetworkCheck(shared);
      return {
        open: (request, notes) => openAttempt(shared, network, request, notes),
        cutOff: isLoss,
        // Nothing of a pod is kept.
        holdsWork: async () => false,
        systemChanges: async () => undefined,
        discardWork: async () => undefined,
        close: shared.spools.close,
      };
    },
  });
}

/** A server that takes nobody's credentials any more is there: waiting for it gives nobody new ones. */
export const pingOf =
  ({ version }: Pick<Cluster, 'version'>) =>
  async (): Promise<void> => {
    try {
      await version();
    } catch (error) {
      if (readApiFault(error).meaning !== 'credentials') throw error;
    }
  };

/** A pod that is gone with its namespace is gone. */
async function removed(cluster: Pick<Cluster, 'deletePod'>, name: string): Promise<Removed> {
  try {
    await cluster.deletePod(name);
    return 'gone';
  } catch (error) {
    const { meaning } = readApiFault(error);
    return meaning === 'gone' || meaning === 'namespace_gone' ? 'gone' : 'refused';
  }
}

/** A pod with its services, and its program on the way while the history is sealed. */
async function openAttempt(
  arm: PodShared,
  network: NetworkCheck,
  request: StartRequest,
  notes: string[],
): Promise<OpenedContainer> {
  const { signal, container: needs } = request;
  const phase = phasesOf(request);
  const shared = { ...arm, config: ownConfig(arm.config, needs && forPod(needs)) };
  const image = shared.config.image ?? request.image;
  if (shared.config.network === 'none') notes.push(...(await network.closed(image, request)));
  const opened = await openPod(shared, request, image, notes, needs?.services);
  const { channels, relay } = opened;
  const services = needs?.services && servicesOfPod(shared, request, opened.container.id, needs.services);
  const container = services ? amongServices(opened.container, services, shared) : opened.container;
  const program = relay?.bringProgram(signal);
  program?.done.catch(() => undefined);
  return {
    container,
    channels,
    async ready() {
      await services?.ready();
      await makeOpenFolders(container, needs, notes);
      return needs?.cwd === 'image' ? { ...shared.config, cwd: await folderOf(opened) } : shared.config;
    },
    seal(config) {
      phase('seal');
      return sealInside(channels.own.harness, config, request, notes);
    },
    async check() {
      if (program) {
        phase('pull');
        await Promise.race([program.begun, program.done]);
        phase('unpack');
        await program.done;
      }
      await services?.check();
      return { image, imageDigest: digestOf(opened.pod) ?? image };
    },
    within: (environment) => environment,
  };
}

/** A command in a pod runs as the user of its container, and the ENTRYPOINT of an image does not run there. */
const forPod = ({ user, worker, ...needs }: ContainerNeeds): ContainerNeeds => ({
  ...needs,
  user: worker ?? (user === 'image' ? undefined : user),
});

/** A pod whose user may not write at the root does without open folders. */
async function makeOpenFolders(
  { put }: Container,
  needs: ContainerNeeds | undefined,
  notes: string[],
): Promise<void> {
  const folders = openFolders(needs);
  if (folders.length === 0) return;
  try {
    await put(folders);
  } catch (error) {
    if (isLoss(error)) throw error;
    notes.push(`the folders of the task could not be made: ${errorText(error)}`);
  }
}

/** Nothing of a pod is kept, and its services end with it: a verifier works beside them. */
const amongServices = (container: Container, services: PodServices, shared: PodShared): Container => ({
  ...container,
  capabilities: { ...container.capabilities, worksBeside: true },
  serviceLogs: services.logs,
  beside: async () => ({ startProcess: podProcesses(shared, container.id), as: container.as }),
});

/** The working directory that the image names is that of its first process. */
async function folderOf({ channels: { own } }: OpenPod): Promise<string> {
  const { output, code } = await own.harness('readlink /proc/1/cwd', { timeoutS: 30, env: {} });
  const folder = output.trim();
  if (code !== 0 || !folder.startsWith('/'))
    throw new EnvironmentError(
      'start_failed',
      `the working directory of the image cannot be read: ${output}`,
    );
  return folder;
}

/** The image's digest in the node's runtime; Docker's puts a word before it. */
function digestOf({ status }: V1Pod): string | undefined {
  const id = status?.containerStatuses?.find(({ name }) => name === MAIN)?.imageID ?? '';
  return id.replace(/^docker(?:-pullable)?:\/\//, '') || undefined;
}
