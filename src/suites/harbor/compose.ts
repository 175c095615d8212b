/**
 * environment/docker-compose.yaml of a Harbor task: the part of the Compose specification that tasks use, read here for every engine alike. A key
 * that is not taken is a reason, with the service that has it, and the task is refused: none of it runs in part.
 */

import { posix } from 'node:path';
import { z } from 'zod';
import type { WantedVariables } from '../../base/hostVariables.ts';
import { isRecord, ownEntry } from '../../base/isRecord.ts';
import type { Service, Services } from '../../base/services.ts';
import { errorText, issueText } from '../../base/text/errorText.ts';
import { shellWord } from '../../base/text/shellWord.ts';
import { parseYaml, YamlError } from '../../base/text/yaml.ts';
import {
  beside,
  both,
  declaredPorts,
  flag,
  type healthcheckSchema,
  ignored,
  type Mount,
  variablesOf,
} from './composeForms.ts';
import { askFor, interpolated, Refused, withAsked } from './composeText.ts';

export const COMPOSE_FILE = 'docker-compose.yaml';

/** The sources of an image. */
export interface ComposeBuild {
  /** The folder below the task's; '' is that itself. */
  readonly context: string;
  /** The path below the context. */
  readonly dockerfile: string;
  readonly target?: string | undefined;
  readonly args: Readonly<Record<string, string>>;
}

/** The image of a container. Neither image nor build: as the task has it without the file. */
export interface ComposeImage {
  readonly image?: string | undefined;
  readonly build?: ComposeBuild | undefined;
  /** Files of environment/ that are put into the image, in the place of mounts of the machine. */
  readonly copies: readonly { readonly from: string; readonly to: string }[];
}

export interface Compose {
  /** The agent's container: what the file says of it beside its place among the others. */
  readonly main: ComposeImage & {
    readonly env: Readonly<Record<string, string>>;
    readonly variables?: WantedVariables;
    readonly user?: string | undefined;
    readonly cwd?: string | undefined;
    readonly entrypoint?: string[] | undefined;
    readonly command?: string[] | undefined;
    /** A command that ends well once the container is ready, and how often it is asked. */
    readonly healthcheck?: MainCheck | undefined;
    readonly cpus?: number | undefined;
    readonly memoryBytes?: number | undefined;
    readonly noNetwork: boolean;
  };
  /** Absent where the file describes the agent's container alone. The images come by `images`. */
  readonly services?: Services | undefined;
  /** The images by the name of the service. */
  readonly images: ReadonlyMap<string, ComposeImage>;
  /** Fields that are left out though the file has them. */
  readonly notes: readonly string[];
}

interface MainCheck {
  readonly command: string;
  readonly interval_sec: number;
  readonly timeout_sec: number;
  readonly start_period_sec: number;
  readonly retries: number;
}

type ReadCompose =
  | { readonly ok: true; readonly compose: Compose }
  | { readonly ok: false; readonly reasons: readonly string[] };

const MAIN = 'main';
/** Stands for the image of the agent's container. */
export const MAIN_IMAGE = '@main-image';
const HOST_LOGS = '@harbor-logs-';
/** Stands for environment/, which Harbor names by its absolute path: what follows it is never read from the context of a build. */
const HOST_CONTEXT = '@harbor-context';
const ENVIRONMENT = 'environment';

/**
 * Variables that Harbor sets for the file (docker.py of harbor 0.26, and older versions); paths of its machine are known by their first character
 * again.
 */
const harborVariables = ({ image }: { readonly image: string | undefined }): Record<string, string> => ({
  MAIN_IMAGE_NAME: MAIN_IMAGE,
  ...(image !== undefined && { PREBUILT_IMAGE_NAME: MAIN_IMAGE }),
  CONTEXT_DIR: HOST_CONTEXT,
  TEST_DIR: '/tests',
  NETWORK_MODE: 'bridge',
  COMPOSE_PROJECT_NAME: 'trial',
  CPUS: '',
  MEMORY: '',
  ...Object.fromEntries(
    ['VERIFIER_LOGS', 'AGENT_LOGS', 'ARTIFACTS'].flatMap((name) => {
      const folder = name.replace('_LOGS', '').toLowerCase();
      return [
        [`HOST_${name}_PATH`, HOST_LOGS + folder],
        [`ENV_${name}_PATH`, `/logs/${folder}`],
      ];
    }),
  ),
});

/** The reasons of refusals, for the keys that people ask about. */
const WHY: Readonly<Record<string, string>> = {
  privileged: 'no container gets rights of the machine',
  cap_add: 'no container gets more rights than the usual ones',
  devices: 'no container gets devices of the machine',
  device_cgroup_rules: 'no container gets devices of the machine',
  gpus: 'GPUs are not passed on',
  pid: 'no container sees processes of others',
  ipc: 'no container shares the memory of others',
  uts: 'no container shares names of the machine',
  userns_mode: 'the engine decides which users there are',
  cgroup: 'the engine decides where limits are kept',
  cgroup_parent: 'the engine decides where limits are kept',
  extra_hosts: 'services are reached by their names; nothing of the machine is',
  dns: 'names are answered by the engine alone',
  extends: 'write the service out',
  env_file: 'write the variables below environment',
  configs: 'mount a file of environment/ read-only, or copy it in the build',
  secrets: 'mount a file of environment/ read-only, or copy it in the build',
  links: 'services reach each other by their names',
  sysctls: 'no container changes the kernel',
  runtime: 'the engine decides what runs containers',
  include: 'write the services into one file',
};

/** Capabilities that every container has by Docker's default: to add them again to what was dropped gives nothing new. */
const USUAL_CAPS: ReadonlySet<string> = new Set(
  'CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP NET_BIND_SERVICE SYS_CHROOT KILL AUDIT_WRITE'.split(
    ' ',
  ),
);
const capability = (name: string): string => name.toUpperCase().replace(/^CAP_/, '');

/** A value that asks for nothing. */
const saysNothing = (value: unknown): boolean =>
  value === null ||
  value === undefined ||
  value === false ||
  value === '' ||
  (Array.isArray(value) && value.length === 0) ||
  (isRecord(value) && Object.keys(value).length === 0);

interface ReadWith {
  /** Paths of the files below environment/. */
  readonly files: ReadonlySet<string>;
  /** Whether the task has the file, by its path below the task's folder. */
  readonly taskHas: (path: string) => boolean;
  /** `environment.docker_image` of task.toml. */
  readonly image: string | undefined;
  /** `environment.env` of task.toml. */
  readonly env: Readonly<Record<string, string>>;
}

const SERVICE_NAME = /^[A-Za-z0-9][\w.-]{0,62}$/;
const MOST_SERVICES = 50;

export function readCompose(text: string, given: ReadWith): ReadCompose {
  const reasons: string[] = [];
  const notes: string[] = [];
  const variables = { ...given.env, ...harborVariables(given) };
  let tree: unknown;
  try {
    tree = interpolated(parseYaml(text), variables, reasons);
  } catch (error) {
    if (error instanceof YamlError || error instanceof Refused)
      return { ok: false, reasons: [`cannot be read: ${errorText(error)}`] };
    throw error;
  }
  if (!isRecord(tree)) return { ok: false, reasons: ['is no section with keys'] };
  for (const [key, value] of Object.entries(tree))
    if (!['services', 'networks', 'volumes', 'version', 'name'].includes(key) && !saysNothing(value))
      reasons.push(refusedKey(key));
  const { services: written = {} } = tree;
  if (!isRecord(written) && written !== null)
    return { ok: false, reasons: ['services: must be a section with keys'] };
  const names = Object.keys(written ?? {});
  if (names.length > MOST_SERVICES) reasons.push(`has more than ${MOST_SERVICES} services`);

  const declared = {
    networks: networksIn(tree.networks, reasons),
    volumes: volumesIn(tree.volumes, reasons),
  };
  const wanted = (name: string): string | undefined =>
    Object.hasOwn(variables, name) ? variables[name] : undefined;
  const known = variablesOf(wanted) as unknown as z.ZodType<Record<string, string>>;
  const asked = variablesOf((name) => wanted(name) ?? askFor(name)) as unknown as typeof known;
  const ofBoth = both(known, asked);
  const schemas = { main: z.strictObject(ofBoth), other: z.strictObject({ ...ofBoth, ...beside }) };
  const read = new Map<string, ReadService>();
  for (const name of names) {
    const found = readService(name, (written as Record<string, unknown>)[name], schemas, reasons, notes);
    if (found) read.set(name, found);
  }
  if (reasons.length > 0) return { ok: false, reasons };
  const compose = composeOf(read, declared, given, reasons, notes);
  return reasons.length > 0 ? { ok: false, reasons } : { ok: true, compose };
}

const refusedKey = (key: string): string =>
  `${key} is not taken${ownEntry(WHY, key) === undefined ? '' : `: ${ownEntry(WHY, key)}`}`;

type ReadService = z.infer<z.ZodObject<ReturnType<typeof both>>> &
  Partial<z.infer<z.ZodObject<typeof beside>>>;

function readService(
  name: string,
  written: unknown,
  schemas: { readonly main: z.ZodObject; readonly other: z.ZodObject },
  reasons: string[],
  notes: string[],
): ReadService | undefined {
  const place = `service ${SERVICE_NAME.test(name) ? name : JSON.stringify(name.slice(0, 80))}`;
  if (!SERVICE_NAME.test(name)) {
    reasons.push(`${place} has a name that is none`);
    return undefined;
  }
  if (!isRecord(written) && written !== null) {
    reasons.push(`${place} must be a section with keys`);
    return undefined;
  }
  const schema = name === MAIN ? schemas.main : schemas.other;
  const keys = new Set(Object.keys(schema.shape));
  const taken: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(written ?? {})) {
    if (keys.has(key)) taken[key] = value;
    else if (!saysNothing(value) && !key.startsWith('x-')) reasons.push(`${place}: ${refusedKey(key)}`);
  }
  const parsed = schema.safeParse(taken);
  if (!parsed.success) {
    for (const issue of parsed.error.issues)
      reasons.push(
        issue.code === 'unrecognized_keys'
          ? `${place}: ${issue.keys.map((key) => refusedKey([...issue.path, key].join('.'))).join(', ')}`
          : `${place}: ${issue.path.join('.')} ${issueText(issue)}`,
      );
    return undefined;
  }
  const service = parsed.data as ReadService;
  if ((service.profiles ?? []).length > 0 && name !== MAIN) {
    notes.push(`${place} has a profile, so it is not started`);
    return undefined;
  }
  if (!saysNothing(service.ports))
    notes.push(`${place}: ports are reached by the other services, and by nobody else`);
  if (service.platform !== undefined) notes.push(`${place}: platform is that of environment.platform`);
  return service;
}

function networksIn(written: unknown, reasons: string[]): Map<string, { inner: boolean }> {
  const found = new Map<string, { inner: boolean }>();
  const schema = z.strictObject({
    driver: z.literal('bridge').nullable().optional(),
    internal: flag,
    enable_ipv6: z.literal(false).optional(),
    ...ignored(['name', 'attachable', 'labels']),
  });
  for (const [name, network] of Object.entries(isRecord(written) ? written : {})) {
    const taken = Object.entries(isRecord(network) ? network : {}).filter(([, value]) => !saysNothing(value));
    const parsed = schema.safeParse(Object.fromEntries(taken));
    if (parsed.success) found.set(name, { inner: parsed.data.internal });
    else reasons.push(...declaredProblems(`network ${name}`, parsed.error));
  }
  return found;
}

function volumesIn(written: unknown, reasons: string[]): Set<string> {
  const schema = z.strictObject({
    driver: z.literal('local').nullable().optional(),
    ...ignored(['name', 'labels']),
  });
  for (const [name, volume] of Object.entries(isRecord(written) ? written : {})) {
    const taken = Object.entries(isRecord(volume) ? volume : {}).filter(([, value]) => !saysNothing(value));
    const parsed = schema.safeParse(Object.fromEntries(taken));
    if (!parsed.success) reasons.push(...declaredProblems(`volume ${name}`, parsed.error));
  }
  return new Set(Object.keys(isRecord(written) ? written : {}));
}

const OF_ATTEMPT = 'each attempt has networks and volumes of its own, of the usual kind';
const declaredProblems = (place: string, { issues }: z.ZodError): string[] =>
  issues.map((issue) =>
    issue.code === 'unrecognized_keys'
      ? `${place}: ${issue.keys.join(', ')} is not taken: ${OF_ATTEMPT}`
      : `${place}: ${issue.path.join('.')} ${issueText(issue)}: ${OF_ATTEMPT}`,
  );

interface Declared {
  readonly networks: ReadonlyMap<string, { readonly inner: boolean }>;
  readonly volumes: ReadonlySet<string>;
}

const DEFAULT_NETWORK = 'default';
const OFF = 'none';

function composeOf(
  read: ReadonlyMap<string, ReadService>,
  declared: Declared,
  given: ReadWith,
  reasons: string[],
  notes: string[],
): Compose {
  const main =
    read.get(MAIN) ??
    ({
      environment: {},
      volumes: [],
      depends_on: {},
      security_opt: [],
      profiles: [],
    } as unknown as ReadService);
  const used = new Set<string>();
  const volumes = new Set<string>();
  const images = new Map<string, ComposeImage>();
  const places = new Map<string, PlacedService>();
  let own: ComposeImage = { copies: [] };
  for (const [name, service] of new Map([[MAIN, main], ...read])) {
    const say = (what: string) => void reasons.push(`service ${name}: ${what}`);
    const placed = placedOf(name, service, declared, given, say);
    for (const network of placed.networks) used.add(network.name);
    for (const volume of placed.volumes) volumes.add(volume.name);
    places.set(name, placed);
    const image = { image: service.image, build: buildOf(service, given, say), copies: placed.copies };
    if (name === MAIN) own = image;
    else images.set(name, image);
    if (name !== MAIN && service.image === undefined && !service.build) say('it has neither image nor build');
    if (service.build?.target && placed.copies.length > 0)
      say('it mounts files of environment/ over an image that is built to a target; copy them in that build');
    for (const option of service.security_opt ?? [])
      if (/^label[:=]disable$/.test(option))
        notes.push(`service ${name}: security_opt ${option} is left out: no path of the machine needs it`);
      else if (!/^no-new-privileges(?:[:=]true)?$/.test(option))
        say(`security_opt ${option} is not taken: no container gets rights of the machine`);
    for (const cap of service.cap_add ?? [])
      if (!USUAL_CAPS.has(capability(cap))) say(`cap_add ${cap} is not taken: ${WHY.cap_add}`);
  }
  const others = [...read].filter(([name]) => name !== MAIN);
  const order = inOrder(new Map([[MAIN, main], ...others]), reasons);
  const place = places.get(MAIN)!;
  // The agent's container shows what another service writes there.
  const shared = others.flatMap(([name]) => places.get(name)!.logs);
  const logVolumes = [...new Set(shared)].map((folder) => ({
    name: HOST_LOGS.slice(1) + folder,
    path: `/logs/${folder}`,
    readOnly: false,
  }));
  const isOff = place.networks.length === 0;
  const services: Services | undefined =
    others.length === 0 && place.volumes.length === 0
      ? undefined
      : {
          networks: [...used].map((name) => ({ name, inner: declared.networks.get(name)?.inner ?? false })),
          own: {
            name: MAIN,
            networks: place.networks,
            volumes: [...place.volumes, ...logVolumes],
            ...portsOf(main),
          },
          containers: order
            .filter((name) => name !== MAIN)
            .map((name) => containerOf(name, read.get(name)!, places.get(name)!, reasons)),
        };
  const check = main.healthcheck ? mainCheck(main.healthcheck) : undefined;
  const limits = limitsOf(main);
  return {
    main: {
      ...own,
      ...withAsked(main.environment),
      user: main.user,
      cwd: main.working_dir,
      entrypoint: main.entrypoint,
      command: main.command,
      healthcheck: check,
      cpus: limits.cpus,
      memoryBytes: limits.memoryBytes,
      noNetwork: isOff,
    },
    services,
    images,
    notes,
  };
}

interface PlacedService {
  readonly networks: { name: string; aliases: string[] }[];
  readonly volumes: { name: string; path: string; readOnly: boolean }[];
  readonly copies: { from: string; to: string }[];
  readonly tmpfs: { path: string; options: string }[];
  /** Folders of /logs that it has of Harbor. */
  readonly logs: string[];
}

/** Folders where nothing of others may lie: what the verifier brings, and what it says. */
const OF_THE_VERIFIER = ['/tests', '/logs/verifier', '/solution'];
const isBelow = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder === '/' ? '/' : `${folder}/`);

function placedOf(
  name: string,
  service: ReadService,
  declared: Declared,
  { files }: ReadWith,
  say: (what: string) => void,
): PlacedService {
  const placed: PlacedService = { networks: [], volumes: [], copies: [], tmpfs: [], logs: [] };
  const mode = service.network_mode;
  if (mode !== undefined && mode !== OFF && mode !== 'bridge' && mode !== DEFAULT_NETWORK)
    say(
      `network_mode ${mode} is not taken: no container has a network of the machine or of another container`,
    );
  const joined = service.networks ?? { [DEFAULT_NETWORK]: null };
  if (mode !== OFF)
    for (const [network, settings] of Object.entries(joined)) {
      if (network !== DEFAULT_NETWORK && !declared.networks.has(network))
        say(`the file has no network ${network}`);
      const aliases = [name, service.container_name, ...(settings?.aliases ?? [])];
      placed.networks.push({
        name: network,
        aliases: [...new Set(aliases.filter((one) => one !== undefined))],
      });
    }
  for (const [index, mount] of (service.volumes as readonly Mount[]).entries())
    placeMount(name, mount, index, placed, declared, files, say);
  for (const line of service.tmpfs ?? []) {
    const split = line.indexOf(':');
    const path = split < 0 ? line : line.slice(0, split);
    const options = split < 0 ? '' : line.slice(split + 1);
    if (!isTarget(path)) say(`tmpfs ${path} is no absolute path`);
    else if (!/^[\w=,%]*$/.test(options)) say(`tmpfs has the options ${options}`);
    else placed.tmpfs.push({ path, options });
  }
  return placed;
}

const isTarget = (path: string): boolean =>
  posix.isAbsolute(path) &&
  posix.normalize(path) !== '/' &&
  !path.split('/').includes('..') &&
  !/[\0\n]/.test(path);

/** Tells what is wrong with it, or where it goes. */
function placeMount(
  name: string,
  { type, source, target, read_only, tmpfs }: Mount,
  index: number,
  placed: PlacedService,
  declared: Declared,
  files: ReadonlySet<string>,
  say: (what: string) => void,
): unknown {
  const path = posix.normalize(target).replace(/\/$/, '');
  if (!isTarget(target)) return say(`it mounts at ${target}, which is no absolute path below /`);
  const logs = source?.startsWith(HOST_LOGS) ? source.slice(HOST_LOGS.length) : undefined;
  if (logs !== undefined) {
    // The agent's container has these folders, and its verifier's is nobody else's.
    if (name === MAIN) return undefined;
    if (logs === 'verifier')
      return say('it mounts the folder of the verifier, which the agent’s container alone has');
    placed.logs.push(logs);
    placed.volumes.push({ name: HOST_LOGS.slice(1) + logs, path, readOnly: read_only });
    return undefined;
  }
  if (name === MAIN && OF_THE_VERIFIER.some((folder) => isBelow(path, folder) || isBelow(folder, path)))
    return say(`it mounts at ${path}, where the verifier’s files are`);
  if (type === 'tmpfs') {
    if (name === MAIN)
      return say(`it mounts memory at ${path}, which is no part of the state that is judged`);
    const size = tmpfs?.size === undefined ? [] : [`size=${tmpfs.size}`];
    placed.tmpfs.push({
      path,
      options: [...size, ...(tmpfs?.mode === undefined ? [] : [`mode=${tmpfs.mode}`])].join(','),
    });
    return undefined;
  }
  if (type === 'volume') {
    if (source !== undefined && !declared.volumes.has(source)) return say(`the file has no volume ${source}`);
    // A volume without a name has the name of its place.
    placed.volumes.push({ name: source ?? `${name}-${index}`, path, readOnly: read_only });
    return undefined;
  }
  if (source === undefined) return say(`it mounts nothing at ${path}`);
  if (/^[/~]/.test(source)) return say(`it mounts ${source} of the machine`);
  const from = insideOf(source);
  if (from === undefined) return say(`it mounts ${shown(source)}, which is outside of environment/`);
  if (!hasPath(files, from)) return say(`it mounts ${shown(source)}, which environment/ does not have`);
  if (!read_only)
    return say(
      `it mounts ${source} to write there: what the task brings is never written to; mount it read-only (:ro)`,
    );
  placed.copies.push({ from, to: path });
  return undefined;
}

const shown = (path: string): string => path.replace(HOST_CONTEXT, ENVIRONMENT);

/** Below the task's folder, '' for that itself; undefined where it leads out. `from`: where a path without a beginning of its own begins. */
function inTask(path: string, from: string): string | undefined {
  if (posix.isAbsolute(path)) return undefined;
  const isOfHarbor = path === HOST_CONTEXT || path.startsWith(`${HOST_CONTEXT}/`);
  const whole = isOfHarbor ? ENVIRONMENT + path.slice(HOST_CONTEXT.length) : posix.join(from, path);
  const normal = posix.normalize(whole).replace(/\/$/, '');
  if (normal === '.') return '';
  return normal === '..' || normal.startsWith('../') ? undefined : normal;
}

/** The path below environment/, '' for that itself; undefined where it leads out. */
function insideOf(path: string): string | undefined {
  const found = inTask(path, ENVIRONMENT);
  if (found === ENVIRONMENT) return '';
  return found?.startsWith(`${ENVIRONMENT}/`) ? found.slice(ENVIRONMENT.length + 1) : undefined;
}

const hasPath = (files: ReadonlySet<string>, path: string): boolean => {
  if (path === '' || files.has(path)) return files.size > 0;
  for (const file of files) if (file.startsWith(`${path}/`)) return true;
  return false;
};

function buildOf(
  service: ReadService,
  { taskHas }: ReadWith,
  say: (what: string) => void,
): ComposeBuild | undefined {
  const { build } = service;
  if (!build) return undefined;
  const context = inTask(build.context, ENVIRONMENT);
  if (context === undefined) {
    say(`it is built from ${shown(build.context)}, which is outside of the task`);
    return undefined;
  }
  const path = inTask(build.dockerfile, context);
  if (path === undefined || !taskHas(path)) {
    say(
      `it is built by ${path ?? posix.join(shown(build.context), build.dockerfile)}, which the task does not have`,
    );
    return undefined;
  }
  if (context !== '' && !path.startsWith(`${context}/`)) {
    say(`it is built by ${path}, which is outside of ${context}, what it is built from`);
    return undefined;
  }
  const dockerfile = context === '' ? path : path.slice(context.length + 1);
  return { context, dockerfile, target: build.target, args: build.args };
}

/** The services, each after those that it waits for. */
function inOrder(services: ReadonlyMap<string, ReadService>, reasons: string[]): string[] {
  const order: string[] = [];
  const state = new Map<string, 'open' | 'done'>();
  const visit = (name: string, from: string): void => {
    const known = state.get(name);
    if (known === 'done') return;
    if (known === 'open') {
      reasons.push(`service ${from}: depends_on leads in a circle, through ${name}`);
      return;
    }
    state.set(name, 'open');
    for (const [other, { condition, required }] of Object.entries(services.get(name)!.depends_on)) {
      if (!services.has(other)) {
        if (required) reasons.push(`service ${name}: depends_on names ${other}, which is not there`);
      } else if (other === MAIN && condition !== 'service_started')
        reasons.push(
          `service ${name}: it waits until main is ${condition}, and only its start can be waited for`,
        );
      else visit(other, name);
    }
    state.set(name, 'done');
    order.push(name);
  };
  for (const name of services.keys()) visit(name, name);
  return order;
}

function limitsOf({ deploy, cpus, mem_limit, pids_limit }: ReadService) {
  const limits = deploy?.resources?.limits;
  return {
    cpus: limits?.cpus ?? cpus,
    memoryBytes: limits?.memory ?? mem_limit,
    pids: limits?.pids ?? pids_limit,
  };
}

type ReadCheck = z.infer<typeof healthcheckSchema>;

function checkOf(check: ReadCheck | null | undefined): Service['healthcheck'] {
  if (!check) return undefined;
  const { test, disable, interval, timeout, start_period, retries } = check;
  const times = { intervalMs: interval, timeoutMs: timeout, startPeriodMs: start_period, retries };
  if (disable) return { test: ['NONE'] };
  return { test: typeof test === 'string' ? ['CMD-SHELL', test] : (test ?? []), ...times };
}

/** Of the agent's container, whose first process is ours: asked once, as the task's own check is. The times are Docker's where none are said. */
function mainCheck(check: ReadCheck): MainCheck | undefined {
  const { test, intervalMs = 30_000, timeoutMs = 30_000, startPeriodMs = 0, retries = 3 } = checkOf(check)!;
  const [kind, ...rest] = test;
  if (kind === undefined || kind === 'NONE') return undefined;
  return {
    command: kind === 'CMD-SHELL' ? rest.join(' ') : rest.map(shellWord).join(' '),
    interval_sec: intervalMs / 1000,
    timeout_sec: timeoutMs / 1000,
    start_period_sec: startPeriodMs / 1000,
    retries: Math.max(1, retries),
  };
}

const UNTIL = {
  service_started: 'started',
  service_healthy: 'healthy',
  service_completed_successfully: 'done',
} as const;

function portsOf({ ports, expose }: ReadService): Pick<Service, 'ports'> {
  const declared = declaredPorts(ports, expose);
  return declared.length > 0 ? { ports: declared } : {};
}

/** The caller adds `image`: it knows the names of the task's images. */
function containerOf(name: string, service: ReadService, placed: PlacedService, reasons: string[]): Service {
  const { entrypoint, command, environment, user, working_dir, hostname, healthcheck, depends_on } = service;
  const {
    restart,
    ulimits,
    init,
    tty,
    stdin_open,
    read_only,
    shm_size,
    cap_drop = [],
    cap_add = [],
  } = service;
  const after = Object.entries(depends_on).map(([other, { condition }]) => ({
    service: other,
    until: UNTIL[condition],
  }));
  const again = restart === undefined || restart === false ? 'no' : restart.split(':')[0]!;
  const known = ['no', 'always', 'on-failure', 'unless-stopped'] as const;
  const policy = known.find((one) => one === again);
  if (policy === undefined) reasons.push(`service ${name}: restart ${again} is none of ${known.join(', ')}`);
  const [check] = [checkOf(healthcheck)];
  if (check && !['NONE', 'CMD', 'CMD-SHELL', undefined].includes(check.test[0]))
    reasons.push(`service ${name}: healthcheck.test begins with none of CMD, CMD-SHELL and NONE`);
  return {
    name,
    image: '',
    networks: placed.networks,
    volumes: placed.volumes,
    ...portsOf(service),
    entrypoint,
    command,
    ...withAsked(environment),
    user,
    cwd: working_dir,
    hostname,
    healthcheck: check,
    after,
    ...limitsOf(service),
    shmBytes: shm_size,
    tmpfs: placed.tmpfs,
    ulimits: Object.entries(ulimits ?? {}).map(([limit, values]) => ({ name: limit, ...values })),
    restart: policy ?? 'no',
    capDrop: cap_drop.map(capability),
    capAdd: cap_add.map(capability),
    init,
    tty,
    stdin: stdin_open,
    readOnly: read_only ?? false,
  };
}
