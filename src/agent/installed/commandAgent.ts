/** Any program that the image, or the user's line, brings. The program finds the gateway in the variables that clients read. */
import { shellWord } from '../../base/text/shellWord.ts';
import { render } from '../../template/render.ts';
import { deadlineOf, stepsLeft } from '../limitsTold.ts';
import { ADDED_BIN } from './addedProgram.ts';
import { installedAgent } from './installedAgent.ts';
import type { InstalledProgram } from './launch.ts';

/** The facts of every agent that is started by the person's own line. */
export const ownLine = (agentClass: string, example: string) =>
  ({
    dialect: null,
    commandTools: 'any',
    takesProgram: true,
    equipment: 'named',
    missing: ({ command }) =>
      command === undefined
        ? {
            message: `agent_class ${agentClass} needs a shell line`,
            fix: `set agent.command, for example '${example}'`,
          }
        : null,
  }) satisfies Partial<InstalledProgram>;

export const commandAgent = installedAgent({
  ...ownLine('command', 'my-agent {{task}}'),
  launch: ({ origin, key, prompt, promptFile, model, config, equipment }) => ({
    env: {
      OPENAI_BASE_URL: `${origin}/v1`,
      ANTHROPIC_BASE_URL: origin,
      GOOGLE_GEMINI_BASE_URL: origin,
      OPENAI_API_KEY: key,
      ANTHROPIC_API_KEY: key,
      GEMINI_API_KEY: key,
    },
    command: [
      // The PATH is set only here: the grading afterwards finds nothing of it.
      ...(config.program === undefined ? [] : [`export PATH=${ADDED_BIN}:"$PATH"`]),
      renderCommand(config.command ?? '', {
        ...{ task: prompt, promptFile, model },
        deadline: deadlineOf(config, Date.now()),
        stepsLeft: stepsLeft(config, 0),
        skills: equipment?.skillsFolder ?? '',
        instructions: equipment?.instructionsFile ?? '',
      }),
    ].join('\n'),
  }),
});

/** The task comes as one word of the shell, because nobody knows what is in it. */
export const renderCommand = (
  template: string,
  {
    task,
    promptFile,
    model,
    deadline = '',
    stepsLeft = '',
    skills = '',
    instructions = '',
  }: {
    task: string;
    promptFile: string;
    model: string;
    deadline?: string;
    stepsLeft?: number | '';
    skills?: string;
    instructions?: string;
  },
): string =>
  render(template, {
    ...{ task: shellWord(task), prompt_file: promptFile, model: shellWord(model) },
    ...{ deadline, steps_left: stepsLeft, skills, instructions },
  });
