/** Claude Code: the Messages API, settings in variables. Sub-agents and small calls ask the same model. */
import type { McpServer } from '../../base/mcpServer.ts';
import { installedAgent } from './installedAgent.ts';
import { mcpEntries } from './launch.ts';

const serverOf = (server: McpServer) =>
  server.transport === 'stdio'
    ? { type: 'stdio', command: server.command, args: server.args }
    : { type: server.transport === 'sse' ? 'sse' : 'http', url: server.url };

export const claudeCode = installedAgent({
  dialect: 'messages',
  commandTools: ['Bash'],
  mcp: ['stdio', 'sse', 'streamable-http'],
  finds: (home) => ({ instructions: `${home}/CLAUDE.md`, skills: `${home}/skills` }),
  exitCode: /Exit code (\d+)/,
  endUnknown:
    /<tool_use_error>|Command timed out|running in (?:the )?background|was (?:aborted|interrupted)|The user doesn't want/,
  packages(version, arch) {
    const name = `@anthropic-ai/claude-code-linux-${arch}`;
    return {
      licence: "Anthropic's commercial terms",
      variants: [
        { libc: 'glibc', packages: [{ name, version, folder: 'claude' }] },
        { libc: 'musl', packages: [{ name: `${name}-musl`, version, folder: 'claude' }] },
      ],
    };
  },
  launch: ({ origin, key, model, home, promptFile, programs, mcpServers }) => ({
    // Servers of its user need no consent; those of a project do.
    ...(mcpServers.length > 0 && {
      files: { '.claude.json': JSON.stringify(mcpEntries('mcpServers', mcpServers, serverOf)) },
    }),
    env: {
      ANTHROPIC_BASE_URL: origin,
      ANTHROPIC_AUTH_TOKEN: key,
      ANTHROPIC_MODEL: model,
      ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
      ANTHROPIC_DEFAULT_SONNET_MODEL: model,
      ANTHROPIC_DEFAULT_OPUS_MODEL: model,
      CLAUDE_CODE_SUBAGENT_MODEL: model,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      CLAUDE_CODE_DISABLE_AUTO_MEMORY: '1',
      CLAUDE_CONFIG_DIR: home,
      // The program may be root here: there is nothing around it to protect.
      IS_SANDBOX: '1',
      DISABLE_AUTOUPDATER: '1',
      // The gateway waits and tries again; what it answers is final.
      CLAUDE_CODE_MAX_RETRIES: '0',
      API_TIMEOUT_MS: '3600000',
    },
    command: `exec ${programs}/claude/claude -p --verbose --output-format=stream-json --dangerously-skip-permissions <${promptFile}`,
  }),
});
