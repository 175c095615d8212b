/** The pod of one attempt, as data. The user's template adds to it; the fields that keep an environment closed are ours. */

import { randomBytes } from 'node:crypto';
import type {
  V1Container,
  V1EnvVar,
  V1Pod,
  V1PodSpec,
  V1Toleration,
  V1Volume,
  V1VolumeMount,
} from '@kubernetes/client-node';
import { recordOf } from '../../base/isRecord.ts';
import { parseDuration, parseSize } from '../../base/text/units.ts';
import type { StartRequest } from '../environment.ts';
import type { EnvironmentConfig } from '../environmentConfig.ts';
import { keeperEntrypoint } from '../exec/keeper.ts';
import { ownerLabels } from '../owner.ts';
import { PROGRAM_FOLDER } from '../programs/program.ts';
import { QUIET_ENV } from '../quietEnv.ts';
import { type ClusterConfig, RESERVED } from './clusterConfig.ts';
/** The container of the pod that commands run in; a template may bring others. */
export const MAIN = 'main';
/** Every pod of ours, and those among them that no packet may enter or leave. */
export const POD_LABELS = {
  managed: 'app.kubernetes.io/managed-by',
  network: 'swebatch/network',
  run: 'swebatch/run',
} as const;
export const MANAGED_BY = 'swebatch';
export const CLOSED = 'none';

/** The longest value of a label, and the longest name of a host. */
const LABEL_CHARS = 63;
const NAME_HEX = 12;

/** Labels are for selecting; the owner is in the annotations, which hold every text. */
export const labelValue = (text: string): string =>
  text
    .replace(/[^A-Za-z0-9_.-]/g, '-')
    .slice(0, LABEL_CHARS)
    .replace(/^[^A-Za-z0-9]{1,63}/, '')
    .replace(/[^A-Za-z0-9]$/, '0');

export function podName(instanceId: string): string {
  const readable = instanceId.toLowerCase().replace(/[^a-z0-9]/g, '-');
  const room = LABEL_CHARS - 'swebatch--'.length - NAME_HEX;
  return `swebatch-${readable.slice(0, room)}-${randomBytes(NAME_HEX / 2).toString('hex')}`;
}

/** The kubelet reads $(NAME) in commands and values of variables, and makes one of two dollar signs. */
export const literal = (text: string): string => text.replaceAll('$', '$$$$');

export interface PodParts {
  readonly name: string;
  readonly image: string;
  readonly config: EnvironmentConfig;
  readonly cluster: ClusterConfig;
  readonly request: Pick<StartRequest, 'owner' | 'instanceId' | 'container'>;
  readonly quietEnv: boolean;
  readonly capAdd?: readonly string[];
  /** The agent brings its own program: with its relay, and with a volume for a program that is not in the image. */
  readonly sidecar?: { readonly program: boolean } | undefined;
  readonly now: Date;
}

export const PULL: Readonly<Record<EnvironmentConfig['pull'], string>> = {
  never: 'Never',
  missing: 'IfNotPresent',
  always: 'Always',
};

export function podManifest(parts: PodParts): V1Pod {
  const { config, cluster, request, name } = parts;
  const template = recordOf(cluster.pod_template);
  const given = recordOf(template.metadata);
  const closed = config.network === 'none';
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      labels: {
        ...(recordOf(given.labels) as Record<string, string>),
        [POD_LABELS.managed]: MANAGED_BY,
        [POD_LABELS.network]: closed ? CLOSED : 'open',
        [POD_LABELS.run]: labelValue(request.owner.run),
      },
      annotations: {
        // An autoscaler that moves pods would end attempts.
        'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false',
        ...(recordOf(given.annotations) as Record<string, string>),
        ...ownerLabels(request.owner, request.instanceId, parts.now, name),
      },
    },
    spec: podSpec(parts, recordOf(template.spec), closed),
  };
}

function podSpec(parts: PodParts, template: Readonly<Record<string, unknown>>, closed: boolean): V1PodSpec {
  const { config, cluster } = parts;
  const lifetime = Math.ceil(parseDuration(config.container_timeout));
  const containers = Array.isArray(template.containers) ? template.containers.map(recordOf) : [];
  const beside = containers.filter((one) => one.name !== MAIN && !isOurs(one)) as unknown as V1Container[];
  const main = mainContainer(parts, containers.find(({ name }) => name === MAIN) ?? {});
  const sidecar = sidecarFor(parts, main);
  const given = listOf(template.volumes) as unknown as V1Volume[];
  const volumes = [...given.filter((one) => !isOurs(one)), ...(sidecar?.volumes ?? [])];
  const nodeSelector = {
    ...(recordOf(template.nodeSelector) as Record<string, string>),
    ...platformLabels(config.platform),
    ...cluster.node_selector,
  };
  const tolerations = [...listOf(template.tolerations), ...cluster.tolerations] as unknown as V1Toleration[];
  const imagePullSecrets: { name: string }[] = [
    ...(listOf(template.imagePullSecrets) as unknown as { name: string }[]),
    ...cluster.pull_secrets.map((name) => ({ name })),
  ];
  return {
    ...(template as Partial<V1PodSpec>),
    restartPolicy: 'Never',
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    hostNetwork: false,
    hostPID: false,
    hostIPC: false,
    shareProcessNamespace: false,
    // Nothing in it hears a signal, so nobody waits for it.
    terminationGracePeriodSeconds: 0,
    ...(lifetime > 0 && { activeDeadlineSeconds: lifetime }),
    ...(Object.keys(nodeSelector).length > 0 && { nodeSelector }),
    ...(tolerations.length > 0 && { tolerations }),
    ...(imagePullSecrets.length > 0 && { imagePullSecrets }),
    ...(cluster.runtime_class !== undefined && { runtimeClassName: cluster.runtime_class }),
    // Where packets are dropped, a question to a name server waits for seconds; this one is refused at once.
    ...(closed && { dnsPolicy: 'None', dnsConfig: { nameservers: ['127.0.0.1'] } }),
    ...((given.length > 0 || sidecar) && { volumes }),
    containers: sidecar ? [withMounts(main, sidecar), sidecar.container, ...beside] : [main, ...beside],
  };
}

const isOurs = ({ name }: { readonly name?: unknown }): boolean => String(name).startsWith(RESERVED);

const withMounts = (main: V1Container, { mounts }: Sidecar): V1Container => ({
  ...main,
  volumeMounts: [...(main.volumeMounts ?? []).filter((one) => !isOurs(one)), ...mounts],
});

const sidecarFor = ({ sidecar, image, config }: PodParts, main: V1Container): Sidecar | undefined =>
  sidecar &&
  sidecarOf({
    image,
    // The agent's container comes first and brings it.
    pull: config.pull === 'never' ? PULL.never : PULL.missing,
    program: sidecar.program,
    diskLimited: main.resources?.limits?.['ephemeral-storage'] !== undefined,
  });

const listOf = (value: unknown): Record<string, never>[] => (Array.isArray(value) ? value : []);

/** linux/arm64/v8 is a node of arm64. */
function platformLabels(platform: string | undefined): Record<string, string> {
  const [os, architecture] = platform?.split('/') ?? [];
  return {
    ...(os !== undefined && { 'kubernetes.io/os': os }),
    ...(architecture !== undefined && { 'kubernetes.io/arch': architecture }),
  };
}

function mainContainer(parts: PodParts, template: Readonly<Record<string, unknown>>): V1Container {
  const { config, image, request, capAdd = [] } = parts;
  const env = { ...(parts.quietEnv ? QUIET_ENV : {}), ...config.env };
  const own: V1EnvVar[] = Object.entries(env).map(([name, value]) => ({ name, value: literal(value) }));
  const names = new Set(Object.keys(env));
  const given = (listOf(template.env) as unknown as V1EnvVar[]).filter(({ name }) => !names.has(name));
  const lifetime = parseDuration(config.container_timeout);
  return {
    ...(template as Partial<V1Container>),
    name: MAIN,
    image,
    imagePullPolicy: PULL[config.pull],
    // The first process is what keeps the container: nothing inside can kill it, and it reaps orphans.
    command: keeperEntrypoint(lifetime, config.supervisor).map(literal),
    args: [],
    // A command begins in the folder of the container, and cannot where the agent removed it. The image's own is asked of its first process.
    ...(request.container?.cwd !== 'image' && { workingDir: '/' }),
    env: [...given, ...own],
    resources: resourcesOf(parts, recordOf(template.resources)),
    securityContext: {
      seccompProfile: { type: 'RuntimeDefault' },
      ...recordOf(template.securityContext),
      privileged: false,
      allowPrivilegeEscalation: false,
      ...podUser(config.user),
      ...(capAdd.length > 0 && { capabilities: { add: [...capAdd] } }),
    },
    stdin: false,
    tty: false,
  };
}

/** A number, or two as in 1000:1000. */
const NUMERIC_USER = /^(\d{1,9})(?::(\d{1,9}))?$/;

export const canBeUser = (user: string | undefined): boolean =>
  user === undefined || user === '' || user === 'root' || NUMERIC_USER.test(user);

/** Why the user cannot be had in a pod; undefined when it can. */
export const userProblem = (user: string | undefined): string | undefined =>
  canBeUser(user)
    ? undefined
    : `the user is "${user}", and Kubernetes takes a number, or two as in 1000:1000`;

export function podUser(user: string | undefined): { runAsUser?: number; runAsGroup?: number } {
  if (user === 'root') return { runAsUser: 0 };
  const [, id, group] = NUMERIC_USER.exec(user ?? '') ?? [];
  return {
    ...(id !== undefined && { runAsUser: Number(id) }),
    ...(group !== undefined && { runAsGroup: Number(group) }),
  };
}

export function resourcesOf({ config, cluster }: PodParts, template: Readonly<Record<string, unknown>>) {
  const memory = parseSize(config.memory);
  const disk = parseSize(config.disk);
  const limits = {
    ...(recordOf(template.limits) as Record<string, string>),
    ...(memory > 0 && { memory: String(memory) }),
    ...(config.cpus > 0 && { cpu: `${Math.round(config.cpus * 1000)}m` }),
    ...(disk > 0 && { 'ephemeral-storage': String(disk) }),
  };
  const requests = {
    ...(recordOf(template.requests) as Record<string, string>),
    ...(cluster.cpu_request !== undefined && { cpu: cluster.cpu_request }),
    ...(cluster.memory_request !== undefined && { memory: cluster.memory_request }),
    // Left out it would be the limit, and no node has room for the limits of all its pods.
    ...(disk > 0 && { 'ephemeral-storage': String(Math.min(disk, SMALL_DISK)) }),
  };
  return { limits, requests };
}

const SMALL_DISK = 1024 ** 3;

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

interface Sidecar {
  readonly container: V1Container;
  readonly volumes: readonly V1Volume[];
  /** Mounts of the container that the agent works in. */
  readonly mounts: readonly V1VolumeMount[];
}

/** `diskLimited`: the agent's container has a limit of its own. */
function sidecarOf(asked: {
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
