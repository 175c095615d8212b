/** Tasks that cannot run here: all are named before anything starts, or left out where the user says so. */

import type { AgentConfig } from '../../agent/agentConfig.ts';
import { agentNamed, nameWithoutModel, refusalOfServers } from '../../agent/agents.ts';
import { namesEquipment } from '../../agent/equipment.ts';
import { inert } from '../../base/text/inert.ts';
import { plural } from '../../base/text/numbers.ts';
import { type HeldRow, headOf, type RowInFile, readInstance } from '../../dataset/dataset.ts';
import type { Instance } from '../../dataset/instance.ts';
import type { EnvironmentConfig } from '../../environment/environmentConfig.ts';
import { environmentKindOf, environmentNames } from '../../environment/environments.ts';
import { type EngineInfo, engineInfo } from '../../environment/places/engineInfo.ts';
import type { GradingConfig } from '../../grading/gradingConfig.ts';
import { loadParsers } from '../../grading/parsers/parserRegistry.ts';
import { clientVariable } from '../../model/names.ts';
import type { TaskNeeds, WantedVariable } from '../../suites/suite.ts';
import { needsOf, planGrading, solutionOf, suiteOf } from '../../suites/suites.ts';
import type { Tell, Variables } from '../caller.ts';
import { UserError } from '../userError.ts';
import { needsEngine, type Placed } from './preflight.ts';
import type { ResolvedConfig } from './resolveConfig.ts';

interface UnsupportedTask {
  readonly instance_id: string;
  readonly reason: string;
}

type Task = (Pick<HeldRow, 'instance'> | RowInFile) & { readonly refused?: string };

/** More would push what matters off the screen. */
const SHOWN = 20;

const linesOf = (tasks: readonly UnsupportedTask[]): string => {
  const lines = tasks.slice(0, SHOWN).map(({ instance_id, reason }) => `  ${instance_id}: ${inert(reason)}`);
  const left = tasks.length - lines.length;
  return [...lines, ...(left > 0 ? [`  and ${left} more`] : [])].join('\n');
};

/** Throws a UserError with each reason, unless `skip`. `graded`: each of them can run, and some cannot be graded. */
export function withoutUnsupported<R extends Task>(
  selected: readonly R[],
  skip: boolean,
  tell: Tell,
  graded = false,
): { supported: readonly R[]; unsupported: readonly UnsupportedTask[] } {
  const unsupported = selected.flatMap((row) =>
    row.refused === undefined ? [] : [{ instance_id: headOf(row).instance_id, reason: row.refused }],
  );
  if (unsupported.length === 0) return { supported: selected, unsupported };
  const what = graded ? 'be graded' : 'run here';
  const text = `${unsupported.length} of ${selected.length} tasks cannot ${what}:\n${linesOf(unsupported)}`;
  const supported = selected.filter(({ refused }) => refused === undefined);
  if (!skip) throw new UserError(text, { next: { do: graded ? 'skip_grading' : 'skip_unsupported' } });
  if (supported.length === 0) throw new UserError(text);
  tell({ level: 'warning', text: `left out: ${text}` });
  return { supported, unsupported };
}

/** Rows that would be run and paid, and could get no verdict. Each is read once more, as it is when its run is recorded. */
export async function beyondGraders<R extends Task>(
  rows: readonly R[],
  { harness, parsers }: GradingConfig,
  cwd: string,
): Promise<readonly R[]> {
  // A parser that cannot be loaded is told with the rest of the configuration.
  const registry = await loadParsers(parsers, cwd).catch(() => null);
  if (!registry) return rows;
  return rows.map((row) => {
    const instance = readInstance(row);
    const planned = planGrading(instance, { harness, parsers: registry });
    if (planned.ok) return row;
    const reason = planned.reason.replace(`${instance.instance_id} cannot be graded: `, '');
    return { ...row, refused: reason };
  });
}

/** Tasks that want what this machine does not give them. */
export async function beyondVariables<R extends Task>(
  rows: readonly R[],
  { suite, arms }: Pick<ResolvedConfig, 'suite' | 'arms'>,
  env: Variables,
): Promise<readonly R[]> {
  const solves = await Promise.all(
    arms.map(async ({ agent }) => (await agentNamed(agent.agent_class))?.solves),
  );
  const given = { suite, env, solves: solves.includes(true) };
  return rows.map((row) => {
    if (!isOpen(row)) return row;
    const reasons = new Set(
      (needsOf(readInstance(row)).variables ?? []).flatMap((one) => lackOf(one, given)),
    );
    return reasons.size === 0 ? row : { ...row, refused: [...reasons].join('; ') };
  });
}

function lackOf(
  { name, key, hasDefault, reader }: WantedVariable,
  {
    suite,
    env,
    solves,
  }: Pick<ResolvedConfig, 'suite'> & { readonly env: Variables; readonly solves: boolean },
): string[] {
  if (hasDefault || (reader === 'solution' && !solves)) return [];
  const what = clientVariable(name);
  const asksModel = reader === 'verifier' && what !== undefined;
  if (asksModel && suite?.judge) return [];
  if (suite?.env.includes(name))
    return env[name] === undefined
      ? [`${key} wants $${name}, which suite.env allows and which is not set: export ${name}=...`]
      : [];
  return asksModel
    ? [
        `${key} wants $${name}, to ask a model as its judge: name it in suite.judge, for example suite.judge.model_name=NAME; your key stays here`,
      ]
    : [`${key} wants $${name} of this machine: allow it with suite.env=${name}`];
}

interface ArmFacts {
  readonly agent: Pick<AgentConfig, 'agent_class'> & Partial<Pick<AgentConfig, 'command'>>;
  readonly environment: Pick<EnvironmentConfig, 'environment_class'> &
    Partial<Pick<EnvironmentConfig, 'network' | 'pull'>>;
}

/** What an agent left cannot be kept everywhere. */
const refusalOfKeeping = (who: string, { environment }: ArmFacts): string | undefined =>
  environmentKindOf(environment).capabilities.canKeepWork
    ? undefined
    : `${who} are kept with environment.environment_class ${environmentNames('canKeepWork').join(' or ')} alone, and not with ${environment.environment_class}`;

/** What a task has beside its container is not started everywhere, nor does it run everywhere as whom it names. */
async function refusalOfContainer(
  { environment }: ArmFacts,
  { container, judgedApart }: TaskNeeds,
): Promise<string | undefined> {
  if (!container) return undefined;
  const { capabilities, taskRefusal, title } = environmentKindOf(environment);
  if (container.services && !capabilities.runsServices)
    return `its services are started with environment.environment_class ${environmentNames('runsServices').join(' or ')} alone, and not with ${environment.environment_class}`;
  // Where nothing is kept they end with the container that was worked in, so it is judged there.
  if (container.services && !capabilities.canKeepWork && judgedApart !== undefined)
    return `${judgedApart}, and its services end with its agent's container in ${title}`;
  return taskRefusal?.(container, environment);
}

/** Images are built on engines alone. */
function refusalOfBuilds({ environment }: ArmFacts, images: readonly string[]): string | undefined {
  const { inImages, engines, title } = environmentKindOf(environment);
  if (!inImages || engines === 'all' || environment.pull === 'never' || images.length === 0) return undefined;
  return `${plural(images.length, 'image')} of it ${images.length === 1 ? 'is' : 'are'} built (${images.join(', ')}), and ${title} builds none: bring them to its nodes and set environment.pull=never, or name published ones`;
}

/** Elsewhere no proxy stands between a container and the outside. */
const refusalOfHosts = ({ environment }: ArmFacts): string | undefined =>
  environmentKindOf(environment).capabilities.opensHosts
    ? undefined
    : `its list of hosts is kept with environment.environment_class ${environmentNames('opensHosts').join(' or ')} alone, and not with ${environment.environment_class}`;

/** Of a task; an agent that asks no model reads none. */
async function refusalOfSkills({ agent }: ArmFacts): Promise<string | undefined> {
  const { agent_class: name, command } = agent;
  const kind = await agentNamed(name);
  if (!kind || nameWithoutModel(name) !== undefined) return undefined;
  if (kind.equipment === undefined) return `it has skills, which the agent ${name} does not take`;
  return kind.equipment === 'named' && !namesEquipment(command, 'skills')
    ? `it has skills, and agent.command does not say where they go: {{skills}} is their place`
    : undefined;
}

const refusalOfGpus = ({ environment }: ArmFacts): string | undefined =>
  environmentKindOf(environment).capabilities.hasGpus
    ? undefined
    : `it asks for GPUs, which environment.environment_class ${environmentNames('hasGpus').join(' or ')} alone gives`;

async function refusalOfSolving(instance: Instance, { agent }: ArmFacts): Promise<string | undefined> {
  const { solves = false } = (await agentNamed(agent.agent_class)) ?? {};
  return solves && !solutionOf(instance) ? 'it brings no solution that could be applied' : undefined;
}

/** A row that was left in its file is of a kind that has none, and of a refused one nothing was read. */
const isOpen = (row: Task): boolean => !('file' in row) && row.refused === undefined;

export async function beyondAgents<R extends Task>(
  rows: readonly R[],
  arms: readonly ArmFacts[],
): Promise<readonly R[]> {
  if (!rows.some(isOpen)) return rows;
  return Promise.all(
    rows.map(async (row) => {
      if (!isOpen(row)) return row;
      const needs = needsOf(readInstance(row));
      const { toolServers = [], skillsFolder, keepsEndStates, gpus = 0, opensHosts = false } = needs;
      const built = suiteOf(readInstance(row)).builds?.(readInstance(row)) ?? [];
      const reasons = new Set<string>();
      for (const arm of arms) {
        const refusals = [
          await refusalOfServers(arm.agent.agent_class, toolServers),
          keepsEndStates === undefined ? undefined : refusalOfKeeping(keepsEndStates, arm),
          await refusalOfContainer(arm, needs),
          refusalOfBuilds(
            arm,
            built.map(({ image }) => image),
          ),
          opensHosts ? refusalOfHosts(arm) : undefined,
          gpus > 0 ? refusalOfGpus(arm) : undefined,
          skillsFolder === undefined ? undefined : await refusalOfSkills(arm),
          await refusalOfSolving(readInstance(row), arm),
        ];
        for (const reason of refusals) if (reason !== undefined) reasons.add(reason);
      }
      return reasons.size === 0 ? row : { ...row, refused: [...reasons].join('; ') };
    }),
  );
}

/** What is not refused here fails when it starts: a slow engine has its time. */
const ANSWER_MS = 15_000;

const NOTHING = { processors: 0, memoryMb: 0 };

/** A row that was left in its file is of a kind that asks for nothing, and of a refused one nothing was read. */
function askedBy(row: Task): { readonly processors: number; readonly memoryMb: number } {
  if ('file' in row || row.refused !== undefined) return NOTHING;
  const { processors = 0, memoryMb = 0 } = needsOf(readInstance(row));
  return { processors, memoryMb };
}

/** A machine that is sold with 16 GB tells of 15.4: its kernel and its firmware keep some. */
const KEPT_BACK = 1.1;

/** Of the smallest engine that is used. A limit of memory beyond it would be no limit, and the task would have less than its author gave it. */
export const beyondEngine = <R extends Task>(
  rows: readonly R[],
  cpus: number,
  memoryBytes = Number.POSITIVE_INFINITY,
): readonly R[] =>
  rows.map((row) => {
    const { processors, memoryMb } = askedBy(row);
    const reasons = [
      ...(processors > cpus ? [`it asks for ${processors} processors, and the engine has ${cpus}`] : []),
      ...(memoryMb * 2 ** 20 > memoryBytes * KEPT_BACK
        ? [
            `it asks for ${gibibytes(memoryMb * 2 ** 20)} of memory, and the engine has ${gibibytes(memoryBytes)}`,
          ]
        : []),
    ];
    return reasons.length > 0 ? { ...row, refused: reasons.join('; ') } : row;
  });

const gibibytes = (bytes: number): string => `${Number((bytes / 2 ** 30).toFixed(1))} GiB`;

/** An engine that does not answer refuses nothing here: that it does not is told later, and a plan can be made without it. */
export async function withinEngine<R extends Task>(
  rows: readonly R[],
  resolved: Placed,
): Promise<readonly R[]> {
  const { enabled: graded } = resolved.grading;
  const isAsking = (row: R) =>
    Math.max(...Object.values(askedBy(row))) > 0 || hasServices(row) || gpusOf(row) > 0;
  if (!rows.some(isAsking)) return rows;
  const engine = needsEngine(resolved) ? await engineInfo(undefined, { answerMs: ANSWER_MS }) : undefined;
  const answered = engine?.ok ? engine : undefined;
  const fitting = beyondEngine(rows, answered?.cpus || Infinity, answered?.memoryBytes || Infinity);
  return beyondGpus(beyondServices(fitting, { graded, engine: answered?.name }), answered);
}

const gpusOf = (row: Task): number => (isOpen(row) ? (needsOf(readInstance(row)).gpus ?? 0) : 0);

/** An engine with NVIDIA's runtime says nothing of how many it has; with CDI it names each. */
export const beyondGpus = <R extends Task>(
  rows: readonly R[],
  engine: Pick<Extract<EngineInfo, { ok: true }>, 'gpus'> | undefined,
): readonly R[] =>
  rows.map((row) => {
    const asked = gpusOf(row);
    const gpus = engine?.gpus ?? 'any';
    if (gpus === 'any' || gpus.length >= asked) return row;
    const has =
      gpus.length === 0
        ? 'names none (docker info: neither the runtime nvidia nor a device nvidia.com/gpu)'
        : `names ${gpus.length}`;
    return {
      ...row,
      refused: `it asks for ${asked === 1 ? 'a GPU' : `${asked} GPUs`}, and the engine ${has}`,
    };
  });

const hasServices = (row: Task): boolean =>
  !('file' in row) &&
  row.refused === undefined &&
  needsOf(readInstance(row)).container?.services !== undefined;

/** `engine`: Docker or Podman, where it is known. */
export function beyondServices<R extends Task>(
  rows: readonly R[],
  { graded, engine }: { readonly graded: boolean; readonly engine: string | undefined },
): readonly R[] {
  const refused = !graded
    ? 'its services end with the run, so it is graded in the run: set grading.enabled, or --evaluate'
    : engine !== undefined &&
      engine !== 'Docker' &&
      `its services are started on engines of Docker alone, and this one is ${engine}`;
  return !refused ? rows : rows.map((row) => (hasServices(row) ? { ...row, refused } : row));
}
