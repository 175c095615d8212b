/** Tasks that an arm of the run cannot work on as they are: their servers of tools (MCP), and their steps. */
import type { AgentConfig } from '../../agent/agentConfig.ts';
import { installedProgram } from '../../agent/installed/programs.ts';
import type { McpServer } from '../../base/mcpServer.ts';
import { mcpServersOf, stepsOf } from '../../dataset/kinds/datasetKinds.ts';
import type { LoadedRow } from '../../dataset/read/loadDataset.ts';
import type { EnvironmentConfig } from '../../environment/environmentConfig.ts';

const TAKERS = 'codex, claude-code, opencode and gemini-cli do';

/** As a clause; undefined where the agent takes all of them. */
function refusalBy(agentClass: string, servers: readonly McpServer[]): string | undefined {
  const names = servers.map(({ name }) => name).join(', ');
  const { mcp } = installedProgram(agentClass) ?? {};
  const agent = agentClass === 'default' ? 'the built-in agent' : `the agent ${agentClass}`;
  if (!mcp) return `it has MCP servers (${names}), which ${agent} does not take; ${TAKERS}`;
  const other = servers.find(({ transport }) => !mcp.includes(transport));
  return other && `${agent} does not speak ${other.transport}, as its MCP server ${other.name} does`;
}

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
): readonly R[] =>
  rows.map((row) => {
    if (row.head || row.refused !== undefined) return row;
    const servers = mcpServersOf(row.instance);
    const stepped = stepsOf(row.instance) !== undefined;
    const found = arms.flatMap((arm) => [
      servers.length > 0 ? refusalBy(arm.agent.agent_class, servers) : undefined,
      stepped ? refusalOfSteps(arm) : undefined,
    ]);
    const reasons = found.filter((reason) => reason !== undefined);
    return reasons.length === 0 ? row : { ...row, refused: [...new Set(reasons)].join('; ') };
  });
