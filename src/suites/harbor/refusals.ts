/** What of a Harbor task cannot be honoured here. A task that asks for it is refused before anything starts, and never run without it. */
import type { HarborTask } from './harborTask.ts';
import type { TaskToml, TomlEnvironment, TomlMcpServer, TomlStep, TomlVerifier } from './taskToml.ts';

/** `${VAR}` without a default asks for a variable of this machine, which no task gets. */
const HOST_VARIABLE = /\$\{([A-Za-z_]\w*)\}/;
const DEFAULTED = /\$\{[A-Za-z_]\w*:-([^${}]*)\}/g;

/** Values as containers get them. */
export const withDefaults = (env: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(env).map(([key, value]) => [key, value.replaceAll(DEFAULTED, (_, text: string) => text)]),
  );

function ofEnvironment(place: string, environment: TomlEnvironment): string[] {
  const { os, gpus = 0, gpu_types, tpu, skills_dir, env } = environment;
  const reasons: string[] = [];
  if (os !== 'linux') reasons.push(`${place}.os is ${os}`);
  if (gpus > 0 || gpu_types?.length) reasons.push(`${place} asks for a GPU`);
  if (tpu !== undefined) reasons.push(`${place} asks for a TPU`);
  if (skills_dir !== undefined) reasons.push(`${place}.skills_dir gives skills to the agent`);
  if (environment.memory !== undefined && environment.memory_mb !== undefined)
    reasons.push(`${place} has memory and memory_mb`);
  if (environment.storage !== undefined && environment.storage_mb !== undefined)
    reasons.push(`${place} has storage and storage_mb`);
  return [...reasons, ...ofNetwork(place, environment), ...ofVariables(`${place}.env`, env)];
}

/** Hosts that may be reached are of no use to a mode that reaches all or none: what was meant is not known. */
const ofNetwork = (
  place: string,
  { network_mode, allowed_hosts }: Pick<TomlEnvironment, 'network_mode' | 'allowed_hosts'>,
): string[] => {
  if (network_mode === 'allowlist') return [`${place}.network_mode is an allow-list of hosts`];
  return allowed_hosts?.length ? [`${place}.allowed_hosts is set without network_mode = "allowlist"`] : [];
};

const ofVariables = (place: string, env: Readonly<Record<string, string>>): string[] =>
  Object.entries(env).flatMap(([key, value]) => {
    const wanted = HOST_VARIABLE.exec(value);
    return wanted ? [`${place}.${key} wants $${wanted[1]} of this machine`] : [];
  });

function ofVerifier(place: string, verifier: TomlVerifier): string[] {
  const { environment, environment_mode, env, collect } = verifier;
  const reasons = ofNetwork(place, verifier);
  if (environment) {
    reasons.push(...ofEnvironment(`${place}.environment`, environment));
    const { mcp_servers } = environment;
    if (mcp_servers.length > 0) reasons.push(`${place}.environment.mcp_servers: a verifier has no agent`);
    if (environment_mode === 'shared')
      reasons.push(`${place}.environment_mode is shared, and ${place}.environment is set`);
  }
  reasons.push(...ofVariables(`${place}.env`, env));
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

/** The container of the steps is one: its network and the agent's user stay as they are. */
function ofStep({ name, agent, verifier, artifacts }: TomlStep, toml: TaskToml): string[] {
  const place = `step ${name}`;
  const { environment } = toml;
  const reasons = ofNetwork(`${place}.agent`, agent);
  const own = networkOf(environment, { network_mode: agent.network_mode ?? toml.agent.network_mode });
  if (own !== networkOf(environment, toml.agent)) reasons.push(`${place} has another network for its agent`);
  if (agent.user !== undefined && agent.user !== toml.agent.user)
    reasons.push(`${place} has another user for its agent`);
  return [
    ...reasons,
    ...ofVerifier(`${place}.verifier`, verifier),
    ...ofArtifacts(artifacts, verifier.collect),
  ];
}

/** All reasons, as clauses. `names`: files of the task folder below environment/, tests/ and those of steps, and conversations. */
export function refusalsOf(toml: TaskToml, names: ReadonlySet<string>): string[] {
  const { agent, verifier, environment, steps, artifacts } = toml;
  const reasons = [
    ...ofEnvironment('environment', environment),
    ...mcpRefusals(environment.mcp_servers, networkOf(environment, agent)),
    ...ofNetwork('agent', agent),
    ...ofVerifier('verifier', verifier),
    ...ofArtifacts(artifacts, verifier.collect),
    ...steps.flatMap((step) => ofStep(step, toml)),
  ];
  for (const file of names)
    if (/^(environment|tests|steps\/[^/]+\/tests)\/docker-compose\.yaml$/.test(file))
      reasons.push(`${file} asks for several containers`);
  for (const file of names)
    if (/^(steps\/[^/]+\/)?trajectory\.json$/.test(file))
      reasons.push(`${file} gives the agent an earlier conversation`);
  return reasons;
}

// MCP servers of a task: which of them an agent in the task's container can have, and why not the others.

type McpServers = NonNullable<HarborTask['mcp_servers']>;

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

function problemOf(server: TomlMcpServer, network: HarborTask['network']): string | undefined {
  const { transport, url, command, headers } = server;
  // Their values are of the machine that runs the task, which no task gets.
  if (Object.keys(headers).length > 0) return 'wants headers of this machine';
  if (transport === 'stdio') return command ? undefined : 'names no command';
  if (!url) return 'names no url';
  if (!URL.canParse(url)) return `has an address that cannot be read: ${url}`;
  const { protocol, hostname } = new URL(url);
  if (protocol !== 'http:' && protocol !== 'https:') return `is not reached by ${protocol}`;
  if (network === 'none' && !LOOPBACK.test(hostname))
    return `is at ${hostname}, which a container without network does not reach`;
  return undefined;
}

/** As clauses; none where all servers can be had. `network` is the agent's. */
function mcpRefusals(servers: readonly TomlMcpServer[], network: HarborTask['network']): string[] {
  const twice = servers.filter(({ name }, i) => servers.findIndex((one) => one.name === name) < i);
  return [
    ...twice.map(({ name }) => `environment.mcp_servers has ${name} twice`),
    ...servers.flatMap((server) => {
      const problem = problemOf(server, network);
      return problem === undefined ? [] : [`the MCP server ${server.name} ${problem}`];
    }),
  ];
}

/** Of a task that is not refused. */
export const mcpServersIn = (servers: readonly TomlMcpServer[]): McpServers =>
  servers.map(({ name, transport, url = '', command = '', args }) =>
    transport === 'stdio' ? { name, transport, command, args } : { name, transport, url },
  );

// Which network a phase of a task has.

/** The phase's own policy goes before that of its environment; the format's default is the open network. */
export function networkOf(
  { network_mode, allow_internet }: TomlEnvironment,
  phase: { network_mode?: string | undefined },
): HarborTask['network'] {
  const mode = phase.network_mode ?? network_mode ?? (allow_internet === false ? 'no-network' : 'public');
  return mode === 'public' ? 'public' : 'none';
}
