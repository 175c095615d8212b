/** The arms of a run, ready to work: the configuration of each and what is built from it. */
import type { AgentConfig } from '../agent/agentConfig.ts';
import { loadAgent } from '../agent/agents.ts';
import type { CreateAgent } from '../agent/contract.ts';
import type { Equipment } from '../agent/equipment.ts';
import type { ArmGateway, Gateway } from '../agent/gateway/gateway.ts';
import { gatewayConfigSchema } from '../agent/gateway/gatewayConfig.ts';
import type { Closing } from '../base/async/timer.ts';
import type { EnvironmentFactory } from '../environment/environment.ts';
import type { EnvironmentConfig } from '../environment/environmentConfig.ts';
import { createEnvironmentFactory } from '../environment/environments.ts';
import type { EngineWatch } from '../environment/places/engineWatch.ts';
import type { ImageService } from '../environment/places/imageService.ts';
import type { ModelFactory } from '../model/model.ts';
import type { ModelConfig } from '../model/modelConfig.ts';
import { createModelFactory } from '../model/modelFactory.ts';
import type { Divergence } from '../model/offline/replayed.ts';
import type { Store } from '../store/open.ts';
import type { ArmRow } from '../store/records/runs.ts';
import { armProgram } from './agents/armAgent.ts';
import { armEquipment } from './agents/equipment.ts';
import type { Variables } from './caller.ts';
import type { RunEvents } from './events.ts';
import { modelAccess } from './modelAccess.ts';
import { plannedArm } from './plan/planRecord.ts';

export interface ArmRuntime {
  readonly row: ArmRow;
  readonly agent: AgentConfig;
  readonly environment: EnvironmentConfig;
  readonly model: ModelConfig;
  readonly modelFactory: ModelFactory;
  readonly environmentFactory: EnvironmentFactory;
  readonly createAgent: CreateAgent;
  /** Where programs ask the arm's model, by the arm's rules; absent for an agent that asks it itself. */
  readonly gateway: ArmGateway | undefined;
  /** The arm's agent submits nothing: the patch is that of the work tree, whatever `run.patch` says. */
  readonly leavesPatch: boolean;
  /** Instructions and skills for its agent, beside the task. */
  readonly equipment: Equipment | undefined;
  /** The arm's agent is given the solution of the task. */
  readonly solves: boolean;
}

/** Parts that the arms of a run share. */
interface SharedParts {
  readonly store: Store;
  readonly env: Variables;
  /** Folder that relative module paths start from. */
  readonly cwd: string;
  readonly events: RunEvents;
  readonly images: ImageService | undefined;
  readonly engine: EngineWatch | undefined;
  /** Tests ask a model as a judge, from the container that was worked in where they run beside it. */
  readonly asks: boolean;
  readonly graceMs: number;
}

/** `closing` closes everything that the arms open, even when a later part of an arm fails to open. */
export async function startArms(
  rows: readonly ArmRow[],
  around: SharedParts,
  closing: Closing,
): Promise<Map<number, ArmRuntime>> {
  const opened: { close(): Promise<void> }[] = [];
  let shared: Gateway | undefined;
  // All at once, because each may wait for its containers. A part that cannot be closed does not hold up the others.
  closing.add(() => Promise.allSettled(opened.map(async (part) => part.close())));
  const arms = new Map<number, ArmRuntime>();
  for (const row of rows) {
    const { agent, environment, model, gateway: rules } = plannedArm(row);
    const modelFactory = await modelFactoryOf(row, around);
    opened.push(modelFactory);
    const {
      create: createAgent,
      leavesPatch = false,
      solves = false,
      dialect,
      asksItself,
    } = await loadAgent(agent.agent_class, around.cwd);
    const environmentFactory = await createEnvironmentFactory(environment, {
      images: around.images?.ensure,
      listens: dialect !== undefined || around.asks,
      program: armProgram(agent, around.env),
      watch: around.engine,
      graceMs: around.graceMs,
      onWarning: (text) => around.events.emit({ type: 'note', text }),
    });
    opened.push(environmentFactory);
    if (!shared && !asksItself) {
      // Only programs of others need it, and all of them share one.
      const { createGateway } = await import('../agent/gateway/httpGateway.ts');
      shared = createGateway();
      opened.push(shared);
    }
    const config = gatewayConfigSchema.parse(rules ?? {});
    const gateway = asksItself ? undefined : shared;
    arms.set(row.id, {
      row,
      agent,
      environment,
      model,
      modelFactory,
      environmentFactory,
      createAgent,
      leavesPatch,
      solves,
      equipment: armEquipment(agent, around.cwd),
      gateway: gateway && { open: (request) => gateway.open({ ...request, config }) },
    });
  }
  return arms;
}

function modelFactoryOf(row: ArmRow, { store, env, events }: SharedParts): Promise<ModelFactory> {
  const { agent, model } = plannedArm(row);
  return createModelFactory(model, {
    ...modelAccess(model, { store, env }),
    requestStyle: agent.compat ? 'litellm' : 'own',
    async fetchReplay(name) {
      const { openReplay } = await import('./record/recordedReplies.ts');
      return openReplay(name, () => store, row.name).source;
    },
    onDivergence: (divergence) => events.emit({ type: 'note', text: divergenceText(divergence) }),
  });
}

function divergenceText({ instanceId, query, difference }: Divergence): string {
  const when = query === 1 ? 'before step 1' : `at step ${query - 1}`;
  return `${instanceId}: ${when} the environment answered differently than in the recording: ${difference}`;
}
