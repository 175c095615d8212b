/** The agent that an arm names: which version it means, whether it is here, and what containers get of it. */
import { agentNamed, parseAgentSpec } from '../../agent/agents.ts';
import type { AgentKind, AgentProblem } from '../../agent/contract.ts';
import { environmentKindOf, environmentKinds } from '../../environment/environments.ts';
import type { Program } from '../../environment/programs/program.ts';
import { cloudNameOf, dialectNameOf } from '../../model/names.ts';
import { isFreeName } from '../../model/prices.ts';
import type { Variables } from '../caller.ts';
import type { ArmConfig } from '../plan/planRecord.ts';
import { type AddedAgent, addedAgents, addedName, agentCacheDir, cachedProgram } from './agentCache.ts';

type Named = Pick<ArmConfig, 'agent' | 'environment' | 'model' | 'gateway'>;

function versionsOf(agentClass: string, env: Variables): AddedAgent[] {
  const spec = parseAgentSpec(agentClass);
  if (!spec) return [];
  const { agent, version } = spec;
  return addedAgents(agentCacheDir(env)).filter(
    (added) => added.agent === agent && (version === undefined || added.version === version),
  );
}

/** A run is of one version: a name without one gets that of the agent that was added, where there is one only. */
export function withVersion<T extends Pick<ArmConfig, 'agent'>>(arm: T, env: Variables): T {
  const [only, ...more] = versionsOf(arm.agent.agent_class, env);
  if (!only || more.length > 0) return arm;
  return { ...arm, agent: { ...arm.agent, agent_class: addedName(only) } };
}

/** undefined for agents that bring nothing. */
export function armProgram(agentClass: string, env: Variables): Program | undefined {
  const [added] = versionsOf(agentClass, env);
  return added && cachedProgram(agentCacheDir(env), added);
}

/** What keeps an agent that is a program from working; null also for the others. */
export async function agentProblem(arm: Named, env: Variables): Promise<AgentProblem | null> {
  const kind = await agentNamed(arm.agent.agent_class);
  if (kind?.dialect === undefined) return null;
  const lacks = kind.missing?.(arm.agent) ?? (kind.packages ? notAdded(arm, env) : null);
  return lacks ?? wrongPlace(arm, kind) ?? wrongModel(arm, kind);
}

function notAdded({ agent: { agent_class: name } }: Named, env: Variables): AgentProblem | null {
  const found = versionsOf(name, env);
  if (found.length === 1) return null;
  if (found.length > 1)
    return {
      message: `${name} was added in several versions: ${found.map(addedName).join(', ')}`,
      fix: 'name one in agent.agent_class',
    };
  return {
    message: `${name} was not added`,
    fix: `swebatch agents add ${name.includes('@') ? name : `${name}@VERSION`}`,
  };
}

function wrongPlace({ agent, environment }: Named, { packages }: AgentKind): AgentProblem | null {
  const { bringsPrograms, listens } = environmentKindOf(environment);
  if (bringsPrograms || (listens && !packages)) return null;
  const able = environmentKinds.filter((kind) => kind.bringsPrograms);
  return {
    message: `${agent.agent_class} works in ${able.map(({ title }) => title).join(' and ')}, and not in ${environment.environment_class}`,
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
  const cloud = cloudNameOf(model);
  if (cloud !== undefined)
    return {
      message: `${name} writes its own requests, which do not carry the credentials of ${cloud}`,
      fix: "name the maker's own address, or a gateway in front of the cloud (litellm_proxy/NAME)",
    };
  const spoken = dialectNameOf(model);
  if (dialect === null || dialect === spoken || gateway?.translate === true) return null;
  return {
    message: `${name} speaks ${dialect}, and the model is asked in ${spoken}`,
    fix: `set model.dialect: ${dialect} where the provider speaks it too, or gateway.translate: true`,
  };
}
