/** MCP servers of a task: which of them an agent in the task's container can have, and why not the others. */
import type { HarborTask } from './harborTask.ts';
import type { TomlMcpServer } from './taskToml.ts';

export type McpServers = NonNullable<HarborTask['mcp_servers']>;

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

function problemOf(server: TomlMcpServer, network: HarborTask['network']): string | undefined {
  const { transport, url, command, headers } = server;
  // Their values are of the machine that runs the task, which no task gets.
  if (Object.keys(headers).length > 0) return 'wants headers of this machine';
  if (transport === 'stdio') return command ? undefined : 'names no command';
  if (!url) return 'names no url';
  if (!URL.canParse(url)) return `has an address that cannot be read: ${url}`;
  const { protocol, hostname } = new URL(url);
  if (protocol !== 'http:' && protocol !== 'https:') return `is not reached by ${protocol}`;
  if (network === 'none' && !LOOPBACK.test(hostname))
    return `is at ${hostname}, which a container without network does not reach`;
  return undefined;
}

/** As clauses; none where all servers can be had. `network` is the agent's. */
export function mcpRefusals(servers: readonly TomlMcpServer[], network: HarborTask['network']): string[] {
  const twice = servers.filter(({ name }, i) => servers.findIndex((one) => one.name === name) < i);
  return [
    ...twice.map(({ name }) => `environment.mcp_servers has ${name} twice`),
    ...servers.flatMap((server) => {
      const problem = problemOf(server, network);
      return problem === undefined ? [] : [`the MCP server ${server.name} ${problem}`];
    }),
  ];
}

/** Of a task that is not refused. */
export const mcpServersIn = (servers: readonly TomlMcpServer[]): McpServers =>
  servers.map(({ name, transport, url = '', command = '', args }) =>
    transport === 'stdio' ? { name, transport, command, args } : { name, transport, url },
  );
