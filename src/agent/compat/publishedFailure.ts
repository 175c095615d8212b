/** What mini-swe-agent 2.4.6 tells the model when Python could not run a command or killed it: words of subprocess, which it catches whole. */

import { repr } from '../../base/python/values.ts';
import type { CommandResult, Environment } from '../../environment/environment.ts';
import { type Action, textResult } from '../action.ts';

const SAID = 'An error occurred while executing the command: ';

/** Linux takes no single argument of 128 KiB or more; Python encodes the command and adds a NUL. */
const LONGEST_ARGUMENT = 128 * 1024 - 1;

/** A command that never starts there: its result, else null. Nothing is run for it. */
export function refusedByPython({ command, notText }: Action): CommandResult | null {
  const why =
    notText !== undefined
      ? `expected str, bytes or os.PathLike object, not ${notText}`
      : command.includes('\0')
        ? 'embedded null byte'
        : Buffer.byteLength(command) > LONGEST_ARGUMENT
          ? "[Errno 7] Argument list too long: 'docker'"
          : null;
  return why === null ? null : { ...textResult('', -1), exceptionInfo: SAID + why };
}

/** '' for a command that ended by itself: whatever else is known of it, the published agent does not say. */
export function publishedFailure(result: CommandResult, command: string, environment: Environment): string {
  // A recording has the words themselves: the container that they name is long gone.
  if (environment.info.kind === 'recorded') return result.exceptionInfo;
  if (result.timedOut)
    return `${SAID}Command '${repr(dockerArgv(command, environment))}' timed out after ${timeoutOf(environment)} seconds`;
  return result.exitCode === -1 ? result.exceptionInfo : '';
}

/** `output.extra` of the observation template: the exception by its class and its text. */
export const failureVars = (exceptionInfo: string) =>
  exceptionInfo === ''
    ? {}
    : {
        extra: {
          exception_type: exceptionType(exceptionInfo),
          exception: exceptionInfo.replace(SAID, ''),
        },
      };

export function exceptionType(exceptionInfo: string): string {
  const text = exceptionInfo.replace(SAID, '');
  if (/ timed out after \S+ seconds$/.test(text)) return 'TimeoutExpired';
  if (text.startsWith('[Errno ')) return 'OSError';
  return text.startsWith('expected str') ? 'TypeError' : 'ValueError';
}

const timeoutOf = (environment: Environment): string => String(environment.templateVars().timeout ?? 60);

function dockerArgv(command: string, environment: Environment): string[] {
  const vars = environment.templateVars();
  const env = (vars.env ?? {}) as Readonly<Record<string, string>>;
  const interpreter = (vars.interpreter ?? ['bash', '-c']) as readonly string[];
  return [
    'docker',
    'exec',
    '-w',
    String(vars.cwd ?? '/'),
    ...Object.entries(env).flatMap(([key, value]) => ['-e', `${key}=${value}`]),
    environment.info.containerId ?? '',
    ...interpreter,
    command,
  ];
}
