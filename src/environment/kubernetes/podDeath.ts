/** What ended a pod, or the way into it, as the error of an attempt. */
import type { V1Pod } from '@kubernetes/client-node';
import { parseDuration } from '../../base/text/units.ts';
import { EnvironmentError } from '../environment.ts';
import type { EngineWatch } from '../places/engineWatch.ts';
import { type ApiMeaning, readApiFault } from './apiFaults.ts';
import { type PodFault, stateOfPod } from './podFaults.ts';
import type { Death, PodShared } from './podShared.ts';

export const faultError = (fault: PodFault, evidence: Record<string, unknown>): EnvironmentError => {
  const { code, message, sub, fromWithin = false } = fault;
  return new EnvironmentError(code, message, { ...(sub !== undefined && { sub }), fromWithin, evidence });
};

/** undefined while the pod runs and can be reached; else the error that ends the attempt. */
export const deathOf =
  ({ cluster, config, watch }: PodShared, name: string, lost: { why?: string }): Death =>
  async (given) => {
    const evidence = { ...given, pod: name };
    const lifetimeS = parseDuration(config.container_timeout);
    for (;;) {
      try {
        const pod = await cluster.readPod(name);
        const state = stateOfPod(pod, lifetimeS);
        if (state.state === 'failed')
          return faultError(state.fault, { ...evidence, status: statusFacts(pod), lost: lost.why ?? null });
        if (lost.why === undefined) return undefined;
        return new EnvironmentError(
          'died',
          `${lost.why}, and the pod lives: its command is not known to have ended`,
          {
            sub: 'daemon_lost',
            evidence: { ...evidence, status: statusFacts(pod) },
          },
        );
      } catch (error) {
        const { meaning, text } = readApiFault(error);
        if (meaning === 'gone' || meaning === 'namespace_gone')
          return new EnvironmentError('died', deletedText(name, meaning), {
            sub: 'killed',
            evidence: { ...evidence, status: 'deleted' },
            cause: error,
          });
        const back = meaning === 'away' && (await cameBack(watch));
        if (!back)
          return new EnvironmentError('died', `${unansweredText(meaning)} about pod ${name}: ${text}`, {
            sub: 'daemon_lost',
            evidence: { ...evidence, cluster: meaning, answer: text },
            cause: error,
          });
      }
    }
  };

const deletedText = (name: string, meaning: ApiMeaning): string =>
  meaning === 'namespace_gone'
    ? `pod ${name} is gone with its namespace: make the namespace again, with its rights and its network policy, and resume`
    : `pod ${name} was deleted while the agent worked`;

/** What a person can change stands first. */
function unansweredText(meaning: ApiMeaning): string {
  if (meaning === 'credentials')
    return 'the cluster does not take the credentials any more (log in again and resume), and says nothing';
  if (meaning === 'forbidden')
    return 'the account has lost its rights in the namespace, or the namespace is gone (make it again with its rights, and resume); nothing is known';
  return 'the cluster does not answer';
}

const cameBack = (watch: EngineWatch): Promise<boolean> =>
  watch.back().then(
    () => true,
    () => false,
  );

const statusFacts = ({ status, metadata }: V1Pod) => ({
  phase: status?.phase ?? null,
  reason: status?.reason ?? null,
  message: status?.message ?? null,
  deleted: metadata?.deletionTimestamp !== undefined,
  container: status?.containerStatuses?.[0]?.state ?? null,
});
