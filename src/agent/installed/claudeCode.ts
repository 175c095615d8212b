/** Claude Code: the Messages API, settings in variables. Its sub-agents and small calls ask the same model. */
import type { InstalledProgram } from './launch.ts';

export const claudeCode: InstalledProgram = {
  dialect: 'messages',
  commandTools: ['Bash'],
  exitCode: /Exit code (\d+)/,
  launch: ({ origin, key, model, home, promptFile, programs }) => ({
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
      // It may be root here: there is nothing around it to protect.
      IS_SANDBOX: '1',
      DISABLE_AUTOUPDATER: '1',
      // The gateway waits and tries again; what it answers is final.
      CLAUDE_CODE_MAX_RETRIES: '0',
      API_TIMEOUT_MS: '3600000',
    },
    command: `exec ${programs}/claude/claude -p --verbose --output-format=stream-json --dangerously-skip-permissions <${promptFile}`,
  }),
};
