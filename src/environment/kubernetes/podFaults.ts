/**
 * The meaning of a pod's status and of an answer of the API. Pure: the tests read recorded answers. A pod that waits for room or for its image has
 * not failed; one that the cluster took away is no fault of the agent's; only a limit of its own container is.
 */
import type { V1ContainerStatus, V1Pod } from '@kubernetes/client-node';
import { parseDuration } from '../../base/text/units.ts';
import type { Death } from '../container/container.ts';
import { EnvironmentError, type EnvironmentErrorCode } from '../environment.ts';
import type { EngineWatch } from '../places/engineWatch.ts';
import { classifyPullMessage, PULL_FAILURES } from '../places/pullFailure.ts';
import { type ApiMeaning, readApiFault } from './cluster.ts';
import { MAIN, RELAY } from './podManifest.ts';
import { isFilling, WAITS } from './podServices.ts';
import type { PodShared } from './podShared.ts';

export interface PodFault {
  readonly code: EnvironmentErrorCode;
  /** The sub of an EnvironmentError; of a pull its kind. */
  readonly sub?: string;
  readonly fromWithin?: boolean;
  readonly message: string;
  /** Nothing of the pod ran, and another node may take it. */
  readonly again?: boolean;
}

type PodState =
  | { readonly state: 'running' }
  /** `why`: the cluster's words, where it gave some. `stuck`: it will not end by itself unless somebody helps. */
  | {
      readonly state: 'waiting';
      readonly phase: 'schedule' | 'pull' | 'start';
      readonly why: string;
      readonly stuck: boolean;
    }
  | { readonly state: 'failed'; readonly fault: PodFault };

const waiting = (phase: 'schedule' | 'pull' | 'start', why = '', stuck = false): PodState => ({
  state: 'waiting' as const,
  phase,
  why,
  stuck,
});
const failed = (fault: PodFault): PodState => ({ state: 'failed', fault });

/** `lifetimeS`: after which the environment ends by itself; 0 for never. */
export function stateOfPod(pod: V1Pod, lifetimeS: number): PodState {
  const name = pod.metadata?.name ?? 'the pod';
  const taken = takenAway(pod, name);
  if (taken) return failed(taken);
  const statusOf = (wanted: string) =>
    pod.status?.containerStatuses?.find((container) => container.name === wanted);
  const main = statusOf(MAIN);
  const relay = statusOf(RELAY);
  const ended = endOf(main, name, lifetimeS) ?? endOfRelay(relay, name);
  if (ended) return failed(ended);
  const unfilled = endOfFilling(pod, name);
  if (unfilled) return failed(unfilled);
  if (pod.status?.phase === 'Failed' || pod.status?.phase === 'Succeeded')
    return failed(refusedByNode(pod, name));
  if (main?.state?.running)
    return relay && !relay.state?.running
      ? waitingFor(pod, relay.state?.waiting, name)
      : { state: 'running' };
  const initial = pod.status?.initContainerStatuses?.find(
    ({ state }) => state?.waiting ?? state?.terminated?.exitCode,
  );
  return waitingFor(pod, main?.state?.waiting ?? initial?.state?.waiting, name);
}

/** The node's kubelet, the scheduler or a person ended the pod. */
function takenAway(pod: V1Pod, name: string): PodFault | undefined {
  const { reason = '', message = '' } = pod.status ?? {};
  if (reason === 'Evicted') return evicted(name, message);
  if (reason === 'DeadlineExceeded')
    return {
      code: 'died',
      sub: 'expired',
      message: `pod ${name} reached its activeDeadlineSeconds; raise environment.container_timeout`,
    };
  if (reason === 'NodeLost' || pod.status?.phase === 'Unknown')
    return {
      code: 'died',
      sub: 'daemon_lost',
      message: `the node of pod ${name} is lost: ${message || reason}`,
    };
  if (NODE_ENDS.has(reason))
    return {
      code: 'died',
      sub: 'daemon_lost',
      message: `the node of pod ${name} ended it (${reason}): ${message}`,
    };
  if (pod.metadata?.deletionTimestamp === undefined) return undefined;
  const disrupted = pod.status?.conditions?.find(
    ({ type, status }) => type === 'DisruptionTarget' && status === 'True',
  );
  const by = disrupted ? ` (${disrupted.reason ?? ''}: ${disrupted.message ?? ''})` : '';
  return {
    code: 'died',
    sub: disrupted ? 'daemon_lost' : 'killed',
    message: `pod ${name} was deleted while the agent worked${by}`,
  };
}

const NODE_ENDS: ReadonlySet<string> = new Set(['Terminated', 'NodeShutdown', 'Shutdown', 'Preempting']);

/** Only the limit of its own container, or of the pod that is there for it alone, is the agent's doing. */
const OWN_DISK = /ephemeral local storage usage exceeds|exceeded its local ephemeral storage limit/i;

const evicted = (name: string, message: string): PodFault =>
  OWN_DISK.test(message)
    ? {
        code: 'disk_full',
        fromWithin: true,
        message: `pod ${name} wrote more than environment.disk allows: ${message}`,
      }
    : {
        code: 'died',
        sub: 'daemon_lost',
        message: `pod ${name} was evicted by its node: ${message || 'no reason given'}`,
      };

function endOf(main: V1ContainerStatus | undefined, name: string, lifetimeS: number): PodFault | undefined {
  const ended = main?.state?.terminated;
  if (!ended) return undefined;
  const ran = new Date(ended.finishedAt ?? 0).getTime() - new Date(ended.startedAt ?? 0).getTime();
  if (ended.reason === 'OOMKilled')
    return {
      code: 'died',
      sub: 'oom',
      fromWithin: true,
      message: `the memory limit of pod ${name} ended its container`,
    };
  if (lifetimeS > 0 && ended.exitCode === 0 && ran >= lifetimeS * 1000 - WHOLE_SECONDS_MS)
    return {
      code: 'died',
      sub: 'expired',
      message: `the lifetime of pod ${name} (${lifetimeS} s) is over; raise environment.container_timeout`,
    };
  if (NEVER_RAN.has(ended.reason ?? ''))
    return {
      code: 'start_failed',
      message: `the container of pod ${name} could not be started: ${ended.message ?? ended.reason}`,
    };
  if (ended.reason === 'ContainerStatusUnknown')
    return { code: 'died', sub: 'daemon_lost', message: `the node of pod ${name} lost its container` };
  return {
    code: 'died',
    sub: 'killed',
    message: `the container of pod ${name} ended: ${ended.reason ?? 'no reason'}, exit code ${ended.exitCode}`,
  };
}

/** Nothing that the agent does can end it. */
function endOfRelay(relay: V1ContainerStatus | undefined, name: string): PodFault | undefined {
  const ended = relay?.state?.terminated;
  if (!ended) return undefined;
  const why = `${ended.message ?? ended.reason ?? 'no reason'}, exit code ${ended.exitCode}`;
  return NEVER_RAN.has(ended.reason ?? '')
    ? { code: 'start_failed', message: `the relay of pod ${name} could not be started: ${why}` }
    : { code: 'died', sub: 'relay', message: `the relay of pod ${name} ended: ${why}` };
}

/** The containers that fill volumes of services run before everything else, in the images of the services. */
function endOfFilling({ status }: V1Pod, name: string): PodFault | undefined {
  for (const { name: container, state } of status?.initContainerStatuses ?? []) {
    const ended = state?.terminated;
    if (ended && ended.exitCode !== 0 && isFilling(container))
      return {
        code: 'start_failed',
        message: `what the image has where a volume is could not be copied into it (${container} of pod ${name}: ${ended.message ?? ended.reason ?? 'no reason'}, exit code ${ended.exitCode}); that needs sh, ls and cp in the image`,
      };
  }
  return undefined;
}

type ServiceState =
  | PodState
  | {
      readonly state: 'ended';
      readonly exitCode: number;
      readonly outOfMemory: boolean;
      readonly why: string;
    };

/** The state of a container beside main, whose end is no end of the pod. */
export function stateOfService(pod: V1Pod, container: string): ServiceState {
  const name = pod.metadata?.name ?? 'the pod';
  const taken = takenAway(pod, name);
  if (taken) return failed(taken);
  const state = pod.status?.containerStatuses?.find((one) => one.name === container)?.state;
  if (state?.running) return { state: 'running' };
  const ended = state?.terminated;
  if (ended)
    return {
      state: 'ended',
      exitCode: ended.exitCode,
      outOfMemory: ended.reason === 'OOMKilled',
      why: NEVER_RAN.has(ended.reason ?? '') ? (ended.message ?? '') : '',
    };
  const { reason, message = '' } = state?.waiting ?? {};
  // The kubelet says so for a moment after its image was named, too.
  return reason === 'InvalidImageName' && message.includes(WAITS)
    ? waiting('start', 'it waits for another service')
    : waitingFor(pod, state?.waiting, `${name}, container ${container},`);
}

/** The API tells times in whole seconds. */
const WHOLE_SECONDS_MS = 1500;
const NEVER_RAN: ReadonlySet<string> = new Set(['ContainerCannotRun', 'StartError']);

/** The kubelet of the chosen node did not admit it, after the scheduler had: nothing ran. */
function refusedByNode(pod: V1Pod, name: string): PodFault {
  const { reason = 'Failed', message = '' } = pod.status ?? {};
  return {
    code: 'start_failed',
    again: true,
    message: `the node did not take pod ${name} (${reason}): ${message}`,
  };
}

interface Waiting {
  readonly reason?: string;
  readonly message?: string;
}

function waitingFor(pod: V1Pod, { reason = '', message = '' }: Waiting = {}, name: string): PodState {
  const scheduled = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled');
  if (scheduled?.status !== 'True') return waiting('schedule', scheduled?.message ?? '');
  switch (reason) {
    case 'ErrImagePull':
    case 'ImagePullBackOff':
    case 'RegistryUnavailable':
    case 'ImageInspectError':
      return imageFault(message, name) ?? waiting('pull', message || reason, true);
    case 'InvalidImageName':
      return failed({ code: 'image_missing', message: `the name of the image cannot be read: ${message}` });
    case 'ErrImageNeverPull':
      return failed({
        code: 'image_missing',
        message: `the node of pod ${name} does not have the image, and environment.pull is never`,
      });
    case 'CreateContainerConfigError':
    case 'CreateContainerError':
    case 'RunContainerError':
    case 'PreCreateHookError':
    case 'PreStartHookError':
    case 'PostStartHookError':
      return failed({ code: 'start_failed', message: `pod ${name} did not start (${reason}): ${message}` });
    default:
      // While the image comes the kubelet says only this, also after it has come.
      return waiting(reason === '' || reason === 'ContainerCreating' ? 'pull' : 'start', message || reason);
  }
}

/** undefined where a later try may help: the kubelet makes them by itself. */
function imageFault(said: string, name: string): PodState | undefined {
  const kind = classifyPullMessage(said);
  const { code, again } = PULL_FAILURES[kind];
  if (again) return undefined;
  const fix =
    kind === 'no_access'
      ? '; name a secret in environment.kubernetes.pull_secrets, or correct the image'
      : '';
  return failed({ code, sub: kind, message: `the image of pod ${name} cannot be pulled: ${said}${fix}` });
}

export const faultError = (fault: PodFault, evidence: Record<string, unknown>): EnvironmentError => {
  const { code, message, sub, fromWithin = false, again = false } = fault;
  return new EnvironmentError(code, message, {
    ...(sub !== undefined && { sub }),
    ...{ fromWithin, again, evidence },
  });
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

/** The causes that a person can change stand first. */
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
