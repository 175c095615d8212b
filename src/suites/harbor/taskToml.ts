/** task.toml of a Harbor task, schema 1.4 and older: every key that the format has. Keys that it does not have are told and left out. */
import { parse, TomlError } from 'smol-toml';
import { z } from 'zod';
import { allowListProblems, type Network, reaches, sameNetwork } from '../../base/allowList.ts';
import { isOwnLoopback } from '../../base/mcpServer.ts';
import { errorText, issueText } from '../../base/text/errorText.ts';
import type { Compose } from './compose.ts';

/** Newest schema whose keys are read here. */
const SCHEMA = 1.4;

// Names of steps are names of folders, also on file systems that know no case: the rules are Harbor's.
const INVALID = /[<>:"/\\|?*\u0000-\u001f\u007f]/;
const DEVICE = /^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[1-9¹²³])$/i;
const MOST_BYTES = 255;

const isStepName = (name: string): boolean =>
  name.trim() !== '' &&
  !/[. ]$/.test(name) &&
  !INVALID.test(name) &&
  !DEVICE.test(name.split('.')[0]!.trimEnd()) &&
  Buffer.byteLength(name) <= MOST_BYTES;

/** Two names with one key are one folder somewhere. */
const stepKey = (name: string): string => name.normalize('NFC').toLowerCase();

const name = z.string().min(1);
const count = z.number().min(0);
const user = z.union([z.string(), z.number().int()]).transform(String);
const variables = z.record(z.string(), z.string());
const policy = {
  network_mode: z.enum(['no-network', 'public', 'allowlist']).optional(),
  allowed_hosts: z.array(z.string()).optional(),
};
const healthcheckSchema = z.strictObject({
  command: name,
  interval_sec: count.default(5),
  timeout_sec: count.default(30),
  start_period_sec: count.default(0),
  start_interval_sec: count.default(5),
  retries: z.number().int().min(1).default(3),
});
/** The names are parts of the names of tools, which programs and providers keep to these characters. */
const mcpServerSchema = z.strictObject({
  name: z.string().regex(/^[\w-]+$/, 'must be letters, digits, "_" and "-"'),
  transport: z
    .enum(['stdio', 'sse', 'streamable-http', 'http'])
    .default('sse')
    .transform((transport) => (transport === 'http' ? 'streamable-http' : transport)),
  url: z.string().optional(),
  command: z.string().optional(),
  args: z.array(z.string()).default([]),
  headers: variables.default({}),
});
const environmentSchema = z.strictObject({
  ...policy,
  build_timeout_sec: count.default(600),
  docker_image: name.optional(),
  os: z.string().toLowerCase().default('linux'),
  cpus: count.optional(),
  memory_mb: count.optional(),
  storage_mb: count.optional(),
  memory: z.string().optional(),
  storage: z.string().optional(),
  gpus: count.optional(),
  gpu_types: z.array(z.string()).optional(),
  tpu: z.unknown().optional(),
  mcp_servers: z.array(mcpServerSchema).default([]),
  env: variables.default({}),
  skills_dir: z.string().optional(),
  healthcheck: healthcheckSchema.optional(),
  workdir: name.optional(),
  allow_internet: z.boolean().optional(),
});
const agentSchema = z.strictObject({ ...policy, timeout_sec: count.optional(), user: user.optional() });
const collectSchema = z.strictObject({
  command: name,
  service: z.string().default('main'),
  timeout_sec: count.default(60),
  user: user.optional(),
});
const verifierSchema = z.strictObject({
  ...policy,
  timeout_sec: count.default(600),
  env: variables.default({}),
  user: user.optional(),
  environment_mode: z.enum(['shared', 'separate']).optional(),
  environment: environmentSchema.optional(),
  collect: z.array(collectSchema).default([]),
});
/** A path alone is short for a table with it. Not a union: that would hide which key of the table is not known. */
const artifactSchema = z.preprocess(
  (value) => (typeof value === 'string' ? { source: value } : value),
  z.strictObject({
    source: name,
    destination: z.string().optional(),
    exclude: z.array(z.string()).default([]),
    service: z.string().default('main'),
  }),
);
const artifactsSchema = z.array(artifactSchema).default([]);
const stepSchema = z.strictObject({
  name: z.string().refine(isStepName, 'is no name of a folder'),
  agent: agentSchema.prefault({}),
  verifier: verifierSchema.prefault({}),
  /** The least reward, below which the steps that follow are not begun; a number is that of "reward". */
  min_reward: z.union([z.number(), z.record(z.string(), z.number())]).optional(),
  healthcheck: healthcheckSchema.optional(),
  artifacts: artifactsSchema,
});
const tomlSchema = z.strictObject({
  schema_version: z.string().default(String(SCHEMA)),
  version: z.string().optional(),
  task: z
    .strictObject({
      name: z.string().optional(),
      version: z.string().optional(),
      description: z.string().default(''),
      authors: z.array(z.unknown()).default([]),
      keywords: z.array(z.string()).default([]),
    })
    .optional(),
  metadata: z.record(z.string(), z.unknown()).default({}),
  verifier: verifierSchema.prefault({}),
  agent: agentSchema.prefault({}),
  environment: environmentSchema.prefault({}),
  solution: z.strictObject({ env: variables.default({}) }).prefault({}),
  source: z.string().optional(),
  multi_step_reward_strategy: z.enum(['mean', 'final']).optional(),
  steps: z
    .array(stepSchema)
    .refine(
      (steps) => new Set(steps.map(({ name }) => stepKey(name))).size === steps.length,
      'have one name twice',
    )
    .default([]),
  artifacts: artifactsSchema,
});
export type TaskToml = z.infer<typeof tomlSchema>;
export type TomlStep = z.infer<typeof stepSchema>;
export type TomlVerifier = z.infer<typeof verifierSchema>;
export type TomlEnvironment = z.infer<typeof environmentSchema>;
type TomlMcpServer = z.infer<typeof mcpServerSchema>;

type ReadToml =
  | { readonly ok: true; readonly toml: TaskToml; readonly warnings: readonly string[] }
  | { readonly ok: false; readonly reason: string };

type Tree = Record<string, unknown>;

/** Takes the key of a path out of a tree; true when it was there. */
function removeKey(tree: unknown, path: readonly PropertyKey[], key: string): boolean {
  let place = tree as Tree | undefined;
  for (const part of path) place = place?.[String(part)] as Tree | undefined;
  return place !== undefined && Reflect.deleteProperty(place, key);
}

export function readTaskToml(text: string): ReadToml {
  let tree: unknown;
  try {
    tree = parse(text);
  } catch (error) {
    // The library draws the place over several lines; the first says what is wrong.
    const where = error instanceof TomlError ? ` at line ${error.line}, column ${error.column}` : '';
    return { ok: false, reason: `task.toml cannot be read: ${errorText(error).split('\n')[0]}${where}` };
  }
  const warnings: string[] = [];
  let read = tomlSchema.safeParse(tree);
  for (const issue of read.error?.issues ?? [])
    if (issue.code === 'unrecognized_keys')
      for (const key of issue.keys)
        if (removeKey(tree, issue.path, key))
          warnings.push(`task.toml has a key that is not known here: ${[...issue.path, key].join('.')}`);
  if (warnings.length > 0) read = tomlSchema.safeParse(tree);
  if (!read.success) {
    const [issue] = read.error.issues;
    return { ok: false, reason: `task.toml: ${issue!.path.join('.') || 'the file'}: ${issueText(issue!)}` };
  }
  const { version, schema_version } = read.data;
  const stated = Number(version ?? schema_version);
  if (stated > SCHEMA) warnings.push(`task.toml says schema ${stated}; this program knows up to ${SCHEMA}`);
  return { ok: true, toml: read.data, warnings };
}

// Wishes of a task that cannot be honoured here. A task that has one is refused before anything starts, and never run without it.

/** A template as Harbor reads it (harbor/utils/env.py): nothing but `${NAME}` or `${NAME:-default}`. Any other value is what it says. */
const TEMPLATE = /^\$\{([^}:]+)(?::-(.*))?\}$/;

/** Variables that are known before anybody gives one of this machine: defaults and literals of `env`. */
export function readEnv(env: Readonly<Record<string, string>>): {
  readonly env: Record<string, string>;
  /** Absent where it wants none. */
  readonly variables?: Record<string, string>;
} {
  const known: [string, string][] = [];
  const wanted: [string, string][] = [];
  for (const [key, value] of Object.entries(env)) {
    const [, name, text = name === undefined ? value : undefined] = TEMPLATE.exec(value) ?? [];
    if (name !== undefined) wanted.push([key, name]);
    if (text !== undefined) known.push([key, text]);
  }
  return {
    env: Object.fromEntries(known),
    ...(wanted.length > 0 && { variables: Object.fromEntries(wanted) }),
  };
}

function ofEnvironment(place: string, environment: TomlEnvironment): string[] {
  const { os, tpu } = environment;
  const reasons: string[] = [];
  if (os !== 'linux') reasons.push(`${place}.os is ${os}`);
  if (tpu !== undefined) reasons.push(`${place} asks for a TPU`);
  if (environment.memory !== undefined && environment.memory_mb !== undefined)
    reasons.push(`${place} has memory and memory_mb`);
  if (environment.storage !== undefined && environment.storage_mb !== undefined)
    reasons.push(`${place} has storage and storage_mb`);
  return [...reasons, ...ofNetwork(place, environment)];
}

/** Hosts that may be reached are of no use to a mode that reaches all or none: what was meant is not known. */
const ofNetwork = (
  place: string,
  { network_mode, allowed_hosts }: Pick<TomlEnvironment, 'network_mode' | 'allowed_hosts'>,
): string[] => {
  if (network_mode === 'allowlist')
    return allowListProblems(allowed_hosts ?? []).map((problem) => `${place}.allowed_hosts: ${problem}`);
  return allowed_hosts?.length ? [`${place}.allowed_hosts is set without network_mode = "allowlist"`] : [];
};

function ofVerifier(place: string, verifier: TomlVerifier): string[] {
  const { environment, environment_mode, collect } = verifier;
  const reasons = ofNetwork(place, verifier);
  if (environment) {
    reasons.push(...ofEnvironment(`${place}.environment`, environment));
    const { mcp_servers, skills_dir } = environment;
    if (mcp_servers.length > 0) reasons.push(`${place}.environment.mcp_servers: a verifier has no agent`);
    if (skills_dir !== undefined) reasons.push(`${place}.environment.skills_dir: a verifier has no agent`);
    if (environment_mode === 'shared')
      reasons.push(`${place}.environment_mode is shared, and ${place}.environment is set`);
  }
  if ([verifier, ...collect].some(({ user }) => user !== undefined && /^[1-9]\d*$/.test(user)))
    reasons.push(`the user of the ${place} is a number`);
  return reasons;
}

function ofArtifacts(artifacts: TaskToml['artifacts'], collect: TomlVerifier['collect']): string[] {
  const reasons: string[] = [];
  if (artifacts.some(({ exclude }) => exclude.some((pattern) => /[*?[]/.test(pattern))))
    reasons.push('an artifact leaves files out by a pattern');
  if ([...artifacts, ...collect].some(({ service }) => service !== undefined && service !== 'main'))
    reasons.push('it collects from other services than main');
  if (artifacts.some(({ source }) => source.split('/').includes('..')))
    reasons.push('the source of an artifact has the part ".."');
  return reasons;
}

/** The container of the steps is one: the agent's user stays as it is, and so does its network, where no list decides what it reaches. */
function ofStep({ name, agent, verifier, artifacts }: TomlStep, toml: TaskToml): string[] {
  const place = `step ${name}`;
  const { environment } = toml;
  const reasons = ofNetwork(`${place}.agent`, agent);
  const [own, first] = [networkOfStep(toml, agent), networkOf(environment, toml.agent)];
  if (!sameNetwork(own, first) && (own === 'public' || first === 'public'))
    reasons.push(`${place} has another network for its agent`);
  if (agent.user !== undefined && agent.user !== toml.agent.user)
    reasons.push(`${place} has another user for its agent`);
  return [
    ...reasons,
    ...ofVerifier(`${place}.verifier`, verifier),
    ...ofArtifacts(artifacts, verifier.collect),
  ];
}

/** All reasons, as clauses. `names`: files of the task folder below environment/, tests/ and those of steps, and conversations. */
export function tomlRefusals(toml: TaskToml, names: ReadonlySet<string>, compose?: Compose): string[] {
  const { agent, verifier, environment, steps, artifacts } = toml;
  const reasons = [
    ...ofEnvironment('environment', environment),
    ...mcpRefusals(environment.mcp_servers, networkOf(environment, agent), reachedIn(compose)),
    ...ofNetwork('agent', agent),
    ...ofVerifier('verifier', verifier),
    ...ofArtifacts(artifacts, verifier.collect),
    ...steps.flatMap((step) => ofStep(step, toml)),
  ];
  for (const file of names)
    if (/^(tests|steps\/[^/]+\/tests)\/docker-compose\.yaml$/.test(file))
      reasons.push(`${file} asks for several containers for a verifier`);
  if (steps.length > 0 && compose?.services) reasons.push('it has several steps, and services beside them');
  for (const file of names)
    if (/^(steps\/[^/]+\/)?trajectory\.json$/.test(file))
      reasons.push(`${file} gives the agent an earlier conversation`);
  return reasons;
}

// MCP servers of a task: which of them an agent in the task's container can have, and why not the others.

function problemOf(
  server: TomlMcpServer,
  network: Network,
  reached: ReadonlySet<string>,
): string | undefined {
  const { transport, url, command, headers } = server;
  // Values of headers are of the machine that runs the task, and no task gets them.
  if (Object.keys(headers).length > 0) return 'wants headers of this machine';
  if (transport === 'stdio') return command ? undefined : 'names no command';
  if (!url) return 'names no url';
  if (!URL.canParse(url)) return `has an address that cannot be read: ${url}`;
  const { protocol, hostname } = new URL(url);
  if (protocol !== 'http:' && protocol !== 'https:') return `is not reached by ${protocol}`;
  if (!isOwnLoopback(url) && !reached.has(hostname) && !reaches(network, url))
    return `is at ${hostname}, which a container without network does not reach`;
  return undefined;
}

/** Names of the services beside the agent's container. */
const reachedIn = (compose: Compose | undefined): ReadonlySet<string> =>
  new Set(
    compose?.services?.containers.flatMap(({ networks }) =>
      networks.flatMap(({ aliases }) => aliases.map((alias) => alias.toLowerCase())),
    ),
  );

/** The refusals as clauses; none where all servers can be had. `network` is the agent's. */
function mcpRefusals(
  servers: readonly TomlMcpServer[],
  network: Network,
  reached: ReadonlySet<string>,
): string[] {
  const twice = servers.filter(({ name }, i) => servers.findIndex((one) => one.name === name) < i);
  return [
    ...twice.map(({ name }) => `environment.mcp_servers has ${name} twice`),
    ...servers.flatMap((server) => {
      const problem = problemOf(server, network, reached);
      return problem === undefined ? [] : [`the MCP server ${server.name} ${problem}`];
    }),
  ];
}

/** The servers of a task that is not refused. */
export const mcpServersIn = (servers: readonly TomlMcpServer[]) =>
  servers.map(({ name, transport, url = '', command = '', args }) =>
    transport === 'stdio' ? { name, transport, command, args } : { name, transport, url },
  );

// Which network a phase of a task has.

type Policy = Pick<TomlEnvironment, 'network_mode' | 'allowed_hosts'>;

/**
 * The phase's own policy goes before that of its environment, as a whole: its hosts alone count (harbor 0.26, trial/network_policy.py). The
 * format's default is the open network.
 */
export function networkOf(environment: TomlEnvironment, phase: Policy = {}): Network {
  const { network_mode, allowed_hosts }: Policy = phase.network_mode === undefined ? environment : phase;
  const mode = network_mode ?? (environment.allow_internet === false ? 'no-network' : 'public');
  if (mode === 'allowlist') return { allow: allowed_hosts ?? [] };
  return mode === 'public' ? 'public' : 'none';
}

/** The network of the agent of a step. */
export const networkOfStep = (
  { environment, agent }: Pick<TaskToml, 'environment' | 'agent'>,
  own: Policy,
): Network => networkOf(environment, own.network_mode === undefined ? agent : own);
