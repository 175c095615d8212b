/** Clauses that say why a task cannot run here, or gets no verdict; checks.ts asks for them. */

import type { AgentConfig } from '../../agent/agentConfig.ts';
import { agentNamed, nameWithoutModel } from '../../agent/agents.ts';
import { namesEquipment } from '../../agent/equipment.ts';
import { plural } from '../../base/text/numbers.ts';
import type { Instance } from '../../dataset/instance.ts';
import type { Capability } from '../../environment/environment.ts';
import type { EnvironmentConfig } from '../../environment/environmentConfig.ts';
import { environmentKindOf, environmentNames } from '../../environment/environments.ts';
import type { EngineInfo } from '../../environment/places/engineInfo.ts';
import type { SpecOptions } from '../../grading/specs/spec.ts';
import { clientVariable } from '../../model/names.ts';
import type { TaskNeeds, WantedVariable } from '../../suites/suite.ts';
import { planGrading, suiteOf } from '../../suites/suites.ts';
import type { Variables } from '../caller.ts';
import type { ResolvedConfig } from './resolveConfig.ts';

export type Clause = string | undefined;
export type EngineFacts = Extract<EngineInfo, { ok: true }>;

export interface ArmFacts {
  readonly agent: Pick<AgentConfig, 'agent_class'> & Partial<Pick<AgentConfig, 'command'>>;
  readonly environment: Pick<EnvironmentConfig, 'environment_class'> &
    Partial<Pick<EnvironmentConfig, 'network' | 'pull'>>;
}

/** The variables and the judge that tasks may have of this machine. `solves`: an arm applies the solutions that tasks bring. */
export interface VariableFacts extends Pick<ResolvedConfig, 'suite'> {
  readonly env: Variables;
  readonly solves: boolean;
}

const gibibytes = (bytes: number): string => `${Number((bytes / 2 ** 30).toFixed(1))} GiB`;

/** A machine that is sold with 16 GB tells of 15.4: its kernel and its firmware keep some. */
const KEPT_BACK = 1.1;

/** A limit of memory beyond that of the engine would be no limit, and the task would have less than its author gave it. */
export const memoryClause = ({ memoryMb = 0 }: TaskNeeds, { memoryBytes }: EngineFacts): Clause =>
  memoryBytes > 0 && memoryMb * 2 ** 20 > memoryBytes * KEPT_BACK
    ? `it asks for ${gibibytes(memoryMb * 2 ** 20)} of memory, and the engine has ${gibibytes(memoryBytes)}`
    : undefined;

/** An engine with NVIDIA's runtime says nothing of how many it has; with CDI it names each. */
export function gpuClause({ gpus: asked = 0 }: TaskNeeds, { gpus }: EngineFacts): Clause {
  if (asked === 0 || gpus === 'any' || gpus.length >= asked) return undefined;
  const has =
    gpus.length === 0
      ? 'names none (docker info: neither the runtime nvidia nor a device nvidia.com/gpu)'
      : `names ${gpus.length}`;
  return `it asks for ${asked === 1 ? 'a GPU' : `${asked} GPUs`}, and the engine ${has}`;
}

export const variableClauses = ({ variables = [] }: TaskNeeds, machine: VariableFacts): Clause =>
  [...new Set(variables.flatMap((wanted) => variableClause(wanted, machine) ?? []))].join('; ') || undefined;

function variableClause(
  { name, key, hasDefault, reader }: WantedVariable,
  { suite, env, solves }: VariableFacts,
): Clause {
  if (hasDefault || (reader === 'solution' && !solves)) return undefined;
  const asksModel = reader === 'verifier' && clientVariable(name) !== undefined;
  if (asksModel && suite?.judge) return undefined;
  if (suite?.env.includes(name))
    return env[name] === undefined
      ? `${key} wants $${name}, which suite.env allows and which is not set: export ${name}=...`
      : undefined;
  return asksModel
    ? `${key} wants $${name}, to ask a model as its judge: name it in suite.judge, for example suite.judge.model_name=NAME; your key stays here`
    : `${key} wants $${name} of this machine: allow it with suite.env=${name}`;
}

/** "its services are started with environment.environment_class docker alone, and not with local". */
export function onlyWith(capability: Capability, { environment }: ArmFacts, what: string): Clause {
  if (environmentKindOf(environment).capabilities[capability]) return undefined;
  const names = environmentNames(capability).join(' or ');
  return `${what} with environment.environment_class ${names} alone, and not with ${environment.environment_class}`;
}

/** Services and users that an environment of this kind cannot give. */
export async function containerClause(
  { container, judgedApart }: TaskNeeds,
  { environment }: ArmFacts,
): Promise<Clause> {
  if (!container) return undefined;
  const { capabilities, taskRefusal, title } = environmentKindOf(environment);
  const { runsServices, canKeepWork } = capabilities;
  // Where nothing is kept they end with the container that was worked in, so it is judged there.
  if (container.services && runsServices && !canKeepWork && judgedApart !== undefined)
    return `${judgedApart}, and its services end with its agent's container in ${title}`;
  return container.services && !runsServices ? undefined : taskRefusal?.(container, environment);
}

/** Images are built on engines alone. */
export function buildClause(instance: Instance, { environment }: ArmFacts): Clause {
  const { inImages, engines, title } = environmentKindOf(environment);
  if (!inImages || engines === 'all' || environment.pull === 'never') return undefined;
  const images = (suiteOf(instance).builds?.(instance) ?? []).map(({ image }) => image);
  if (images.length === 0) return undefined;
  return `${plural(images.length, 'image')} of it ${images.length === 1 ? 'is' : 'are'} built (${images.join(', ')}), and ${title} builds none: bring them to its nodes and set environment.pull=never, or name published ones`;
}

/** An agent that asks no model reads no skills. */
export async function skillsClause({ skillsFolder }: TaskNeeds, { agent }: ArmFacts): Promise<Clause> {
  const { agent_class: name, command } = agent;
  if (skillsFolder === undefined || nameWithoutModel(name) !== undefined) return undefined;
  const kind = await agentNamed(name);
  if (!kind) return undefined;
  if (kind.equipment === undefined) return `it has skills, which the agent ${name} does not take`;
  return kind.equipment === 'named' && !namesEquipment(command, 'skills')
    ? `it has skills, and agent.command does not say where they go: {{skills}} is their place`
    : undefined;
}

export function graderClause(instance: Instance, options: SpecOptions): Clause {
  const planned = planGrading(instance, options);
  return planned.ok ? undefined : planned.reason.replace(`${instance.instance_id} cannot be graded: `, '');
}

/** The agent of an arm applies the solutions that tasks bring. */
export const solves = async ({ agent }: Pick<ArmFacts, 'agent'>): Promise<boolean> =>
  (await agentNamed(agent.agent_class))?.solves ?? false;
