/**
 * Services of a task as containers of its pod, as data: needs that one pod cannot meet, and the manifest of each. Containers of a pod share one
 * address, one host name and one network, so services that Compose keeps apart by these are refused.
 */
import type { V1Container, V1Pod, V1SecurityContext, V1Volume, V1VolumeMount } from '@kubernetes/client-node';
import type { ContainerNeeds } from '../../base/containerNeeds.ts';
import { recordOf } from '../../base/isRecord.ts';
import type { Service, Services } from '../../base/services.ts';
import { parseSize } from '../../base/text/units.ts';
import { shellScript } from '../shellScript.ts';
import { RESERVED } from './clusterConfig.ts';
import { canBeUser, literal, MAIN, type PodParts, PULL, podUser, resourcesOf } from './podManifest.ts';

/** More would push what matters off the screen. */
const SHOWN = 4;

/** As clauses; none where all of them fit into one pod. `network`: that of the configuration. */
export function serviceRefusals(needs: ContainerNeeds, network: unknown): string[] {
  const {
    services,
    user: named,
    worker: user = named,
    entryAlone,
    entryArguments,
    entryProgram = [],
  } = needs;
  if (!services) return [];
  const open = (needs.network ?? network) !== 'none';
  const all: readonly Placed[] = [services.own, ...services.containers];
  const reasons = [
    ...pairsOf(all).flatMap(([one, other]) => [...meeting(one, other), ...apart(one, other)]),
    ...all.flatMap((one) => namesOf(one).flatMap((name) => nameProblem(one.name, name))),
    ...services.containers.flatMap((one) => [
      ...ofService(one, services),
      ...(open && isInner(one, services)
        ? [`${one.name} is on internal networks alone, and containers of one pod reach the same`]
        : []),
    ]),
    // A verifier in the pod is the user that its container runs as.
    ...(user === undefined || user === 'root' || user === '0'
      ? []
      : [`its agent is the user ${user}, and its verifier would be too`]),
    ...(entryAlone && !sleeps([...entryProgram, ...(entryArguments ?? [])])
      ? ['main has a command of its own, which pods do not run']
      : []),
  ];
  const left = reasons.length - SHOWN;
  return left > 0 ? [...reasons.slice(0, SHOWN), `and ${left} more`] : reasons;
}

type Placed = Pick<Service, 'name' | 'networks' | 'volumes' | 'ports'>;

const pairsOf = <T>(all: readonly T[]): (readonly [T, T])[] =>
  all.flatMap((one, i) => all.slice(i + 1).map((other) => [one, other] as const));

/** A port of both, as far as they say. */
function meeting(one: Placed, other: Placed): string[] {
  for (const a of one.ports ?? [])
    for (const b of other.ports ?? [])
      if (a.protocol === b.protocol && a.first <= b.last && b.first <= a.last)
        return [
          `${one.name} and ${other.name} both listen on port ${Math.max(a.first, b.first)}/${a.protocol}, and containers of one pod share their address`,
        ];
  return [];
}

function apart(one: Placed, other: Placed): string[] {
  const networks = new Set(one.networks.map(({ name }) => name));
  return other.networks.some(({ name }) => networks.has(name))
    ? []
    : [`${one.name} and ${other.name} share no network, and containers of one pod reach each other`];
}

const isInner = ({ networks }: Placed, services: Services): boolean =>
  networks.every(({ name }) => services.networks.find((one) => one.name === name)?.inner);

const namesOf = ({ networks }: Placed): string[] => [...new Set(networks.flatMap(({ aliases }) => aliases))];

/** A part of a host's name, as Kubernetes takes it; files of hosts are read without regard to capitals. */
const HOST_LABEL = /^[a-z0-9-]{1,63}$/;
const hostName = (name: string): string => name.toLowerCase();
const isHostName = (name: string): boolean =>
  hostName(name)
    .split('.')
    .every((part) => HOST_LABEL.test(part) && !part.startsWith('-') && !part.endsWith('-'));
const nameProblem = (service: string, name: string): string[] =>
  isHostName(name)
    ? []
    : [`${service} is called ${name}, and names of hosts in pods have letters, digits, - and . alone`];

/** A container that only waits, in a shell or not. */
const SHELL_WORDS: ReadonlySet<string> = new Set(['sh', 'bash', '/bin/sh', '/bin/bash', '-c', '-lc', 'exec']);
function sleeps(argv: readonly string[]): boolean {
  const words = argv.join(' ').split(' ').filter(Boolean);
  const rest = words.slice(words.findIndex((word) => !SHELL_WORDS.has(word))).join(' ');
  return /^sleep (?:infinity|\d{2,9})$/.test(rest) || rest === 'tail -f /dev/null';
}

const PLAIN_TMPFS = /^(?:size=\d{1,15}[kKmMgG]?|mode=0?1?777|rw|noexec|exec|nosuid|nodev)?$/;

function ofService(service: Service, { containers }: Services): string[] {
  const { name, entrypoint, command = [], healthcheck, user, restart, hostname, pids, ulimits } = service;
  const say = (problem: boolean | undefined, what: string): string[] => (problem ? [`${name} ${what}`] : []);
  const test = healthcheck?.test;
  const isAsked = containers.some(({ after }) =>
    after.some((one) => one.service === name && one.until === 'healthy'),
  );
  return [
    ...say(
      restart !== 'no',
      `is restarted (restart: ${restart}), and a pod starts none of its containers again`,
    ),
    ...say(
      hostname !== undefined && hostname !== name,
      `has the hostname ${hostname}, and a pod has one for all of its containers`,
    ),
    ...say(!canBeUser(user), `is the user ${user}: Kubernetes takes a number, or two as in 1000:1000`),
    ...say(pids !== undefined, 'has a limit of processes, which the kubelet alone sets (podPidsLimit)'),
    ...say(
      ulimits.length > 0,
      `has ulimits (${ulimits.map((one) => one.name).join(', ')}), which a pod has none of`,
    ),
    ...say(
      test?.length === 0 || (isAsked && test === undefined),
      'has the healthcheck of its image, which a pod cannot ask for: write its test into the file',
    ),
    ...say(
      entrypoint?.length === 0 && command.length === 0,
      'empties the entrypoint of its image, whose command a pod cannot ask for',
    ),
    ...service.tmpfs.flatMap(({ path, options }) =>
      say(
        options.split(',').some((option) => !PLAIN_TMPFS.test(option)),
        `has memory at ${path} with the options ${options}, and a pod gives it a size alone`,
      ),
    ),
    ...[...service.volumes, ...service.tmpfs].flatMap(({ path }) =>
      say(path.includes(':'), `mounts at ${path}, and a path of a pod has no colon`),
    ),
  ];
}

// A service that waits for another has no image yet: the kubelet says so and goes on with the others, until the image is named (Pod.spec lets
// nothing else be changed). Nothing of the image needs to be known for that.

export const WAITS = 'WAITS-FOR-ANOTHER-SERVICE';

/** Services that this program starts. A kubelet starts the others, in the order of the list. */
export function waitingServices({ containers, own }: Services): ReadonlySet<string> {
  const found = new Set<string>();
  const known = new Set(containers.map(({ name }) => name));
  for (const { name, after } of containers)
    if (
      after.some(
        ({ service, until }) =>
          service !== own.name && known.has(service) && (until !== 'started' || found.has(service)),
      )
    )
      found.add(name);
  return found;
}

const slug = (name: string): string =>
  name
    .toLowerCase()
    .split(/[^a-z0-9]/)
    .filter(Boolean)
    .join('-')
    .slice(0, 30);

/** Names of containers, by the names of their services. */
export const serviceContainers = ({ containers }: Services): ReadonlyMap<string, string> =>
  new Map(containers.map(({ name }, i) => [name, `${RESERVED}service-${i}-${slug(name)}`.replace(/-$/, '')]));

const FILL = shellScript('inside/fillVolume.sh', import.meta.url);
const FILLED = '/swebatch-volumes';
/** A container that fills a volume is called after the one whose image it has. */
export const isFilling = (container: string): boolean => container.startsWith(`${RESERVED}fill-`);

/** The pod with the services in it. */
export function withServices(pod: V1Pod, services: Services, parts: PodParts): V1Pod {
  const spec = pod.spec!;
  const [main, ...beside] = spec.containers;
  const names = serviceContainers(services);
  const waiting = waitingServices(services);
  const volumes = [
    ...new Set([services.own, ...services.containers].flatMap((one) => one.volumes.map(({ name }) => name))),
  ];
  const volumeName = (name: string): string => `${RESERVED}volume-${volumes.indexOf(name)}`;
  const mountsOf = (one: Placed): V1VolumeMount[] =>
    one.volumes.map(({ name, path, readOnly }) => ({
      name: volumeName(name),
      mountPath: path,
      ...(readOnly && { readOnly }),
    }));
  const memory = services.containers.flatMap((service) => memoryVolumes(service, names.get(service.name)!));
  const filling = (one: Placed, image: string, called: string): V1Container[] =>
    one.volumes.length === 0
      ? []
      : [fillerOf(one, image, `${RESERVED}fill-${called}`, { parts, volumeName })];
  const hosts = [...new Set([services.own, ...services.containers].flatMap(namesOf).map(hostName))];
  return {
    ...pod,
    spec: {
      ...spec,
      hostAliases: [...(spec.hostAliases ?? []), { ip: '127.0.0.1', hostnames: hosts }],
      volumes: [
        ...(spec.volumes ?? []),
        ...volumes.map((name) => ({ name: volumeName(name), emptyDir: {} })),
        ...memory.map(({ volume }) => volume),
      ],
      initContainers: [
        ...(spec.initContainers ?? []),
        // In the order in which an engine would make the containers: the first one with something there fills a volume.
        ...services.containers.flatMap((one) =>
          filling(one, one.image, names.get(one.name)!.slice(RESERVED.length)),
        ),
        ...filling(services.own, parts.image, MAIN),
      ],
      containers: [
        { ...main!, volumeMounts: [...(main!.volumeMounts ?? []), ...mountsOf(services.own)] },
        ...beside,
        ...services.containers.map((service) => {
          const name = names.get(service.name)!;
          const own = memory.filter(({ of }) => of === name).map(({ mount }) => mount);
          return {
            ...serviceContainer(service, name, parts),
            image: waiting.has(service.name) ? WAITS : service.image,
            volumeMounts: [...mountsOf(service), ...own],
          };
        }),
      ],
    },
  };
}

/** The limits of every container of the pod, as the template narrows them for main. */
function securityOf({ cluster }: PodParts): V1SecurityContext {
  const containers = recordOf(recordOf(cluster.pod_template).spec).containers;
  const main = (Array.isArray(containers) ? containers : []).map(recordOf).find(({ name }) => name === MAIN);
  return {
    seccompProfile: { type: 'RuntimeDefault' },
    ...recordOf(main?.securityContext),
    privileged: false,
    allowPrivilegeEscalation: false,
  };
}

const SMALL_CPU_MILLI = 100;
const SMALL_MEMORY = 128 * 2 ** 20;

function serviceContainer(service: Service, name: string, parts: PodParts): V1Container {
  const { config } = parts;
  const { entrypoint, command, env, user, cwd, capDrop, capAdd, readOnly, tty, stdin } = service;
  const own = {
    ...config,
    memory: String(service.memoryBytes ?? parseSize(config.memory)),
    cpus: service.cpus ?? config.cpus,
  };
  const { limits, requests } = resourcesOf({ ...parts, config: own }, {});
  const security = securityOf(parts);
  const drop = [...new Set([...(security.capabilities?.drop ?? []), ...capDrop])];
  const memory = parseSize(own.memory);
  // An emptied entrypoint leaves the command alone, which is then the program.
  const program = entrypoint?.length === 0 ? command : entrypoint;
  const args = entrypoint?.length === 0 ? undefined : command;
  return {
    name,
    imagePullPolicy: PULL[config.pull],
    ...(program && { command: program.map(literal) }),
    ...(args && { args: args.map(literal) }),
    ...(cwd !== undefined && { workingDir: cwd }),
    env: Object.entries(env).map(([key, value]) => ({ name: key, value: literal(value) })),
    resources: {
      limits,
      requests: {
        ...requests,
        // Of the pod's requests, main has the configured ones; limits of all its containers would find no node.
        cpu: `${Math.min(SMALL_CPU_MILLI, own.cpus > 0 ? Math.round(own.cpus * 1000) : SMALL_CPU_MILLI)}m`,
        memory: String(service.memoryBytes ?? (memory > 0 ? Math.min(SMALL_MEMORY, memory) : SMALL_MEMORY)),
      },
    },
    securityContext: {
      ...security,
      ...podUser(user),
      ...((drop.length > 0 || capAdd.length > 0) && {
        capabilities: { ...(drop.length > 0 && { drop }), ...(capAdd.length > 0 && { add: capAdd }) },
      }),
      ...(readOnly && { readOnlyRootFilesystem: true }),
    },
    stdin,
    tty,
  };
}

interface MemoryVolume {
  /** The container whose image fills it. */
  readonly of: string;
  readonly volume: V1Volume;
  readonly mount: V1VolumeMount;
}

function memoryVolumes({ tmpfs, shmBytes }: Service, of: string): MemoryVolume[] {
  const asked = [
    ...tmpfs.map(({ path, options }) => ({ path, size: /(?:^|,)size=([^,]{1,20})/.exec(options)?.[1] })),
    ...(shmBytes === undefined ? [] : [{ path: '/dev/shm', size: String(shmBytes) }]),
  ];
  return asked.map(({ path, size }, i) => {
    const name = `${RESERVED}memory-${i}-${of.slice(RESERVED.length)}`.slice(0, 63);
    return {
      of,
      volume: {
        name,
        emptyDir: { medium: 'Memory', ...(size !== undefined && { sizeLimit: String(parseSize(size)) }) },
      },
      mount: { name, mountPath: path },
    };
  });
}

/** Root of the image, because files keep their owners. */
function fillerOf(
  { volumes }: Placed,
  image: string,
  name: string,
  { parts, volumeName }: { readonly parts: PodParts; readonly volumeName: (name: string) => string },
): V1Container {
  const at = (index: number): string => `${FILLED}/${index}`;
  const disk = resourcesOf(parts, {}).limits['ephemeral-storage'];
  return {
    name: name.slice(0, 63),
    image,
    imagePullPolicy: PULL[parts.config.pull],
    command: ['sh', '-c', FILL, 'swebatch-fill', ...volumes.flatMap(({ path }, i) => [path, at(i)])].map(
      literal,
    ),
    args: [],
    workingDir: '/',
    resources: {
      limits: { cpu: '1', memory: '512Mi', ...(disk !== undefined && { 'ephemeral-storage': disk }) },
      requests: { cpu: '10m', memory: '32Mi' },
    },
    securityContext: { ...securityOf(parts), runAsUser: 0 },
    volumeMounts: volumes.map((one, i) => ({ name: volumeName(one.name), mountPath: at(i) })),
    stdin: false,
    tty: false,
  };
}
