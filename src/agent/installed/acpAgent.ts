/**
 * Any program that speaks the Agent Client Protocol (version 1, agentclientprotocol.com) over its standard streams. A client of ours runs
 * beside it in the container: one session, one prompt; permissions by policy, a cancel at the limit, before it is killed. The program's own
 * account (calls of tools, plan, reason to stop) is evidence; the gateway's record counts.
 */
import { readFileSync } from 'node:fs';
import type { McpServer } from '../../base/mcpServer.ts';
import { shellWord } from '../../base/text/shellWord.ts';
import { NODE } from './addedProgram.ts';
import { commandAgent, ownLine } from './commandAgent.ts';
import { installedAgent } from './installedAgent.ts';
import { objectOf } from './launch.ts';

const CLIENT = readFileSync(new URL('acpClient.mjs', import.meta.url), 'utf8');

/** A server as the protocol has it; servers of variables and headers are none of ours. */
const serverOf = (server: McpServer) =>
  server.transport === 'stdio'
    ? { name: server.name, command: server.command, args: server.args, env: [] }
    : { type: server.transport === 'sse' ? 'sse' : 'http', name: server.name, url: server.url, headers: [] };

/** The line that our client wrote last. */
export function acpSummary(output: string): Readonly<Record<string, unknown>> {
  const line = output.split('\n').findLast((one) => one.startsWith('{"acp":'));
  return line === undefined ? {} : objectOf(line);
}

export const acpAgent = installedAgent({
  ...ownLine('acp', 'gemini --acp'),
  mcp: ['stdio', 'sse', 'streamable-http'],
  says: acpSummary,
  launch(facts) {
    const { env, command } = commandAgent.launch(facts);
    const { promptFile, folder, config, mcpServers } = facts;
    const client = `${folder}/acpClient.mjs`;
    return {
      files: { 'acpClient.mjs': CLIENT },
      env: {
        ...env,
        SWEBATCH_ACP_PERMISSIONS: config.permissions ?? 'allow',
        ...(mcpServers.length > 0 && { SWEBATCH_ACP_MCP: JSON.stringify(mcpServers.map(serverOf)) }),
      },
      // The Node that came with the program, or the image's.
      command: `node=${NODE}; [ -x "$node" ] || node=node\nexec "$node" ${shellWord(client)} ${shellWord(promptFile)} ${shellWord(command)}`,
    };
  },
});
