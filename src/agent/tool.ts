/**
 * The tool layer of the seeds' error architecture. Import it as a namespace: `import type * as Tool from './tool.ts'` gives `Tool.Result`.
 * A tool always returns a result; what went wrong is in its output and metadata. Only a broken environment is an exception, and the slot's.
 */
import type { CommandResult, Environment } from '../environment/environment.ts';
import type { ToolSpec } from '../model/model.ts';

export interface Result<M = Readonly<Record<string, unknown>>> {
  /** One short line for people. */
  readonly title: string;
  readonly metadata: M;
  /** The answer for the model; on failure it begins with `Error: `. */
  readonly output: string;
}

export interface Context {
  readonly signal?: AbortSignal | undefined;
}

export const TOOL_ERROR_CODES = [
  'VALIDATION_ERROR',
  'IO_ERROR',
  'CONFIG_ERROR',
  'PERMISSION_DENIED',
  'NOT_FOUND',
  'LLM_ASSIST_REQUIRED',
  'RATE_LIMITED',
  'TIMEOUT',
  'UNKNOWN',
] as const;
export type ToolErrorCode = (typeof TOOL_ERROR_CODES)[number];

export interface Tool<A, M> {
  readonly spec: ToolSpec;
  execute(args: A, context?: Context): Promise<Result<M>>;
}

export interface BashMetadata {
  readonly exitCode: number;
  readonly error?: ToolErrorCode;
  /** The command's result, as far as it is known. */
  readonly result: CommandResult;
}

/** The tool as models that call tools are told of it, in exactly mini-swe-agent 2's words. */
export const BASH_TOOL: ToolSpec = {
  type: 'function',
  function: {
    name: 'bash',
    description: 'Execute a bash command',
    parameters: {
      type: 'object',
      properties: { command: { type: 'string', description: 'The bash command to execute' } },
      required: ['command'],
    },
  },
};

/** The only tool: a command in a fresh shell of the environment. */
export function bashTool(environment: Environment): Tool<{ command: string }, BashMetadata> {
  return {
    spec: BASH_TOOL,
    async execute({ command }, context = {}) {
      const result = await environment.execute(command, { signal: context.signal });
      return {
        title: titleOf(command),
        metadata: {
          exitCode: result.exitCode,
          ...(errorOf(result) ? { error: errorOf(result) as ToolErrorCode } : {}),
          result,
        },
        output: result.exceptionInfo ? `${result.output}\nError: ${result.exceptionInfo}` : result.output,
      };
    },
  };
}

/** Shell conventions: 126 found but not executable, 127 not found. Any other code is the command's own business. */
function errorOf(result: CommandResult): ToolErrorCode | undefined {
  if (result.timedOut) return 'TIMEOUT';
  if (result.exitCode === 126) return 'PERMISSION_DENIED';
  if (result.exitCode === 127) return 'NOT_FOUND';
  return result.exceptionInfo ? 'IO_ERROR' : undefined;
}

const titleOf = (command: string): string => {
  const line = command.trim().split('\n', 1)[0] ?? '';
  return line.length > 60 ? `${line.slice(0, 59)}…` : line || 'empty command';
};
