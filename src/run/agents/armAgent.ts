/** The agent that an arm names: which version it means, whether it is here, and what containers get of it. */
import { parseAgentSpec } from '../../agent/installed/agentPackages.ts';
import { installedProgram } from '../../agent/installed/programs.ts';
import type { Program } from '../../environment/programs/program.ts';
import { cloudOf } from '../../model/clouds/chooseCloud.ts';
import { dialectOf } from '../../model/dialects/choose.ts';
import { isFreeName } from '../../model/prices.ts';
import type { Variables } from '../caller.ts';
import type { ArmConfig } from '../plan/planRecord.ts';
import { type AddedAgent, addedAgents, agentCacheDir, nameOf, programOf } from './agentCache.ts';

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
  return { ...arm, agent: { ...arm.agent, agent_class: nameOf(only) } };
}

/** undefined for agents that bring nothing. */
export function armProgram(agentClass: string, env: Variables): Program | undefined {
  const [added] = versionsOf(agentClass, env);
  return added && programOf(agentCacheDir(env), added);
}

export interface AgentProblem {
  readonly message: string;
  readonly fix: string;
}

/** What keeps an installed agent from working; null also for the others. */
export function installedAgentProblem(arm: Named, env: Variables): AgentProblem | null {
  const program = installedProgram(arm.agent.agent_class);
  if (!program) return null;
  return missing(arm, env) ?? wrongPlace(arm) ?? wrongModel(arm, program.dialect);
}

function missing({ agent: { agent_class: name, command } }: Named, env: Variables): AgentProblem | null {
  if (name === 'command')
    return command === undefined
      ? {
          message: 'agent_class command needs a shell line',
          fix: "set agent.command, for example 'my-agent {{task}}'",
        }
      : null;
  const found = versionsOf(name, env);
  if (found.length === 1) return null;
  if (found.length > 1)
    return {
      message: `${name} was added in several versions: ${found.map(nameOf).join(', ')}`,
      fix: 'name one in agent.agent_class',
    };
  return {
    message: `${name} was not added`,
    fix: `swebatch agents add ${name.includes('@') ? name : `${name}@VERSION`}`,
  };
}

function wrongPlace({ agent, environment }: Named): AgentProblem | null {
  const { environment_class: place } = environment;
  if (place === 'docker' || place === 'kubernetes') return null;
  if (place === 'local' && agent.agent_class === 'command') return null;
  return {
    message: `${agent.agent_class} works in Docker and Kubernetes, and not in ${place}`,
    fix: 'set environment.environment_class: docker, or kubernetes',
  };
}

function wrongModel({ agent, model, gateway }: Named, dialect: string | null): AgentProblem | null {
  const { agent_class: name } = agent;
  // The recording says what it speaks.
  if (model.model_name?.startsWith('replay:')) return null;
  if (isFreeName(model.model_name) || model.model_class !== 'openai')
    return {
      message: `${name} asks a provider, and ${model.model_name ?? model.model_class} has none behind it`,
      fix: 'name a model of a provider',
    };
  const cloud = cloudOf(model);
  if (cloud)
    return {
      message: `${name} writes its own requests, which do not carry the credentials of ${cloud.name}`,
      fix: "name the maker's own address, or a gateway in front of the cloud (litellm_proxy/NAME)",
    };
  const spoken = dialectOf(model).name;
  if (dialect === null || dialect === spoken || gateway?.translate === true) return null;
  return {
    message: `${name} speaks ${dialect}, and the model is asked in ${spoken}`,
    fix: `set model.dialect: ${dialect} where the provider speaks it too, or gateway.translate: true`,
  };
}
