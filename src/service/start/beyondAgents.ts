/** Tasks that give their agent servers of tools (MCP), which an agent of the run does not take: it would work without them. */
import type { AgentConfig } from '../../agent/agentConfig.ts';
import { installedProgram } from '../../agent/installed/programs.ts';
import type { McpServer } from '../../base/mcpServer.ts';
import { mcpServersOf } from '../../dataset/kinds/datasetKinds.ts';
import type { LoadedRow } from '../../dataset/read/loadDataset.ts';

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

/** A row that was left in its file is of a kind that has none, and of a refused one nothing was read. */
export const beyondAgents = <R extends LoadedRow>(
  rows: readonly R[],
  arms: readonly { readonly agent: Pick<AgentConfig, 'agent_class'> }[],
): readonly R[] =>
  rows.map((row) => {
    if (row.head || row.refused !== undefined) return row;
    const servers = mcpServersOf(row.instance);
    if (servers.length === 0) return row;
    const reasons = arms.flatMap(({ agent }) => refusalBy(agent.agent_class, servers) ?? []);
    return reasons.length === 0 ? row : { ...row, refused: [...new Set(reasons)].join('; ') };
  });
