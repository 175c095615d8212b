/** OpenCode: chat completions, its configuration in a variable. */

import type { McpServer } from '../../base/mcpServer.ts';
import { shellWord } from '../../base/text/shellWord.ts';
import { installedAgent } from './installedAgent.ts';
import { mcpEntries } from './launch.ts';

const serverOf = (server: McpServer) =>
  server.transport === 'stdio'
    ? { type: 'local', command: [server.command, ...server.args] }
    : { type: 'remote', url: server.url, oauth: false };

export const openCode = installedAgent({
  dialect: 'chat',
  commandTools: ['bash'],
  mcp: ['stdio', 'sse', 'streamable-http'],
  finds: (home) => ({
    instructions: `${home}/config/opencode/AGENTS.md`,
    skills: `${home}/config/opencode/skills`,
  }),
  packages(version, arch) {
    const name = `opencode-linux-${arch}`;
    return {
      licence: 'MIT',
      variants: [
        { libc: 'glibc', packages: [{ name, version, folder: 'opencode' }] },
        { libc: 'musl', packages: [{ name: `${name}-musl`, version, folder: 'opencode' }] },
      ],
    };
  },
  launch: ({ origin, key, model, home, promptFile, programs, mcpServers }) => ({
    env: {
      OPENCODE_CONFIG_CONTENT: JSON.stringify({
        model: `gateway/${model}`,
        small_model: `gateway/${model}`,
        autoupdate: false,
        share: 'disabled',
        ...mcpEntries('mcp', mcpServers, serverOf),
        provider: {
          gateway: {
            npm: '@ai-sdk/openai-compatible',
            name: 'gateway',
            // Without it a streamed answer does not say what it used.
            options: { baseURL: `${origin}/v1`, apiKey: key, includeUsage: true },
            models: { [model]: { name: model } },
          },
        },
      }),
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      OPENCODE_DISABLE_SHARE: '1',
      XDG_CONFIG_HOME: `${home}/config`,
      XDG_DATA_HOME: `${home}/data`,
      XDG_STATE_HOME: `${home}/state`,
      XDG_CACHE_HOME: `${home}/cache`,
    },
    command: `exec ${programs}/opencode/bin/opencode run --model ${shellWord(`gateway/${model}`)} --format json --dangerously-skip-permissions <${promptFile}`,
  }),
});
