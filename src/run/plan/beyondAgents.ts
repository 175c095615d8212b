/** Tasks that an arm of the run cannot work on as they are: their servers of tools (MCP), and their steps. */
import type { AgentConfig } from '../../agent/agentConfig.ts';
import { refusalOfServers } from '../../agent/agents.ts';
import { mcpServersOf, stepsOf } from '../../dataset/kinds/datasetKinds.ts';
import type { LoadedRow } from '../../dataset/read/loadDataset.ts';
import type { EnvironmentConfig } from '../../environment/environmentConfig.ts';

export interface ArmFacts {
  readonly agent: Pick<AgentConfig, 'agent_class'>;
  readonly environment: Pick<EnvironmentConfig, 'environment_class'>;
}

/** Its end states are graded, one after each step: only containers of an engine can be kept as images. */
const refusalOfSteps = ({ environment: { environment_class } }: ArmFacts): string | undefined =>
  environment_class === 'docker'
    ? undefined
    : `it has several steps, whose end states are kept with environment.environment_class docker alone, and not with ${environment_class}`;

/** A row that was left in its file is of a kind that has none, and of a refused one nothing was read. */
export const beyondAgents = <R extends LoadedRow>(
  rows: readonly R[],
  arms: readonly ArmFacts[],
): Promise<readonly R[]> =>
  Promise.all(
    rows.map(async (row) => {
      if (row.head || row.refused !== undefined) return row;
      const servers = mcpServersOf(row.instance);
      const stepped = stepsOf(row.instance) !== undefined;
      const reasons = new Set<string>();
      for (const arm of arms) {
        const refusals = [
          await refusalOfServers(arm.agent.agent_class, servers),
          stepped ? refusalOfSteps(arm) : undefined,
        ];
        for (const reason of refusals) if (reason !== undefined) reasons.add(reason);
      }
      return reasons.size === 0 ? row : { ...row, refused: [...reasons].join('; ') };
    }),
  );
