/** Whether a run in pods can begin: a cluster that is known, that answers, the rights in its namespace, and a policy that closes the network. */
import { bad, type Finding, good } from '../../base/finding.ts';
import { errorText } from '../../base/text/errorText.ts';
import type { ConfiguredArm } from '../environmentKind.ts';
import { readApiFault } from './apiFaults.ts';
import { type Cluster, ClusterConfigError, connectCluster, type Right } from './cluster.ts';
import { clusterOf } from './clusterConfig.ts';
import { closesPods, POLICY_FIX } from './networkCheck.ts';
import { userProblem } from './podManifest.ts';

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
    return [bad('Kubernetes', error.message, 'correct environment.kubernetes or the kubeconfig')];
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
