/** The way out of a container without network: the proxy behind a port of its own loopback, and the variables that lead programs there. */
import { isAllowList, type Network } from '../../base/allowList.ts';
import type { ContainerNeeds } from '../../base/containerNeeds.ts';
import { type Doorway, type Environment, EnvironmentError, type ExecuteOptions } from '../environment.ts';
import type { EgressOptions } from './egressProxy.ts';

/** Below those that systems take for connections that leave. */
const PORT = 13_128;

export type EgressWays = Pick<EgressOptions, 'resolve' | 'dial' | 'ofThisMachine'>;

interface Reached {
  /** Entries of the person. */
  readonly own: readonly string[];
  readonly setup: Network;
  readonly work: Network;
}

/** Hosts that a container reaches by the proxy; undefined where it needs none: it reaches nothing, or has a network of the engine's. */
export function reachedByProxy(configured: unknown, needs: ContainerNeeds | undefined): Reached | undefined {
  const own = isAllowList(configured) ? configured.allow : undefined;
  const work = needs?.network ?? (own ? 'none' : undefined);
  if (work === undefined || work === 'public') return undefined;
  const setup = needs?.setupNetwork ?? work;
  // A task that opens all of the network before its agent comes, and none after it, has none from the beginning.
  if (!own && !isAllowList(work) && !isAllowList(setup)) return undefined;
  return { own: own ?? [], setup, work };
}

/** Both spellings, which programs read: no variable of the image, the task or the configuration is left. */
function proxyVariables(beside: readonly string[]): Record<string, string> {
  const proxy = `http://127.0.0.1:${PORT}`;
  const none = ['localhost', '127.0.0.1', '::1', ...beside].join(',');
  const upper = { HTTP_PROXY: proxy, HTTPS_PROXY: proxy, ALL_PROXY: proxy, NO_PROXY: none };
  const lower = Object.entries(upper).map(([name, value]) => [name.toLowerCase(), value] as const);
  // Node's own client reads them when it is told to.
  return { ...upper, ...Object.fromEntries(lower), NODE_USE_ENV_PROXY: '1' };
}

export type EgressDoor = Awaited<ReturnType<typeof createEgressDoor>>;

export async function createEgressDoor(
  { own, setup, work }: Reached,
  parts: {
    readonly verifies: boolean;
    /** Names of services beside it, which are reached without the proxy. */
    readonly beside: readonly string[];
    readonly ways: EgressWays;
    readonly onEnd: EgressOptions['onEnd'] | undefined;
  },
) {
  // Few runs have one, and Node's HTTP takes time to load.
  const { createEgressProxy } = await import('./egressProxy.ts');
  const proxy = createEgressProxy({ ...parts.ways, own, onEnd: parts.onEnd ?? (() => {}) });
  const variables = proxyVariables(parts.beside);
  let doorway: Doorway | undefined;
  let closed = false;
  /** Without it no program reaches anything, and that is nothing that the agent did. */
  let lost: EnvironmentError | undefined;
  const throwLost = () => {
    if (lost) throw lost;
  };
  const withProxy =
    ({ execute }: Pick<Environment, 'execute'>): Environment['execute'] =>
    async (command, options: ExecuteOptions = {}) => {
      throwLost();
      const env = options.env && { ...options.env, ...variables };
      const result = await execute(command, { ...options, ...(env && { env }) });
      throwLost();
      return result;
    };
  const within = (environment: Environment): Environment => ({
    ...environment,
    execute: withProxy(environment),
    as: (user) => ({ execute: withProxy(environment.as(user)) }),
    enterPhase: proxy.enter,
    async beside(putBack, network = 'none') {
      proxy.enter('verifier', network);
      return within(await environment.beside(putBack));
    },
  });
  return {
    variables,
    /** Also anew, when the container has started again: what was open is gone then. */
    async open(listen: Environment['listen']): Promise<void> {
      const before = doorway;
      doorway = undefined;
      await before?.close();
      const opened = await listen(PORT, proxy.handle);
      doorway = opened;
      void opened.broken.then((error) => {
        if (doorway !== opened || closed) return;
        const { code, message, sub, evidence } = error;
        lost = new EnvironmentError(code, `the proxy of its list of hosts is gone: ${message}`, {
          ...(sub !== undefined && { sub }),
          evidence: { ...evidence },
          cause: error,
        });
      });
    },
    setup: () => proxy.enter(parts.verifies ? 'verifier' : 'setup', setup),
    work: () => proxy.enter(parts.verifies ? 'verifier' : 'agent', work),
    within,
    async close(): Promise<void> {
      closed = true;
      proxy.close();
      await doorway?.close();
    },
  };
}
