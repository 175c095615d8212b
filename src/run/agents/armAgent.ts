/** The agent that an arm names: which version it means, whether it is here, and what containers get of it. */
import { agentNamed, parseAgentSpec, parseProgram, refusalOfServers } from '../../agent/agents.ts';
import type { AgentKind, AgentProblem } from '../../agent/contract.ts';
import { namesEquipment } from '../../agent/equipment.ts';
import { isAllowList, reaches } from '../../base/allowList.ts';
import { isOwnLoopback } from '../../base/mcpServer.ts';
import { environmentKindOf, environmentKinds } from '../../environment/environments.ts';
import type { Program } from '../../environment/programs/program.ts';
import { namedModel } from '../../model/names.ts';
import { isFreeName } from '../../model/prices.ts';
import type { Variables } from '../caller.ts';
import type { ArmConfig } from '../plan/planRecord.ts';
import { type AddedAgent, addedAgents, addedName, agentCacheDir, cachedProgram } from './agentCache.ts';

type Named = Pick<ArmConfig, 'agent' | 'environment' | 'model' | 'gateway'>;

type NamedAgent = Pick<ArmConfig['agent'], 'agent_class' | 'program'>;

function versionsOf({ agent_class, program }: NamedAgent, env: Variables): AddedAgent[] {
  const spec = program === undefined ? parseAgentSpec(agent_class) : parseProgram(program);
  if (!spec) return [];
  const { agent, version } = spec;
  return addedAgents(agentCacheDir(env)).filter(
    (added) => added.agent === agent && (version === undefined || added.version === version),
  );
}

/** A run is of one version: a name without one gets that of the agent that was added, where there is one only. */
export function withVersion<T extends Pick<ArmConfig, 'agent'>>(arm: T, env: Variables): T {
  const [only, ...more] = versionsOf(arm.agent, env);
  if (!only || more.length > 0) return arm;
  const named = addedName(only);
  const pinned = arm.agent.program === undefined ? { agent_class: named } : { program: named };
  return { ...arm, agent: { ...arm.agent, ...pinned } };
}

/** undefined for agents that bring nothing. */
export function armProgram(agent: NamedAgent, env: Variables): Program | undefined {
  const [added] = versionsOf(agent, env);
  return added && cachedProgram(agentCacheDir(env), added);
}

/** The parts of an agent that was added, for the record; null for agents that bring nothing. */
export function broughtBy(agent: NamedAgent, env: Variables) {
  const [added] = versionsOf(agent, env);
  if (!added) return null;
  return {
    name: addedName(added),
    packages: added.variants.flatMap(({ libc, packages }) =>
      packages.map(({ name, version, integrity }) => ({ libc, name, version, integrity })),
    ),
    ...(added.program && { source: added.program.source, contains: added.program.contains }),
  };
}

/** The problem that keeps an agent's program from working; null also for agents that are none. */
export async function agentProblem(arm: Named, env: Variables): Promise<AgentProblem | null> {
  const { program, agent_class: name } = arm.agent;
  const kind = await agentNamed(name);
  if (program !== undefined && !kind?.takesProgram)
    return {
      message: `agent.program has no effect on ${name}`,
      fix: 'leave it out, or say in agent.command how the program is started and set agent_class accordingly',
    };
  const unequipped = await equipmentProblem(arm, kind);
  if (unequipped || kind?.dialect === undefined) return unequipped;
  const brings = kind.packages !== undefined || program !== undefined;
  const lacks = kind.missing?.(arm.agent) ?? (brings ? notAdded(arm, env) : null);
  return lacks ?? wrongPlace(arm, kind) ?? wrongModel(arm, kind);
}

/** The reason why an agent cannot have what its arm gives it. A module of the user's looks itself at what it gets. */
async function equipmentProblem(
  { agent, environment }: Named,
  kind: AgentKind | undefined,
): Promise<AgentProblem | null> {
  const { agent_class: name, command, mcp_servers: servers = [] } = agent;
  for (const what of ['skills', 'instructions'] as const) {
    if (agent[what] === undefined || !kind) continue;
    if (kind.equipment === undefined)
      return { message: `agent.${what} has no effect on ${name}`, fix: 'leave it out' };
    if (kind.equipment === 'named' && !namesEquipment(command, what))
      return {
        message: `nobody knows where ${name} looks for agent.${what}`,
        fix: `say in agent.command where they go: {{${what}}} is their place in the container`,
      };
  }
  const refused = await refusalOfServers(name, servers);
  if (refused !== undefined)
    return { message: `${refused} (agent.mcp_servers)`, fix: 'leave them out, or name another agent' };
  const twice = servers.find(({ name: one }, k) => servers.findIndex((other) => other.name === one) < k);
  if (twice)
    return { message: `agent.mcp_servers has ${twice.name} twice`, fix: 'give each server its own name' };
  const away = servers.find((server) => 'url' in server && !isOwnLoopback(server.url));
  if (!away || !('url' in away)) return null;
  const { network } = environment;
  if (isAllowList(network) ? reaches(network, away.url) : network !== 'none') return null;
  return {
    message: `the server ${away.name} of agent.mcp_servers is at an address that a container without network does not reach`,
    fix: 'start it in the container (transport: stdio), or leave it out',
  };
}

function notAdded({ agent }: Named, env: Variables): AgentProblem | null {
  const { agent_class, program } = agent;
  const name = program ?? agent_class;
  const found = versionsOf(agent, env);
  if (found.length === 1) return null;
  if (found.length > 1)
    return {
      message: `${name} was added in several versions: ${found.map(addedName).join(', ')}`,
      fix: `name one in agent.${program === undefined ? 'agent_class' : 'program'}`,
    };
  if (program !== undefined)
    return {
      message: `the program ${name} was not added`,
      fix: `swebatch agents add ${parseProgram(name).agent} SOURCE, for example npm:PACKAGE@1.2.3`,
    };
  return {
    message: `${name} was not added`,
    fix: `swebatch agents add ${name.includes('@') ? name : `${name}@VERSION`}`,
  };
}

function wrongPlace({ agent, environment }: Named, { packages }: AgentKind): AgentProblem | null {
  const { bringsPrograms, listens } = environmentKindOf(environment).capabilities;
  if (bringsPrograms || (listens && !packages && agent.program === undefined)) return null;
  const able = environmentKinds.filter(({ capabilities }) => capabilities.bringsPrograms);
  return {
    message: `${agent.program ?? agent.agent_class} works in ${able.map(({ title }) => title).join(' and ')}, and not in ${environment.environment_class}`,
    fix: `set environment.environment_class: ${able.map(({ name }) => name).join(', or ')}`,
  };
}

function wrongModel({ agent, model, gateway }: Named, { dialect = null }: AgentKind): AgentProblem | null {
  const { agent_class: name } = agent;
  // The recording says what it speaks.
  if (model.model_name?.startsWith('replay:')) return null;
  if (isFreeName(model.model_name) || model.model_class !== 'openai')
    return {
      message: `${name} asks a provider, and ${model.model_name ?? model.model_class} has none behind it`,
      fix: 'name a model of a provider',
    };
  const cloud = namedModel(model).provider?.cloud;
  if (cloud !== undefined)
    return {
      message: `${name} writes its own requests, which do not carry the credentials of ${cloud}`,
      fix: "name the maker's own address, or a gateway in front of the cloud (litellm_proxy/NAME)",
    };
  const spoken = namedModel(model).dialect;
  if (dialect === null || dialect === spoken || gateway?.translate === true) return null;
  return {
    message: `${name} speaks ${dialect}, and the model is asked in ${spoken}`,
    fix: `set model.dialect: ${dialect} where the provider speaks it too, or gateway.translate: true`,
  };
}
