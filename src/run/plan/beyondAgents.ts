/** Tasks that an arm of the run cannot work on as they are: their servers of tools (MCP), and end states that have to be kept. */
import type { AgentConfig } from '../../agent/agentConfig.ts';
import { refusalOfServers } from '../../agent/agents.ts';
import type { LoadedRow } from '../../dataset/dataset.ts';
import type { EnvironmentConfig } from '../../environment/environmentConfig.ts';
import { environmentKindOf, environmentNames } from '../../environment/environments.ts';
import { needsOf } from '../../suites/suites.ts';

export interface ArmFacts {
  readonly agent: Pick<AgentConfig, 'agent_class'>;
  readonly environment: Pick<EnvironmentConfig, 'environment_class'>;
}

/** What an agent left cannot be kept everywhere. */
const refusalOfKeeping = (who: string, { environment }: ArmFacts): string | undefined =>
  environmentKindOf(environment).keepsWork
    ? undefined
    : `${who} are kept with environment.environment_class ${environmentNames((kind) => kind.keepsWork).join(' or ')} alone, and not with ${environment.environment_class}`;

/** A row that was left in its file is of a kind that has none, and of a refused one nothing was read. */
export const beyondAgents = <R extends LoadedRow>(
  rows: readonly R[],
  arms: readonly ArmFacts[],
): Promise<readonly R[]> =>
  Promise.all(
    rows.map(async (row) => {
      if (row.head || row.refused !== undefined) return row;
      const { toolServers = [], keepsEndStates } = needsOf(row.instance);
      const reasons = new Set<string>();
      for (const arm of arms) {
        const refusals = [
          await refusalOfServers(arm.agent.agent_class, toolServers),
          keepsEndStates === undefined ? undefined : refusalOfKeeping(keepsEndStates, arm),
        ];
        for (const reason of refusals) if (reason !== undefined) reasons.add(reason);
      }
      return reasons.size === 0 ? row : { ...row, refused: [...reasons].join('; ') };
    }),
  );
