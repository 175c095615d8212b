/** Gemini CLI: generateContent, settings in a file that it takes for the system's: it must lie where nobody else can write. It is JavaScript and brings its Node. */
import type { McpServer } from '../../base/mcpServer.ts';
import { type InstalledProgram, mcpEntries, objectOf, shellWord } from './launch.ts';

function serverOf(server: McpServer) {
  if (server.transport === 'stdio') return { command: server.command, args: server.args };
  return server.transport === 'sse' ? { url: server.url } : { httpUrl: server.url };
}

export const geminiCli: InstalledProgram = {
  dialect: 'gemini',
  commandTools: ['run_shell_command'],
  mcp: ['stdio', 'sse', 'streamable-http'],
  exitCode: /Exit Code: (\d+)/,
  outputOf: (answer) => {
    const { output } = objectOf(answer);
    return typeof output === 'string' ? output : answer;
  },
  launch: ({ origin, key, model, folder, promptFile, programs, mcpServers }) => ({
    files: {
      'settings.json': JSON.stringify({
        security: { auth: { selectedType: 'gemini-api-key' } },
        general: { disableAutoUpdate: true, enableAutoUpdate: false },
        privacy: { usageStatisticsEnabled: false },
        telemetry: { enabled: false },
        ...mcpEntries('mcpServers', mcpServers, serverOf),
      }),
    },
    env: {
      GEMINI_API_KEY: key,
      GOOGLE_GEMINI_BASE_URL: origin,
      GEMINI_CLI_TRUST_WORKSPACE: 'true',
      GEMINI_CLI_SYSTEM_SETTINGS_PATH: `${folder}/settings.json`,
      GEMINI_CLI_NO_RELAUNCH: 'true',
    },
    command: `exec ${programs}/node/bin/node ${programs}/gemini/bundle/gemini.js --yolo --model ${shellWord(model)} --output-format json <${promptFile}`,
  }),
};
