/**
 * All that is checked before anything is made, started or paid, as two tables. A check of a task returns a clause: why the task cannot run here, or gets no
 * verdict. A check of a plan returns findings, and a failed one names the fix; runs, dry runs and doctor tell them in the same words.
 */

import { refusalOfServers } from '../../agent/agents.ts';
import type { Finding } from '../../base/finding.ts';
import { type HeldRow, type RowInFile, readInstance } from '../../dataset/dataset.ts';
import type { Instance } from '../../dataset/instance.ts';
import { environmentFindings } from '../../environment/environments.ts';
import type { SpecOptions } from '../../grading/specs/spec.ts';
import type { TaskNeeds } from '../../suites/suite.ts';
import { needsOf, solutionOf } from '../../suites/suites.ts';
import {
  agentFindings,
  answerFindings,
  deadEndpointFindings,
  environmentClassFindings,
  judgeFindings,
  modelFindings,
  parserFindings,
  promptFindings,
  secretFindings,
  variableFindings,
} from './armChecks.ts';
import {
  clockFindings,
  copyFindings,
  floorFindings,
  limitFindings,
  optionFindings,
  platformFindings,
} from './engineChecks.ts';
import type { PlanFacts } from './planFacts.ts';
import {
  type ArmFacts,
  buildClause,
  type Clause,
  containerClause,
  type EngineFacts,
  gpuClause,
  graderClause,
  memoryClause,
  onlyWith,
  skillsClause,
  solves,
  type VariableFacts,
  variableClauses,
} from './taskChecks.ts';

/** Facts that tasks are checked against. A check is asked of each entry of the fact that it needs: where no agent works, there is no arm. */
export interface TaskFacts {
  readonly run: readonly { readonly graded: boolean }[];
  /** Empty where no engine answers, or nothing is asked of one. */
  readonly engine: readonly EngineFacts[];
  readonly machine: readonly VariableFacts[];
  readonly arm: readonly ArmFacts[];
  /** Empty where a run makes no verdicts. */
  readonly grader: readonly SpecOptions[];
}

interface TaskCheck<Needs extends keyof TaskFacts = keyof TaskFacts> {
  readonly name: string;
  readonly needs: Needs;
  readonly clause: (
    task: TaskNeeds,
    fact: TaskFacts[Needs][number],
    instance: Instance,
  ) => Clause | Promise<Clause>;
}

const check = <Needs extends keyof TaskFacts>(
  name: string,
  needs: Needs,
  clause: TaskCheck<Needs>['clause'],
): TaskCheck => ({ name, needs, clause: clause as TaskCheck['clause'] });

/** The last check, `grader`, is asked of tasks that no other refuses. */
const TASK_CHECKS: readonly TaskCheck[] = [
  check('processors', 'engine', ({ processors = 0 }, { cpus }) =>
    cpus > 0 && processors > cpus
      ? `it asks for ${processors} processors, and the engine has ${cpus}`
      : undefined,
  ),
  check('memory', 'engine', memoryClause),
  check('gpus', 'engine', gpuClause),
  check('services on the engine', 'engine', ({ container }, { name }) =>
    container?.services && name !== 'Docker'
      ? `its services are started on engines of Docker alone, and this one is ${name}`
      : undefined,
  ),
  check('services to its verdict', 'run', ({ container }, { graded }) =>
    container?.services && !graded
      ? 'its services end with the run, so it is graded in the run: set grading.enabled, or --evaluate'
      : undefined,
  ),
  check('variables', 'machine', variableClauses),
  check('servers of tools', 'arm', ({ toolServers = [] }, { agent }) =>
    refusalOfServers(agent.agent_class, toolServers),
  ),
  check('end states', 'arm', ({ keepsEndStates: who }, arm) =>
    who === undefined ? undefined : onlyWith('canKeepWork', arm, `${who} are kept`),
  ),
  check('services', 'arm', ({ container }, arm) =>
    container?.services ? onlyWith('runsServices', arm, 'its services are started') : undefined,
  ),
  check('container', 'arm', containerClause),
  check('images', 'arm', (_, arm, instance) => buildClause(instance, arm)),
  check('hosts', 'arm', ({ opensHosts }, arm) =>
    opensHosts ? onlyWith('opensHosts', arm, 'its list of hosts is kept') : undefined,
  ),
  check('gpus of the environment', 'arm', ({ gpus = 0 }, arm) =>
    gpus > 0 ? onlyWith('hasGpus', arm, 'it asks for GPUs, which are given') : undefined,
  ),
  check('skills', 'arm', skillsClause),
  check('solution', 'arm', async (_, arm, instance) =>
    (await solves(arm)) && !solutionOf(instance) ? 'it brings no solution that could be applied' : undefined,
  ),
  check('grader', 'grader', (_, options, instance) => graderClause(instance, options)),
];

export interface TaskRefusal {
  /** The name of the check. */
  readonly check: string;
  /** `run`: the task cannot run here. `verdict`: it runs, and gets none. */
  readonly of: 'run' | 'verdict';
  readonly why: string;
}

export type TaskRow = (Pick<HeldRow, 'instance'> | RowInFile) & { readonly refused?: string };

/**
 * Reasons why a task cannot run here or gets no verdict, each once. A row that stays in its file belongs to a suite without needs, so that only its
 * grading is checked.
 */
export async function refusalsOf(row: TaskRow, facts: TaskFacts): Promise<readonly TaskRefusal[]> {
  if (row.refused !== undefined) return [{ check: 'dataset', of: 'run', why: row.refused }];
  const isInFile = 'file' in row;
  if (isInFile && facts.grader.length === 0) return [];
  const instance = readInstance(row);
  const needs = isInFile ? {} : needsOf(instance);
  const refusals: TaskRefusal[] = [];
  for (const { name, needs: fact, clause } of TASK_CHECKS) {
    const of = fact === 'grader' ? 'verdict' : 'run';
    if ((of === 'run' && isInFile) || (of === 'verdict' && refusals.length > 0)) continue;
    for (const one of facts[fact]) {
      const why = await clause(needs, one, instance);
      if (why !== undefined && refusals.every((known) => known.why !== why))
        refusals.push({ check: name, of, why });
    }
  }
  return refusals;
}

/** `configuration` asks nobody; `endpoints` the models; `places` where environments will be; `tasks` where their images are. */
type Stage = 'configuration' | 'endpoints' | 'places' | 'tasks';
/** `online` is a dry run that asks models too. */
export type Occasion = 'run' | 'dry run' | 'online' | 'doctor';

const ALL: readonly Occasion[] = ['run', 'dry run', 'doctor'];

type Findings = readonly Finding[] | Promise<readonly Finding[]>;

type PlanCheck = readonly [
  name: string,
  stage: Stage,
  occasions: readonly Occasion[],
  findings: (facts: PlanFacts) => Findings,
];

const eachArm =
  (findings: (arm: PlanFacts['arms'][number], facts: PlanFacts) => Findings) => async (facts: PlanFacts) =>
    (await Promise.all(facts.arms.map((arm) => findings(arm, facts)))).flat();

const PLAN_CHECKS: readonly PlanCheck[] = [
  ['agent', 'configuration', ALL, eachArm(agentFindings)],
  ['environment class', 'configuration', ALL, eachArm(environmentClassFindings)],
  ['model', 'configuration', ALL, eachArm(modelFindings)],
  ['secrets', 'configuration', ALL, eachArm(secretFindings)],
  ['prompt', 'configuration', ALL, eachArm(promptFindings)],
  ['variables', 'configuration', ALL, variableFindings],
  ['judge', 'configuration', ALL, judgeFindings],
  ['parsers', 'configuration', ALL, parserFindings],
  ['endpoint that listens', 'endpoints', ['run'], deadEndpointFindings],
  ['endpoint that answers', 'endpoints', ['online', 'doctor'], answerFindings],
  ['room on the engine', 'places', ['run', 'dry run'], floorFindings],
  ['limits', 'places', ALL, limitFindings],
  ['clock', 'places', ALL, clockFindings],
  ['platform', 'places', ALL, platformFindings],
  ['options of containers', 'places', ALL, optionFindings],
  ['environments', 'places', ALL, ({ arms }) => environmentFindings(arms)],
  ['copies of images', 'tasks', ALL, copyFindings],
];

export async function findingsOf(
  stage: Stage,
  occasion: Occasion,
  facts: PlanFacts,
): Promise<readonly Finding[]> {
  const asked = PLAN_CHECKS.filter(([, of, occasions]) => of === stage && occasions.includes(occasion));
  return (await Promise.all(asked.map(([, , , findings]) => findings(facts)))).flat();
}
