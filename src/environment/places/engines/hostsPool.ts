/** The engines of `environment.hosts` as a pool. */
import { engineClient, engineOptionsOf } from './engineClient.ts';
import { createEnginePool, type RunPool } from './enginePool.ts';

/** Says which are lost and back. Throws when a name means nothing. */
export const enginePoolOf = (
  hosts: readonly { readonly host: string; readonly slots: number }[],
  onWarning: (message: string) => void = () => {},
): RunPool =>
  createEnginePool(
    hosts.map(({ host, slots }) => {
      const docker = engineClient(requiredEngine(host));
      return { name: host, slots, ping: () => docker.ping() };
    }),
    {
      onChange: (host, state, reason) =>
        onWarning(`engine ${host} is ${state}${reason ? `: ${reason}` : ''}`),
    },
  );

export function requiredEngine(host: string) {
  const docker = engineOptionsOf(host);
  if (!docker) throw new Error(`environment.hosts names "${host}", and nothing says how engines are found`);
  return docker;
}
