/** The agent of an attempt: what it is given, and its run. A suite may lead it through its task, in several runs. */
import type { AgentConfig } from '../../agent/agentConfig.ts';
import type { AgentCallbacks, AgentResult, Solution } from '../../agent/contract.ts';
import { placeEquipment } from '../../agent/equipment.ts';
import type { VariableValues } from '../../base/hostVariables.ts';
import type { Instance } from '../../dataset/instance.ts';
import type { Environment } from '../../environment/environment.ts';
import { needsOf, solutionOf, suiteOf } from '../../suites/suites.ts';
import { withSkillsOfTask } from '../agents/equipment.ts';
import type { Run } from '../contract.ts';
import { orAbort } from '../control/stop.ts';
import type { PlannedTrial } from '../plannedTrial.ts';
import type { AttemptJournal } from '../record/attemptJournal.ts';
import { ledAttempt, openAttempt } from './suiteAttempt.ts';

export async function runAgent(
  run: Run,
  trial: PlannedTrial,
  journal: AttemptJournal,
  environment: Environment,
  signal: AbortSignal,
): Promise<AgentResult> {
  const { arm, instance } = trial;
  const { instanceId, epoch } = trial.label;
  const { now } = run;
  // Agents of one attempt, one after the other, ask one model, so that its replies go on where they were.
  const model = arm.modelFactory.create({
    instanceId,
    epoch,
    // A replay plays the recorded attempts of a trial in order.
    earlier: journal.infraAttemptsBefore(),
  });
  const { toolServers: ofTask = [], skillsFolder } = needsOf(instance);
  // A task's own server keeps its name.
  const ofArm = (arm.agent.mcp_servers ?? []).filter((one) => ofTask.every(({ name }) => name !== one.name));
  const mcpServers = [...ofTask, ...ofArm];
  const given = await withSkillsOfTask(arm.equipment, environment, skillsFolder);
  const placement = given && (await placeEquipment(environment, given));
  const equipment = placement?.placed;
  const runOne = (task: string, config: AgentConfig, callbacks: AgentCallbacks, part?: string) => {
    const { gateway } = arm;
    const agent = arm.createAgent({
      instanceId,
      model,
      environment,
      gateway,
      config,
      mcpServers,
      equipment,
      callbacks,
      signal,
      now,
      ...(arm.solves && { solution: solutionWith(run.suite.variables, instance, part) }),
    });
    return orAbort(agent.run(task, exposedFields(arm.agent, instance)), signal);
  };
  const lead = suiteOf(instance).lead?.(instance);
  try {
    if (!lead)
      return await runOne(
        instance.problem_statement,
        withinTaskTime(arm.agent, instance),
        journal.recorder.callbacks,
      );
    const open = openAttempt(run, trial, journal, environment, signal);
    const { recorder, recordWork } = journal;
    return await lead(
      ledAttempt(open, { config: arm.agent, recorder, recordWork, signal, now, runAgent: runOne }),
    );
  } finally {
    await placement?.remove();
  }
}

function solutionWith(
  variables: VariableValues,
  instance: Instance,
  part: string | undefined,
): Solution | undefined {
  const solution = solutionOf(instance, part);
  return solution && { apply: (environment, at) => solution.apply(environment, { ...at, variables }) };
}

/** A task may give its agent less time than the configuration does, never more. */
function withinTaskTime(config: AgentConfig, instance: Instance): AgentConfig {
  const ofTask = needsOf(instance).agentS;
  if (ofTask === undefined) return config;
  const configured = config.wall_time_limit_seconds;
  return { ...config, wall_time_limit_seconds: configured > 0 ? Math.min(configured, ofTask) : ofTask };
}

/** Templates get only the configured fields, so never the gold patch or the tests by default. */
function exposedFields(config: AgentConfig, instance: Instance): Record<string, unknown> {
  const all: Record<string, unknown> = { ...instance.extra, ...instance };
  return Object.fromEntries(config.expose_fields.filter((f) => f in all).map((f) => [f, all[f]]));
}
