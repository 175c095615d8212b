/** The Kubernetes environment: one pod an attempt. This file is the factory; podStart.ts makes a pod ready for the agent. */
import pLimit from 'p-limit';
import { pause } from '../../base/async/timer.ts';
import {
  type Environment,
  EnvironmentError,
  type EnvironmentFactory,
  type StartRequest,
} from '../environment.ts';
import type { EnvironmentConfig } from '../environmentConfig.ts';
import { createEngineWatch } from '../places/engineWatch.ts';
import { createPreparedStarts } from '../preparedStarts.ts';
import { createProgramSpools } from '../programs/programSpool.ts';
import { readApiFault } from './apiFaults.ts';
import { type Cluster, connectCluster } from './cluster.ts';
import { clusterOf } from './clusterConfig.ts';
import { createNetworkCheck } from './networkCheck.ts';
import type { PodOptions } from './podShared.ts';
import { startPod } from './podStart.ts';

export interface KubernetesOptions extends PodOptions {
  /** Default: the one that the configuration names. */
  readonly cluster?: Cluster;
  readonly maxPrepared?: number;
}

const CONCURRENT_CREATES = 8;
/** Each more only makes all of them slower. */
const CONCURRENT_PROGRAMS = 4;
const MAX_PREPARED = 8;
/** An API server that is started anew is back before; attempts wait so long for it, and then for the run to be resumed. */
const OUTAGE_MS = 600_000;
/** Whoever ends now waits for the removals no longer than this. */
const LAST_TRIES_MS = [0, 500, 2000, 5000];

/** Rejects with ClusterConfigError when no cluster can be asked; asks none. */
export async function createKubernetesFactory(
  config: EnvironmentConfig,
  options: KubernetesOptions = {},
): Promise<EnvironmentFactory> {
  const clusterConfig = clusterOf(config);
  const cluster = options.cluster ?? (await connectCluster(clusterConfig));
  const closing = new AbortController();
  const watch = createEngineWatch({ ping: cluster.version, limitMs: OUTAGE_MS });
  const removals = createRemovals(cluster, closing.signal, options.onWarning);
  const parts = {
    ...{ cluster, config, clusterConfig, options, watch },
    discard: removals.discard,
    starting: pLimit(CONCURRENT_CREATES),
    filling: pLimit(CONCURRENT_PROGRAMS),
    spools: createProgramSpools(),
  };
  const shared = { ...parts, network: createNetworkCheck(parts) };
  const begin = (request: StartRequest): Promise<Environment> => startPod(shared, request);
  const prepared = createPreparedStarts(begin, options.maxPrepared ?? MAX_PREPARED);
  return {
    kind: 'kubernetes',
    prepare: prepared.prepare,
    async start(request) {
      if (closing.signal.aborted)
        throw new EnvironmentError('start_failed', 'the environment factory is closed');
      return prepared.take(request) ?? begin(request);
    },
    async close() {
      closing.abort();
      await prepared.close();
      await removals.settled();
      await parts.spools.close();
      watch.close();
    },
  };
}

/** A pod that the API server does not remove now is removed later, and named where it is not. */
function createRemovals(cluster: Cluster, closing: AbortSignal, warn: (text: string) => void = () => {}) {
  const going = new Set<Promise<void>>();
  const removed = async (name: string): Promise<boolean> => {
    try {
      await cluster.deletePod(name);
      return true;
    } catch (error) {
      const { meaning } = readApiFault(error);
      return meaning === 'gone' || meaning === 'namespace_gone';
    }
  };
  const tryOn = async (name: string) => {
    for (const ms of LAST_TRIES_MS) {
      await pause(ms, closing);
      if (await removed(name)) return;
    }
    warn(
      `pod ${name} is still there: kubectl delete pod ${name} removes it, or the next run once this one has ended`,
    );
  };
  return {
    async discard(name: string): Promise<void> {
      if (await removed(name)) return;
      const work = tryOn(name).finally(() => going.delete(work));
      going.add(work);
    },
    async settled() {
      while (going.size > 0) await Promise.allSettled([...going]);
    },
  };
}
