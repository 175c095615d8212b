/** What agents are asked: the instruction of the task as it is, and below it how the container is worked in. There is no repository, and nothing is handed in. */
import type { SuitePrompts } from '../suite.ts';

const INSTRUCTION = `{{ task }}

How you work

- You are in a container, in {{ cwd }}, and work through its shell. Each command runs in a new shell there: a \`cd\` or an exported
  variable is gone with the next one.
- Nobody answers prompts. Use flags such as -y, print files with sed or head, and write them with a heredoc; editors and pagers
  do not work.
- A command may take {{ timeout }} seconds; start in the background what is to go on. Long output is cut in the middle.
`;

const DONE = `
What counts is the state in which you leave the container; tests that you cannot see judge it. When you are done, say so by a command of
its own:`;

const MARKER = 'echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT';

export const prompts: SuitePrompts = {
  system: 'You are an experienced engineer. You work in a container through its shell.\n',
  instance: {
    'bash-block': `${INSTRUCTION}
Reply in this form, and in no other: a few sentences of thought, then exactly ONE block that starts with \`\`\`bash and holds ONE command
(several can be joined with && or ||). A reply with no block, or with more than one, is not run.
${DONE}

\`\`\`bash
${MARKER}
\`\`\`
`,
    'tool-call': `${INSTRUCTION}
In every reply say in a few sentences what you know now and what comes next, and call the tool \`bash\` at least once.
${DONE}

\`\`\`
${MARKER}
\`\`\`
`,
  },
  program: '{{ task }}',
};
