/**
 * Services of a task beside the container of its work, on networks and with volumes of this one attempt. The networks are closed, also to the
 * machine itself; a service that may reach the outside has one network more. All parts carry the labels of the owner, so that the sweep finds them.
 */
import { randomBytes } from 'node:crypto';
import type Docker from 'dockerode';
import { pause } from '../../base/async/timer.ts';
import type { Service, Services } from '../../base/services.ts';
import { parseSize } from '../../base/text/units.ts';
import type { OwnConfig } from '../container/container.ts';
import { EnvironmentError, REFUSED_OPTION, type ServiceLog, type StartRequest } from '../environment.ts';
import { LABELS, ownerLabels, SERVICE_LABEL } from '../owner.ts';
import { daemonAnswer, readFault, withDaemonRetry } from '../places/dockerFault.ts';
import { removeServices, servicesLabel } from '../places/leftovers.ts';
import { createDemux } from './startProcess.ts';

interface ServicesParts {
  readonly docker: Docker;
  /** The configuration of the container of the work. */
  readonly config: OwnConfig;
  /** Removes all services, now or as soon as the engine does. */
  readonly dismiss: (services: Pick<RunningServices, 'name' | 'remove'>) => Promise<void>;
}

/** Options by which a container of the work stands among the services. */
export interface AmongServices {
  /** The label of all of them. */
  readonly services: string;
  readonly host: Pick<Docker.HostConfig, 'NetworkMode' | 'Dns' | 'DnsOptions'>;
  readonly endpoints: Docker.EndpointsConfig;
  readonly mounts: readonly Docker.MountSettings[];
  /** Before it is started: an engine takes one network when a container is created. */
  connect(container: Docker.Container): Promise<void>;
}

export interface RunningServices {
  readonly name: string;
  readonly place: AmongServices;
  /** Starts what waits for the container of the work, and resolves when all are healthy, or run. */
  ready(): Promise<void>;
  /** Rejects when one has ended. */
  check(): Promise<void>;
  logs(): Promise<readonly ServiceLog[]>;
  /** Whether all of it is gone. Never rejects. */
  remove(): Promise<boolean>;
}

const NANO = 1e9;
const MS_TO_NANO = 1e6;
const START_LIMIT_MS = 600_000;
const POLL_MS = 250;
/** Limits of a service without a check, and of a service that is to end well. */
const RUNS_WITHIN_MS = 120_000;
const ENDS_WITHIN_MS = 1_800_000;

/** The name of a network on this machine. */
const networkName = (name: string, services: Services, network: string): string =>
  `${name}-n${services.networks.findIndex((one) => one.name === network)}`;
const outsideName = (name: string): string => `${name}-outside`;
const volumesOf = ({ own, containers }: Services): string[] => [
  ...new Set([own, ...containers].flatMap(({ volumes }) => volumes.map((volume) => volume.name))),
];
const volumeName = (name: string, services: Services, volume: string): string =>
  `${name}-v${volumesOf(services).indexOf(volume)}`;

/** Nothing answers there, so no name of the outside is asked for: an engine would ask its own servers, also for a container without network. */
const NO_NAMES = { Dns: ['127.0.0.1'], DnsOptions: ['timeout:1', 'attempts:1'] };

type Outside = { readonly network: string } | undefined;

/** `outside`: the network by which it reaches more than the others. */
function placeOf(
  { docker }: Pick<ServicesParts, 'docker'>,
  name: string,
  services: Services,
  { networks, volumes }: Pick<Service, 'networks' | 'volumes'>,
  outside: Outside,
): AmongServices {
  const joined = [
    ...networks.map(({ name: network, aliases }) => ({
      network: networkName(name, services, network),
      settings: { Aliases: aliases } as Docker.EndpointSettings,
    })),
    ...(outside ? [{ network: outside.network, settings: {} as Docker.EndpointSettings }] : []),
  ];
  const [first, ...more] = joined;
  return {
    services: name,
    host: { NetworkMode: first?.network ?? 'none', ...(outside || !first ? {} : NO_NAMES) },
    endpoints: first ? { [first.network]: first.settings } : {},
    mounts: volumes.map(({ name: volume, path, readOnly }) => ({
      Type: 'volume',
      Source: volumeName(name, services, volume),
      Target: path,
      ReadOnly: readOnly,
    })),
    async connect(container) {
      for (const { network, settings } of more)
        await daemonAnswer(
          docker.getNetwork(network).connect({ Container: container.id, EndpointConfig: settings }),
        );
    },
  };
}

interface Made extends ServicesParts {
  readonly name: string;
  readonly request: StartRequest;
  readonly services: Services;
}

const labelsOf = ({ name, request }: Pick<Made, 'name' | 'request'>, part: string) => ({
  ...ownerLabels(request.owner, request.instanceId, new Date(), part),
  [LABELS.services]: name,
});

async function makeNetwork(made: Made, network: string, closed: boolean): Promise<void> {
  await daemonAnswer(
    made.docker.createNetwork({
      Name: network,
      Driver: 'bridge',
      CheckDuplicate: true,
      Internal: closed,
      Options: closed
        ? // Without the option the machine has an address in a network that is internal, and answers there.
          { 'com.docker.network.bridge.inhibit_ipv4': 'true' }
        : // By the other network services reach the outside, and not each other.
          { 'com.docker.network.bridge.enable_icc': 'false' },
      Labels: labelsOf(made, network),
    }),
  );
}

/** The network of a container of the work beside those of its services; made when the first one asks for it. */
async function outsideOf(made: Made): Promise<Outside> {
  const { docker, config, request, name } = made;
  if (config.network === 'none') return undefined;
  if (config.network === 'host' || config.network.startsWith('container:'))
    throw new EnvironmentError(
      'start_failed',
      `${request.instanceId} has services, which a container with environment.network ${config.network} does not reach; set it to none, bridge or a network of the engine`,
      { sub: REFUSED_OPTION },
    );
  if (config.network !== 'bridge') return { network: config.network };
  const network = outsideName(name);
  const found = await daemonAnswer(docker.listNetworks({ filters: { name: [network] } }));
  if (!found.some(({ Name }) => Name === network)) await makeNetwork(made, network, false);
  return { network };
}

/**
 * Starts everything that does not wait for the container of the work. Removes all of it when one does not start. `images`: ids on the engine, by
 * the names that the services have for them.
 */
export async function startServices(
  parts: ServicesParts,
  request: StartRequest,
  services: Services,
  images: ReadonlyMap<string, string>,
): Promise<RunningServices> {
  const name = `swebatch-services-${randomBytes(6).toString('hex')}`;
  const made: Made = { ...parts, name, request, services };
  const { docker } = parts;
  const started = new Map<string, Docker.Container>();
  const remove = () => removeServices(docker, name);
  try {
    for (const network of services.networks)
      await makeNetwork(made, networkName(name, services, network.name), true);
    for (const volume of volumesOf(services)) {
      const Name = volumeName(name, services, volume);
      await daemonAnswer(docker.createVolume({ Name, Labels: labelsOf(made, Name) }));
    }
    const outside = await outsideOf(made);
    const afterWork = waitingFor(services, services.own.name);
    const start = async (which: (service: Service) => boolean) => {
      for (const service of services.containers.filter(which)) {
        for (const { service: other, until } of service.after) {
          const container = started.get(other);
          if (container) await waitUntil(made, other, container, until);
        }
        started.set(service.name, await startService(made, service, images.get(service.image)!, outside));
      }
    };
    await start(({ name: service }) => !afterWork.has(service));
    const doneOnes = new Set(
      services.containers.flatMap(({ after }) =>
        after.flatMap(({ service, until }) => (until === 'done' ? [service] : [])),
      ),
    );
    return {
      name,
      remove,
      place: placeOf(parts, name, services, services.own, outside),
      async ready() {
        await start(({ name: service }) => afterWork.has(service));
        for (const [service, container] of started)
          await waitUntil(made, service, container, doneOnes.has(service) ? 'done' : 'ready');
      },
      async check() {
        for (const [service, container] of started)
          if (!doneOnes.has(service)) await waitUntil(made, service, container, 'started');
      },
      logs: () => logsOf(docker, name),
    };
  } catch (error) {
    await parts.dismiss({ name, remove });
    throw asEnvironmentError(error, request);
  }
}

/** The services of an end state, as its agent left them. The removal of the end state removes them. */
export async function joinServices(
  parts: ServicesParts,
  request: StartRequest,
  services: Services,
  name: string,
): Promise<RunningServices> {
  const { docker } = parts;
  const found = await daemonAnswer(docker.listNetworks({ filters: { label: [servicesLabel(name)] } }));
  if (found.length < services.networks.length)
    throw new EnvironmentError(
      'start_failed',
      `the services of ${request.instanceId} are gone: they end with the program that started them, so only a new attempt can be graded`,
    );
  const outside = await outsideOf({ ...parts, name, request, services });
  return {
    name,
    place: placeOf(parts, name, services, services.own, outside),
    ready: async () => undefined,
    check: async () => undefined,
    logs: () => logsOf(docker, name),
    remove: async () => true,
  };
}

/** Services that are started after `name`, directly or through others. */
function waitingFor({ containers }: Services, name: string): ReadonlySet<string> {
  const found = new Set<string>();
  // Each service in the list comes after those that it waits for.
  for (const service of containers)
    if (service.after.some(({ service: other }) => other === name || found.has(other)))
      found.add(service.name);
  return found;
}

function serviceSpec(made: Made, service: Service, image: string, place: AmongServices, name: string) {
  const { config } = made;
  const memory = service.memoryBytes ?? parseSize(config.memory);
  const cpus = service.cpus ?? config.cpus;
  const pids = service.pids ?? config.pids_limit;
  const { healthcheck: check } = service;
  const time = (ms: number | undefined) => (ms === undefined ? 0 : Math.round(ms * MS_TO_NANO));
  return {
    name,
    Image: image,
    ...(service.entrypoint && { Entrypoint: service.entrypoint }),
    // A new ENTRYPOINT replaces the CMD of the image too.
    ...(service.command ? { Cmd: service.command } : service.entrypoint && { Cmd: [] }),
    Env: Object.entries(service.env).map(([key, value]) => `${key}=${value}`),
    ...(service.user !== undefined && { User: service.user }),
    ...(service.cwd !== undefined && { WorkingDir: service.cwd }),
    ...(service.hostname !== undefined && { Hostname: service.hostname }),
    ...(config.platform ? { platform: config.platform } : {}),
    Labels: { ...labelsOf(made, name), [SERVICE_LABEL]: service.name },
    Tty: service.tty,
    OpenStdin: service.stdin,
    ...(check && {
      Healthcheck: {
        Test: check.test,
        Interval: time(check.intervalMs),
        Timeout: time(check.timeoutMs),
        StartPeriod: time(check.startPeriodMs),
        Retries: check.retries ?? 0,
      },
    }),
    NetworkingConfig: { EndpointsConfig: place.endpoints },
    HostConfig: {
      ...place.host,
      Mounts: [...place.mounts],
      Init: service.init,
      SecurityOpt: ['no-new-privileges'],
      CapDrop: service.capDrop,
      CapAdd: service.capAdd,
      ReadonlyRootfs: service.readOnly,
      RestartPolicy: { Name: service.restart === 'no' ? '' : service.restart },
      Tmpfs: Object.fromEntries(service.tmpfs.map(({ path, options }) => [path, options])),
      Ulimits: service.ulimits.map(({ name: limit, soft, hard }) => ({
        Name: limit,
        Soft: soft,
        Hard: hard,
      })),
      ...(service.shmBytes !== undefined && { ShmSize: service.shmBytes }),
      ...(memory > 0 && { Memory: memory, MemorySwap: memory }),
      ...(pids > 0 && { PidsLimit: Math.round(pids) }),
      ...(cpus > 0 && { NanoCpus: Math.round(cpus * NANO) }),
      // A service that talks without end must not fill the disk of the engine.
      LogConfig: { Type: 'json-file', Config: { 'max-size': '4m', 'max-file': '2' } },
    },
  } satisfies Docker.ContainerCreateOptions;
}

async function startService(
  made: Made,
  service: Service,
  image: string,
  outside: Outside,
): Promise<Docker.Container> {
  const { docker, request, services, name } = made;
  request.signal?.throwIfAborted();
  const isInner = (network: string) => services.networks.find((one) => one.name === network)?.inner;
  // A network of the person's own is for the work alone.
  const own = outside?.network === outsideName(name) && service.networks.some((one) => !isInner(one.name));
  const place = placeOf(made, name, services, service, own ? outside : undefined);
  const called = `${name}-${service.name.replaceAll(/[^\w.-]/g, '_').slice(0, 40)}`;
  try {
    const spec = serviceSpec(made, service, image, place, called);
    const container = await daemonAnswer(docker.createContainer(spec), START_LIMIT_MS);
    await place.connect(container);
    await daemonAnswer(container.start(), START_LIMIT_MS);
    return container;
  } catch (error) {
    const { daemonGone, text } = readFault(error);
    if (daemonGone) throw error;
    throw notStarted(made, service.name, `did not start: ${text}`, error);
  }
}

const LAST_OUTPUT = 1500;

function notStarted({ request }: Pick<Made, 'request'>, service: string, what: string, cause?: unknown) {
  return new EnvironmentError('start_failed', `the service ${service} of ${request.instanceId} ${what}`, {
    evidence: { service },
    cause,
  });
}

/** `ready`: healthy where it has a check, else running. */
async function waitUntil(
  made: Made,
  service: string,
  container: Docker.Container,
  until: 'started' | 'healthy' | 'done' | 'ready',
): Promise<void> {
  const began = performance.now();
  const failed = async (what: string) => {
    const said = (await logOf(container).catch(() => '')).trim().slice(-LAST_OUTPUT);
    return notStarted(
      made,
      service,
      `${what}. ${said === '' ? 'It printed nothing' : `Its last output: ${said}`}`,
    );
  };
  for (;;) {
    made.request.signal?.throwIfAborted();
    const { State: state, Config: config } = await withDaemonRetry(() => daemonAnswer(container.inspect()));
    const { Health: health } = state;
    const check = health && health.Status !== 'none' ? health : undefined;
    const ended = !state.Running && !state.Restarting;
    if (until === 'done' && ended && state.ExitCode === 0) return;
    if (ended)
      throw await failed(
        `${until === 'done' ? 'ended' : 'is not running: it ended'} with exit code ${state.ExitCode}${state.OOMKilled ? ', out of memory' : ''}`,
      );
    if (until === 'started' && state.Running) return;
    if (until === 'ready' && state.Running && !check) return;
    if (until === 'healthy' && !check)
      throw await failed('has no healthcheck, and another one waits until it is healthy');
    if (check?.Status === 'healthy' && until !== 'done') return;
    if (check?.Status === 'unhealthy' && until !== 'done') {
      const last = check.Log?.at(-1);
      throw await failed(
        `is unhealthy: its check ended with exit code ${last?.ExitCode ?? '?'}${last?.Output ? `, and said: ${last.Output.trim().slice(-400)}` : ''}`,
      );
    }
    const limitMs =
      until === 'done' ? ENDS_WITHIN_MS : check ? healthyWithinMs(config.Healthcheck) : RUNS_WITHIN_MS;
    if (performance.now() - began > limitMs)
      throw await failed(
        `was not ${until === 'done' ? 'done' : 'ready'} within ${Math.round(limitMs / 1000)} s`,
      );
    await pause(POLL_MS, made.request.signal);
  }
}

/** As long as its checks take until the engine calls it unhealthy; Docker's own times where none are said. */
function healthyWithinMs(check: Docker.HealthConfig | undefined): number {
  const ms = (nano: number | undefined, usual: number) => (nano ? nano / MS_TO_NANO : usual);
  const each = ms(check?.Interval, 30_000) + ms(check?.Timeout, 30_000);
  return ms(check?.StartPeriod, 0) + each * ((check?.Retries || 3) + 1) + 60_000;
}

function asEnvironmentError(error: unknown, request: StartRequest): unknown {
  const { status, text } = readFault(error);
  if (error instanceof EnvironmentError || status === undefined) return error;
  const full = /address pool|non-overlapping/i.test(text);
  return new EnvironmentError(
    'start_failed',
    `the services of ${request.instanceId} did not start: ${text}${full ? '; each attempt has networks of its own: run fewer at a time (-w), or give the engine more with default-address-pools' : ''}`,
    { cause: error },
  );
}

const LOG_LINES = 2000;
/** Bytes of the log of one service. */
const LOG_KEPT = 256 * 1024;

async function logOf(container: Docker.Container): Promise<string> {
  const { Config } = await daemonAnswer(container.inspect());
  const options = { stdout: true, stderr: true, follow: false as const, tail: LOG_LINES };
  const said: Buffer = await daemonAnswer(container.logs(options));
  const parts: Buffer[] = [];
  if (Config.Tty) parts.push(said);
  else createDemux((_, data) => void parts.push(data))(said);
  return Buffer.concat(parts).subarray(-LOG_KEPT).toString('utf8');
}

/** The end of what each printed. */
async function logsOf(docker: Docker, name: string): Promise<readonly ServiceLog[]> {
  const filters = { label: [servicesLabel(name), SERVICE_LABEL] };
  const found = await daemonAnswer(docker.listContainers({ all: true, filters }));
  return Promise.all(
    found.map(async ({ Id, Labels }) => ({
      service: Labels[SERVICE_LABEL]!,
      text: await logOf(docker.getContainer(Id)),
    })),
  );
}
