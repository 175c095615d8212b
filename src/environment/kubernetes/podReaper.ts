/** Removes pods whose owner is provably dead, and no other: never another live run's, never another machine's, never one without our owner. */
import type { V1Pod } from '@kubernetes/client-node';
import type { Leftover, Reaped } from '../environmentKind.ts';
import { isOwnerAlive, LABELS, type Liveness, thisMachine } from '../owner.ts';
import { type Cluster, connectCluster, readApiFault } from './cluster.ts';
import type { ClusterConfig } from './clusterConfig.ts';
import { MANAGED_BY, POD_LABELS } from './podManifest.ts';

interface OwnedPod extends Leftover {
  readonly owner: Liveness;
}

function ownedPod({ metadata }: V1Pod): OwnedPod {
  const told = metadata?.annotations ?? {};
  const name = metadata?.name ?? '';
  return {
    name,
    run: told[LABELS.run] ?? '',
    instance: told[LABELS.instance] ?? '',
    host: told[LABELS.host] ?? '',
    pid: Number(told[LABELS.pid]),
    // Annotations that were copied to another pod name the first one.
    owner: told[LABELS.name] === name ? isOwnerAlive(told, thisMachine()) : 'unknown',
  };
}

export async function reapPods(
  cluster: Pick<Cluster, 'listPods' | 'deletePod'>,
  { dryRun }: { readonly dryRun: boolean },
): Promise<Pick<Reaped, 'orphans' | 'removed' | 'failed' | 'kept'>> {
  const pods = (await cluster.listPods(`${POD_LABELS.managed}=${MANAGED_BY}`)).map(ownedPod);
  const orphans = pods.filter(({ owner }) => owner === 'dead');
  const kept = pods.filter(({ owner }) => owner !== 'dead');
  if (dryRun) return { orphans, removed: [], failed: [], kept };
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
    orphans,
    kept,
    removed: gone.filter(({ ok }) => ok).map(({ pod }) => pod),
    failed: gone.filter(({ ok }) => !ok).map(({ pod }) => pod),
  };
}

/** Of each cluster and namespace once. */
export async function reapClusters(
  clusters: readonly ClusterConfig[],
  how: { readonly dryRun: boolean },
): Promise<Reaped[]> {
  const named = new Map(clusters.map((one) => [JSON.stringify([one.context, one.namespace]), one]));
  const asked = new Set<string>();
  const reaped: Reaped[] = [];
  for (const one of named.values()) {
    let place = [
      one.context === undefined ? 'the current context' : `context ${one.context}`,
      one.namespace === undefined ? 'its namespace' : `namespace ${one.namespace}`,
    ].join(', ');
    try {
      const cluster = await connectCluster(one);
      place = `namespace ${cluster.namespace} of ${cluster.server}`;
      if (asked.has(place)) continue;
      asked.add(place);
      reaped.push({ what: 'pod', place, ...(await reapPods(cluster, how)) });
    } catch (error) {
      const nothing = { orphans: [], removed: [], failed: [], kept: [] };
      reaped.push({ what: 'pod', place, ...nothing, silent: readApiFault(error).text });
    }
  }
  return reaped;
}
