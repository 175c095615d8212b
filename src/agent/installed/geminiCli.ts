/** Gemini CLI: generateContent, settings in a file that it takes for the system's and nobody else can write. JavaScript that brings its Node. */

import type { McpServer } from '../../base/mcpServer.ts';
import { shellWord } from '../../base/text/shellWord.ts';
import { NODE, nodePackage } from './addedProgram.ts';
import { installedAgent } from './installedAgent.ts';
import { mcpEntries, objectOf } from './launch.ts';

function serverOf(server: McpServer) {
  if (server.transport === 'stdio') return { command: server.command, args: server.args };
  return server.transport === 'sse' ? { url: server.url } : { httpUrl: server.url };
}

export const geminiCli = installedAgent({
  dialect: 'gemini',
  commandTools: ['run_shell_command'],
  mcp: ['stdio', 'sse', 'streamable-http'],
  finds: (home) => ({ instructions: `${home}/.gemini/GEMINI.md`, skills: `${home}/.gemini/skills` }),
  exitCode: /Exit Code: (\d+)/,
  outputOf: (answer) => {
    const { output } = objectOf(answer);
    return typeof output === 'string' ? output : answer;
  },
  packages: (version, arch) => ({
    licence: 'Apache-2.0',
    variants: [
      {
        libc: 'glibc',
        packages: [{ name: '@google/gemini-cli', version, folder: 'gemini' }, nodePackage(arch)],
      },
    ],
  }),
  launch: ({ origin, key, model, folder, home, promptFile, programs, mcpServers, equipment }) => ({
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
      ...(equipment && { GEMINI_CLI_HOME: home }),
    },
    command: `exec ${NODE} ${programs}/gemini/bundle/gemini.js --yolo --model ${shellWord(model)} --output-format json <${promptFile}`,
  }),
});
