/** The arms of a run, ready to work: the configuration of each and what is built from it. */
import type { AgentConfig } from '../agent/agentConfig.ts';
import { loadAgent } from '../agent/agents.ts';
import type { CreateAgent } from '../agent/contract.ts';
import type { ArmGateway, Gateway } from '../agent/gateway/gateway.ts';
import { gatewayConfigSchema } from '../agent/gateway/gatewayConfig.ts';
import { createGateway } from '../agent/gateway/httpGateway.ts';
import type { Closing } from '../base/async/timer.ts';
import type { EnvironmentFactory } from '../environment/environment.ts';
import type { EnvironmentConfig } from '../environment/environmentConfig.ts';
import { createEnvironmentFactory } from '../environment/environments.ts';
import type { EnginePool } from '../environment/places/engines/enginePool.ts';
import type { EngineWatch } from '../environment/places/engines/engineWatch.ts';
import type { RunImages } from '../environment/places/images/runImages.ts';
import type { Program } from '../environment/programs/program.ts';
import { proxyFrom } from '../model/http/proxySettings.ts';
import type { RateBook } from '../model/limits/sharedRate.ts';
import type { ModelFactory } from '../model/model.ts';
import type { ModelConfig } from '../model/modelConfig.ts';
import { createModelFactory } from '../model/modelFactory.ts';
import type { Divergence, ReplaySource } from '../model/offline/replayed.ts';
import type { ArmRow } from '../store/records/runs.ts';
import type { RunEvents } from './events.ts';
import { plannedArm } from './plan/plannedConfig.ts';

export interface ArmRuntime {
  readonly row: ArmRow;
  readonly agent: AgentConfig;
  readonly environment: EnvironmentConfig;
  readonly model: ModelConfig;
  readonly modelFactory: ModelFactory;
  readonly environmentFactory: EnvironmentFactory;
  readonly createAgent: CreateAgent;
  /** Where programs ask the arm's model, by the arm's rules. */
  readonly gateway: ArmGateway;
  /** It submits nothing: what it leaves in the work tree is its patch, whatever `run.patch` says. */
  readonly leavesPatch: boolean;
}

export interface ArmPorts {
  readonly secret: (name: string) => string | undefined;
  readonly events: RunEvents;
  /** Folder that relative module paths start from. */
  readonly cwd: string;
  readonly images?: RunImages | undefined;
  readonly pool?: EnginePool | undefined;
  /** What all processes of the results root share of a key's limits. */
  readonly rates?: ((account: string) => RateBook) | undefined;
  readonly engine?: EngineWatch | undefined;
  /** What containers get of the agent that `agent.agent_class` names; none for agents that bring nothing. */
  readonly program?: ((agentClass: string) => Program | undefined) | undefined;
  /** Opens the recording that `replay:NAME` names, for an arm. */
  readonly fetchReplay?: ((name: string, arm: string) => Promise<ReplaySource>) | undefined;
}

interface Closable {
  close(): Promise<void>;
}

/** `closing` closes everything that the arms open, even when a later part of an arm fails to open. */
export async function startArms(
  rows: readonly ArmRow[],
  ports: ArmPorts,
  closing: Closing,
): Promise<Map<number, ArmRuntime>> {
  const gateway = createGateway();
  const opened: Closable[] = [gateway];
  // All at once, because each may wait for its containers. One that cannot be closed does not hold up the others.
  closing.add(() => Promise.allSettled(opened.map(async (part) => part.close())));
  const arms = new Map<number, ArmRuntime>();
  for (const row of rows) arms.set(row.id, await startArm(row, ports, gateway, opened));
  return arms;
}

async function startArm(
  row: ArmRow,
  ports: ArmPorts,
  gateway: Gateway,
  opened: Closable[],
): Promise<ArmRuntime> {
  const { secret, events, cwd, images, pool, engine, fetchReplay, program } = ports;
  const { agent, environment, model, gateway: rules } = plannedArm(row);
  const apiKey = secret(model.api_key_env);
  const proxy = proxyFrom(secret);
  const modelFactory = await createModelFactory(model, {
    ...(apiKey !== undefined && { apiKey }),
    ...(proxy && { proxy }),
    ...(ports.rates && { rates: ports.rates }),
    variable: secret,
    requestStyle: agent.compat ? 'litellm' : 'own',
    ...(fetchReplay && { fetchReplay: (name) => fetchReplay(name, row.name) }),
    onDivergence: (divergence) => events.emit({ type: 'note', text: divergenceText(divergence) }),
  });
  opened.push(modelFactory);
  const { create: createAgent, leavesPatch = false, dialect } = await loadAgent(agent.agent_class, cwd);
  const environmentFactory = await createEnvironmentFactory(environment, {
    ...{ pool, images, listens: dialect !== undefined },
    program: program?.(agent.agent_class),
    watch: engine,
    onWarning: (text) => events.emit({ type: 'note', text }),
  });
  opened.push(environmentFactory);
  const config = gatewayConfigSchema.parse(rules ?? {});
  return {
    ...{ row, agent, environment, model, modelFactory, environmentFactory, createAgent, leavesPatch },
    gateway: { open: (request) => gateway.open({ ...request, config }) },
  };
}

function divergenceText({ instanceId, query, difference }: Divergence): string {
  const when = query === 1 ? 'before step 1' : `at step ${query - 1}`;
  return `${instanceId}: ${when} the environment answered differently than in the recording: ${difference}`;
}
