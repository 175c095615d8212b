/** OpenCode: chat completions, its configuration in a variable. */
import { type InstalledProgram, shellWord } from './launch.ts';

export const openCode: InstalledProgram = {
  dialect: 'chat',
  commandTools: ['bash'],
  launch: ({ origin, key, model, home, promptFile, programs }) => ({
    env: {
      OPENCODE_CONFIG_CONTENT: JSON.stringify({
        model: `gateway/${model}`,
        small_model: `gateway/${model}`,
        autoupdate: false,
        share: 'disabled',
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
};
