/** Removes pods whose owner is provably dead, and no other: never another live run's, never another machine's, never one without our owner. */
import type { V1Pod } from '@kubernetes/client-node';
import type { Reaped } from '../environmentKind.ts';
import { isOwnerAlive, LABELS, type Liveness, type MachineFacts, thisMachine } from '../owner.ts';
import { readApiFault } from './apiFaults.ts';
import { type Cluster, connectCluster } from './cluster.ts';
import type { ClusterConfig } from './clusterConfig.ts';
import { MANAGED_BY, POD_LABELS } from './podManifest.ts';

interface OwnedPod {
  readonly name: string;
  readonly run: string;
  readonly owner: Liveness;
}

/** Annotations that were copied to another pod name the first one. */
function ownerOf({ metadata }: V1Pod, machine: MachineFacts): Liveness {
  const told = metadata?.annotations ?? {};
  return told[LABELS.name] === metadata?.name ? isOwnerAlive(told, machine) : 'unknown';
}

async function listOwnedPods(
  cluster: Pick<Cluster, 'listPods'>,
  machine: MachineFacts = thisMachine(),
): Promise<OwnedPod[]> {
  const pods = await cluster.listPods(`${POD_LABELS.managed}=${MANAGED_BY}`);
  return pods.map((pod) => {
    const told = pod.metadata?.annotations ?? {};
    return {
      name: pod.metadata?.name ?? '',
      run: told[LABELS.run] ?? '',
      owner: ownerOf(pod, machine),
    };
  });
}

interface ReapedPods {
  readonly removed: readonly OwnedPod[];
  readonly failed: readonly OwnedPod[];
  readonly kept: readonly OwnedPod[];
}

export async function reapPods(cluster: Pick<Cluster, 'listPods' | 'deletePod'>): Promise<ReapedPods> {
  const pods = await listOwnedPods(cluster);
  const orphans = pods.filter(({ owner }) => owner === 'dead');
  const kept = pods.filter(({ owner }) => owner !== 'dead');
  const gone = await Promise.all(
    orphans.map(async (pod) => ({
      pod,
      ok: await cluster.deletePod(pod.name).then(
        () => true,
        (error: unknown) => readApiFault(error).meaning === 'gone',
      ),
    })),
  );
  return {
    removed: gone.filter(({ ok }) => ok).map(({ pod }) => pod),
    failed: gone.filter(({ ok }) => !ok).map(({ pod }) => pod),
    kept,
  };
}

/** Of each cluster and namespace once. */
export async function reapClusters(clusters: readonly ClusterConfig[]): Promise<Reaped> {
  const different = new Map(clusters.map((one) => [JSON.stringify([one.context, one.namespace]), one]));
  const reaped: ReapedPods[] = [];
  for (const one of different.values()) reaped.push(await reapPods(await connectCluster(one)));
  return {
    what: 'pod',
    removed: reaped.reduce((sum, { removed }) => sum + removed.length, 0),
    failed: reaped.flatMap(({ failed }) => failed.map(({ name }) => name)),
  };
}
