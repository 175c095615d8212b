/**
 * Whether pods without network have none. A policy alone proves nothing: clusters whose network plugin does not enforce policies take them
 * without a word. So two pods try to reach something once a run, one that the policy is for and one that it is not for.
 */

import { sleep } from '../../base/async/timer.ts';
import { bad, type Finding, good } from '../../base/finding.ts';
import { errorText } from '../../base/text/errorText.ts';
import { EnvironmentError, OPEN_NETWORK, type StartRequest } from '../environment.ts';
import type { ConfiguredArm } from '../environmentKind.ts';
import { shellScript } from '../shellScript.ts';
import {
  type Cluster,
  ClusterConfigError,
  connectCluster,
  type PolicyFacts,
  type Right,
  readApiFault,
} from './cluster.ts';
import { clusterOf } from './clusterConfig.ts';
import { openPod } from './openPod.ts';
import { CLOSED, POD_LABELS, userProblem } from './podManifest.ts';
import type { PodShared } from './podShared.ts';

export interface NetworkCheck {
  /** Resolves to notes for the record. Throws EnvironmentError where packets pass and that is not allowed. */
  closed(image: string, request: StartRequest): Promise<readonly string[]>;
}

const REACH = shellScript('inside/reach.sh', import.meta.url);
/** A public name server, and a public web server. */
const FAR = ['1.1.1.1:443', '8.8.8.8:53'];
const KUBELET_PORT = 10250;
/** Plugins need a moment to close a pod that is new. */
const TRIES = 3;
const AGAIN_MS = 2000;
const REACH_S = 60;

/** A policy of the namespace that closes our pods in both directions, whatever else it is for. */
const closesPods = ({ labels, types, allows }: PolicyFacts): boolean =>
  !allows &&
  types.includes('Egress') &&
  types.includes('Ingress') &&
  Object.entries(labels).every(([label, value]) => label === POD_LABELS.network && value === CLOSED);

const POLICY_FIX = 'kubectl apply -f docs/kubernetes/setup';

export function createNetworkCheck(shared: PodShared): NetworkCheck {
  let first: Promise<readonly string[]> | undefined;
  const { clusterConfig } = shared;
  return {
    closed(image, request) {
      first ??= check(shared, image, request).catch((error: unknown) => {
        // The cluster's behaviour stays as it is; a probe that could not be started says nothing of it.
        if (!(error instanceof EnvironmentError && error.sub === OPEN_NETWORK)) first = undefined;
        throw error;
      });
      return clusterConfig.allow_open_network
        ? first.catch((error: unknown) => {
            if (error instanceof EnvironmentError && error.sub === OPEN_NETWORK) return [error.message];
            throw error;
          })
        : first;
    },
  };
}

const refused = (why: string, evidence: Record<string, unknown> = {}) =>
  new EnvironmentError(
    'start_failed',
    `pods would have a network: ${why}; set environment.kubernetes.allow_open_network to run nevertheless`,
    { sub: OPEN_NETWORK, evidence },
  );

async function check(shared: PodShared, image: string, request: StartRequest): Promise<readonly string[]> {
  const policies = await shared.cluster.policies().catch((error: unknown) => errorText(error));
  if (typeof policies !== 'string' && !policies.some(closesPods))
    throw refused(
      `no NetworkPolicy of namespace ${shared.cluster.namespace} closes pods labelled ${POD_LABELS.network}=${CLOSED}; ${POLICY_FIX}`,
    );
  const open = await probePod(shared, image, request, 'bridge');
  const [reached, passed] = await compare(shared, image, request, open);
  if (passed.length > 0)
    throw refused(
      `the cluster does not enforce its network policy: ${passed.join(', ')} could be reached; use a network plugin that enforces policies`,
      { reached: passed },
    );
  return reached.length > 0
    ? []
    : [
        'network: also a pod without the policy could reach nothing, so the policy itself was not seen at work',
      ];
}

type Reach = (targets: readonly string[]) => Promise<string[]>;

/** Targets that a pod beside the policy reaches, and those of a pod under it. */
async function compare(
  shared: PodShared,
  image: string,
  request: StartRequest,
  open: { reach: Reach; node: string; close(): Promise<void> },
): Promise<[string[], string[]]> {
  const { host, port } = new URL(shared.cluster.server);
  const server = host.includes(':') || port !== '' ? host : `${host}:443`;
  const targets = [server, ...(open.node ? [`${open.node}:${KUBELET_PORT}`] : []), ...FAR];
  let reached: string[];
  try {
    reached = await open.reach(targets);
  } finally {
    await open.close();
  }
  const closed = await probePod(shared, image, request, 'none');
  try {
    const wanted = [...new Set([...reached, ...targets])];
    let passed = await closed.reach(wanted);
    for (let tried = 1; passed.length > 0 && tried < TRIES; tried += 1) {
      await sleep(AGAIN_MS, request.signal);
      passed = await closed.reach(passed);
    }
    return [reached, passed];
  } finally {
    await closed.close();
  }
}

async function probePod(shared: PodShared, image: string, request: StartRequest, network: string) {
  const config = {
    ...shared.config,
    network,
    memory: '256m',
    cpus: 0.5,
    disk: '0',
    env: {},
    supervisor: false,
  };
  const clusterConfig = { ...shared.clusterConfig, cpu_request: '50m', memory_request: '64Mi' };
  const options = { ...shared.options, relay: false };
  const opened = await openPod({ ...shared, config, clusterConfig, options }, request, image, []);
  const reach: Reach = async (targets) => {
    const done = await opened.channels.own.harness(REACH, {
      timeoutS: REACH_S,
      env: { TARGETS: targets.join(' ') },
    });
    // Without an answer nothing is known, and nothing is not the same as no network.
    if (!done.output.includes('tried\n'))
      throw new EnvironmentError(
        'start_failed',
        `the network of a pod cannot be tried: ${done.output.slice(-300)}`,
        {
          evidence: { code: done.code },
        },
      );
    return [...done.output.matchAll(/^reached (\S{1,300})$/gm)].map(([, target]) => target!);
  };
  const close = async () => {
    opened.channels.own.close();
    await opened.container.remove();
  };
  return { reach, close, node: opened.pod.status?.hostIP ?? '' };
}

const RIGHTS: readonly Right[] = [
  ...['create', 'get', 'list', 'delete'].map((verb) => ({ verb, resource: 'pods' })),
  { verb: 'get', resource: 'pods', subresource: 'exec' },
];

/** Makes nothing. */
export async function clusterFindings(arms: readonly ConfiguredArm[]): Promise<Finding[]> {
  const findings: Finding[] = [];
  const seen = new Set<string>();
  for (const { name, environment } of arms) {
    const user = userProblem(environment.user);
    if (user) findings.push(bad(`user of arm ${name}`, user, 'give its number'));
    const closed = environment.network === 'none';
    const given = clusterOf(environment);
    const key = JSON.stringify([given.context, given.namespace, closed, given.allow_open_network]);
    if (seen.has(key)) continue;
    seen.add(key);
    findings.push(...(await oneCluster(given, closed)));
  }
  return findings;
}

async function oneCluster(given: Parameters<typeof connectCluster>[0], closed: boolean): Promise<Finding[]> {
  let cluster: Cluster;
  try {
    cluster = await connectCluster(given);
  } catch (error) {
    if (!(error instanceof ClusterConfigError)) throw error;
    return [bad('Kubernetes', error.message, error.fix)];
  }
  const what = `Kubernetes context ${cluster.context}`;
  try {
    const facts = `${await cluster.version()}, ${cluster.server}, namespace ${cluster.namespace}`;
    const rights = await missingRights(cluster);
    if (rights.length > 0)
      return [
        bad(
          what,
          `${facts}: these credentials may not ${rights.join(', ')}`,
          'give the account the role of docs/kubernetes/setup, or name another context in environment.kubernetes.context',
        ),
      ];
    return [
      good(what, facts),
      ...(closed ? await policyFinding(cluster, given.allow_open_network ?? false) : []),
    ];
  } catch (error) {
    const { meaning, text } = readApiFault(error);
    const fix =
      meaning === 'credentials'
        ? 'log in to the cluster again: the token may have expired'
        : 'correct the kubeconfig or environment.kubernetes.context, or wait until the API server answers';
    return [bad(what, `${cluster.server}: ${text}`, fix)];
  }
}

async function missingRights(cluster: Cluster): Promise<string[]> {
  const may = await Promise.all(RIGHTS.map((right) => cluster.may(right)));
  return RIGHTS.filter((_, i) => !may[i]).map(
    ({ verb, resource, subresource }) => `${verb} ${resource}${subresource ? `/${subresource}` : ''}`,
  );
}

/** Whether it is enforced shows only a pod: that is tried when the first one starts. */
async function policyFinding(cluster: Cluster, allowed: boolean): Promise<Finding[]> {
  const what = 'network of pods';
  const policies = await cluster.policies().catch((error: unknown) => errorText(error));
  if (typeof policies === 'string')
    return [good(what, `its policies cannot be listed (${policies}); tried at the start of a run`)];
  const closing = policies.find(closesPods);
  if (closing) return [good(what, `closed by policy ${closing.name}; tried at the start of a run`)];
  const detail = `no NetworkPolicy of namespace ${cluster.namespace} closes pods labelled swebatch/network=none`;
  return allowed
    ? [good(what, `${detail}; the configuration allows that`)]
    : [bad(what, detail, `${POLICY_FIX}, or set environment.kubernetes.allow_open_network`)];
}
