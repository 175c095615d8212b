/**
 * The second container of a pod whose agent brings its own program. It shares the network namespace of the pod, so the agent can connect to
 * the relay there, and can neither see nor end it. It also puts the program into a volume that the agent's container has read-only.
 */
import type { V1Container, V1Volume, V1VolumeMount } from '@kubernetes/client-node';
import { PROGRAM_FOLDER } from '../programs/program.ts';
import { RESERVED } from './podTemplate.ts';

export const RELAY = `${RESERVED}relay`;
const PROGRAM = `${RESERVED}program`;
/** Where the relay is, for the sidecar alone. */
export const RELAY_FOLDER = '/opt/swebatch-relay';

const RELAY_DISK = '16Mi';
/** Above what packages may hold (PACKAGE_LIMITS), so that the kubelet never evicts a pod for its program. */
const PROGRAM_DISK = '3Gi';
const NOBODY = 65534;
/** Nothing runs but what is started in it; the pod's own deadline ends it. */
const IDLE = 'while :; do sleep 86400; done';

export interface Sidecar {
  readonly container: V1Container;
  readonly volumes: readonly V1Volume[];
  /** For the container that the agent works in. */
  readonly mounts: readonly V1VolumeMount[];
}

/** `diskLimited`: the agent's container has a limit of its own. */
export function sidecarOf(asked: {
  readonly image: string;
  readonly pull: string;
  readonly program: boolean;
  readonly diskLimited: boolean;
}): Sidecar {
  const { image, pull, program, diskLimited } = asked;
  // The kubelet compares all that a pod writes with the sum of its limits: one limit alone would be that of the whole pod.
  const limit = program ? PROGRAM_DISK : RELAY_DISK;
  return {
    container: {
      name: RELAY,
      image,
      imagePullPolicy: pull,
      command: ['sh', '-c', IDLE],
      args: [],
      workingDir: '/',
      resources: {
        limits: { memory: '256Mi', cpu: '1', ...(diskLimited && { 'ephemeral-storage': limit }) },
        requests: { memory: '32Mi', cpu: '10m', ...(diskLimited && { 'ephemeral-storage': RELAY_DISK }) },
      },
      securityContext: {
        seccompProfile: { type: 'RuntimeDefault' },
        privileged: false,
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        runAsNonRoot: true,
        runAsUser: NOBODY,
        runAsGroup: NOBODY,
        capabilities: { drop: ['ALL'] },
      },
      volumeMounts: [
        { name: RELAY, mountPath: RELAY_FOLDER },
        ...(program ? [{ name: PROGRAM, mountPath: PROGRAM_FOLDER }] : []),
      ],
      stdin: false,
      tty: false,
    },
    volumes: [
      { name: RELAY, emptyDir: { sizeLimit: RELAY_DISK } },
      ...(program ? [{ name: PROGRAM, emptyDir: { sizeLimit: PROGRAM_DISK } }] : []),
    ],
    mounts: program ? [{ name: PROGRAM, mountPath: PROGRAM_FOLDER, readOnly: true }] : [],
  };
}
