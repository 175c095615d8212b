/** What the demo's model does after so many results of tools: the replies in datasets/demo/replies, as calls of whatever shell tool is offered. Pure. */

export interface ShellTool {
  readonly name: string;
  readonly parameters?: { readonly properties?: Readonly<Record<string, unknown>> };
}

/** A call, or the last words. */
export type DemoTurn =
  | { readonly name: string; readonly args: Readonly<Record<string, string>> }
  | { readonly say: string };

/** Tools that run a shell command, as the agents call them. */
const SHELL = ['bash', 'exec_command', 'run_shell_command', 'Bash'];

/** A reply with no block, or with several, is one that shows what happens to broken replies: another agent has no such thing. */
export const commandsOf = (replies: readonly { readonly content: string }[]): string[] =>
  replies.flatMap(({ content }) => {
    const blocks = [...content.matchAll(/^```bash\n([\s\S]*?)\n```$/gm)];
    return blocks.length === 1 ? [blocks[0]![1]!] : [];
  });

function argsFor(tool: ShellTool, command: string): Readonly<Record<string, string>> {
  const known = tool.parameters?.properties ?? {};
  return {
    ['cmd' in known ? 'cmd' : 'command']: command,
    ...('description' in known && { description: 'a step' }),
  };
}

export function demoTurn(commands: readonly string[], done: number, tools: readonly ShellTool[]): DemoTurn {
  const shell = tools.find(({ name }) => SHELL.includes(name));
  const command = commands[done];
  if (!shell || command === undefined) return { say: 'The report is resolved.' };
  return { name: shell.name, args: argsFor(shell, command) };
}
