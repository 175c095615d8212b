/** The cluster that a configuration names: what is asked of its API server, each question with a limit. Its package is loaded on demand. */
import type { KubeConfig, V1Pod } from '@kubernetes/client-node';
import { within } from '../../base/async/timer.ts';
import { errorText } from '../../base/text/errorText.ts';
import type { ClusterConfig } from './clusterConfig.ts';
import { type ExecAddress, type ExecSocket, openSocket } from './execSocket.ts';
import { kubeConfigWithTokenFiles } from './tokenFile.ts';

export interface Cluster {
  readonly context: string;
  readonly namespace: string;
  readonly server: string;
  /** The credentials are those of the pod that this process runs in. */
  readonly inside: boolean;
  createPod(pod: V1Pod): Promise<V1Pod>;
  readPod(name: string): Promise<V1Pod>;
  deletePod(name: string): Promise<void>;
  listPods(labels: string): Promise<V1Pod[]>;
  /** The newest words of the cluster about a pod. */
  eventsOf(pod: string): Promise<string[]>;
  /** Pod labels that a policy of the namespace names, which denies what it does not allow; for `doctor`. */
  policies(): Promise<readonly PolicyFacts[]>;
  /** Whether these credentials may do that in the namespace. */
  may(right: Right): Promise<boolean>;
  version(): Promise<string>;
  exec(address: ExecAddress, onData: (stream: number, data: Buffer) => void): Promise<ExecSocket>;
}

export interface Right {
  readonly verb: string;
  readonly resource: string;
  readonly group?: string;
  readonly subresource?: string;
}

export interface PolicyFacts {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly types: readonly string[];
  /** It lets something through. */
  readonly allows: boolean;
}

const PACKAGE = '@kubernetes/client-node';

/** Nothing says where the cluster is, or what says it cannot be used: a person has to change it. */
export class ClusterConfigError extends Error {
  override readonly name = 'ClusterConfigError';
}

type Client = typeof import('@kubernetes/client-node');

async function loadClient() {
  try {
    const [client, sockets] = await Promise.all([
      import('@kubernetes/client-node'),
      import('@kubernetes/client-node/dist/web-socket-handler.js'),
    ]);
    return { client, sockets };
  } catch (error) {
    throw new ClusterConfigError(
      `environment_class kubernetes needs a package that is not installed; npm install ${PACKAGE} (${errorText(error)})`,
    );
  }
}

function loadConfig(client: Client, { context }: Pick<ClusterConfig, 'context'>): KubeConfig {
  const { config, takeTokenFile } = kubeConfigWithTokenFiles(client);
  try {
    config.loadFromDefault();
  } catch (error) {
    throw new ClusterConfigError(`the kubeconfig cannot be read: ${errorText(error)}; correct $KUBECONFIG`);
  }
  if (context !== undefined) {
    const known = config.getContexts().map(({ name }) => name);
    if (!known.includes(context))
      throw new ClusterConfigError(
        `the kubeconfig has no context "${context}"; it has ${known.join(', ') || 'none'}`,
      );
    config.setCurrentContext(context);
  }
  takeTokenFile();
  // What the package takes where it finds nothing.
  const nothing =
    config.getCurrentContext() === 'loaded-context' &&
    config.getCurrentCluster()?.server === 'http://localhost:8080';
  if (nothing || !config.getCurrentCluster())
    throw new ClusterConfigError(
      'no cluster is known: set KUBECONFIG, write ~/.kube/config, or run inside of a cluster with a ServiceAccount',
    );
  return config;
}

const ANSWER_MS = 30_000;

async function answer<T>(asked: Promise<T>): Promise<T> {
  const NONE = Symbol('none');
  const late = within(
    asked.then((value) => ({ value })),
    ANSWER_MS,
  );
  const got = (await late) ?? NONE;
  if (got === NONE) throw new Error(`no answer within ${ANSWER_MS / 1000} s`);
  return (got as { value: T }).value;
}

/** Rejects with ClusterConfigError when no cluster can be asked; asks none. */
export async function connectCluster(given: ClusterConfig): Promise<Cluster> {
  const { client, sockets } = await loadClient();
  const config = loadConfig(client, given);
  const core = config.makeApiClient(client.CoreV1Api);
  const networking = config.makeApiClient(client.NetworkingV1Api);
  const authorization = config.makeApiClient(client.AuthorizationV1Api);
  const versions = config.makeApiClient(client.VersionApi);
  const context = config.getCurrentContext();
  const namespace = given.namespace ?? config.getContextObject(context)?.namespace ?? 'default';
  return {
    context,
    namespace,
    server: config.getCurrentCluster()!.server,
    inside: context === 'inClusterContext',
    createPod: (body) => answer(core.createNamespacedPod({ namespace, body })),
    readPod: (name) => answer(core.readNamespacedPod({ namespace, name })),
    async deletePod(name) {
      await answer(core.deleteNamespacedPod({ namespace, name, gracePeriodSeconds: 0 }));
    },
    async listPods(labelSelector) {
      return (await answer(core.listNamespacedPod({ namespace, labelSelector }))).items;
    },
    async eventsOf(pod) {
      const fieldSelector = `involvedObject.name=${pod}`;
      const { items } = await answer(core.listNamespacedEvent({ namespace, fieldSelector }));
      return items.map(({ reason, message }) => `${reason ?? ''}: ${message ?? ''}`).slice(-EVENTS);
    },
    async policies() {
      const { items } = await answer(networking.listNamespacedNetworkPolicy({ namespace }));
      return items.map(({ metadata, spec }) => ({
        name: metadata?.name ?? '',
        labels: spec?.podSelector?.matchLabels ?? {},
        types: spec?.policyTypes ?? [],
        allows: (spec?.egress?.length ?? 0) + (spec?.ingress?.length ?? 0) > 0,
      }));
    },
    async may({ verb, resource, group = '', subresource }) {
      const asked = { namespace, verb, resource, group, ...(subresource !== undefined && { subresource }) };
      const body = { spec: { resourceAttributes: asked } };
      const { status } = await answer(authorization.createSelfSubjectAccessReview({ body }));
      return status?.allowed ?? false;
    },
    async version() {
      return (await answer(versions.getCode())).gitVersion;
    },
    exec: (address, onData) => openSocket(sockets, config, namespace, address, onData),
  };
}

const EVENTS = 6;
