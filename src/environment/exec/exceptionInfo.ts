/** The failure of a command, in words for the model: `CommandResult.exceptionInfo`. */
import { formatSize } from '../../base/text/units.ts';
import type { CommandResult, ExecuteOptions } from '../environment.ts';
import type { EnvironmentConfig } from '../environmentConfig.ts';
import { MAX_ARGV_BYTES } from './transport.ts';

/** An environment entry is an argv string to the kernel: the same limit. */
const MAX_ENTRY_BYTES = 131_000;

/** Shells read a long command from a file (`. FILE`); another interpreter gets it as an argument or not at all. */
const readsFiles = (interpreter: readonly string[]) =>
  interpreter.some((part) => /^(?:.*\/)?(?:ba|da|z|mk|k|a|fi)?sh$/.test(part));

/** The reason against a command before anything is started, or undefined. */
export function commandRefusal(
  command: string,
  options: ExecuteOptions,
  config: Pick<EnvironmentConfig, 'interpreter' | 'max_command_bytes'>,
): string | undefined {
  const bytes = Buffer.byteLength(command);
  const limit = readsFiles(config.interpreter)
    ? config.max_command_bytes
    : Math.min(config.max_command_bytes, MAX_ARGV_BYTES);
  if (bytes > limit)
    return `command is ${formatSize(bytes)}; limit ${formatSize(limit)}. It was not run: write the content in several smaller commands.`;
  if (command.includes('\0'))
    return 'command contains a NUL character, which no shell can take. It was not run: use printf or python to write such bytes.';
  for (const [name, value] of Object.entries(options.env ?? {})) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || value.includes('\0'))
      return `environment variable ${JSON.stringify(name)} cannot be set. The command was not run.`;
    if (Buffer.byteLength(value) > MAX_ENTRY_BYTES)
      return `environment variable ${name} is ${formatSize(Buffer.byteLength(value))}; limit ${formatSize(MAX_ENTRY_BYTES)}. The command was not run.`;
  }
  return undefined;
}

/** The obstacle that the place itself found. */
export function placeRefusal(why: 'nocwd' | 'nofile' | 'nofork', cwd: string): string {
  const reason = {
    nocwd: `the working directory ${cwd} does not exist.`,
    nofile: 'the command is too long to be passed as an argument and no temporary file can be written.',
    nofork: 'no process could be started.',
  };
  return `${reason[why]} The command was not run.`;
}

/** Exit code 126, as for something that cannot be executed. */
export const refusedResult = (
  exceptionInfo: string,
  transport: CommandResult['transport'],
): CommandResult => ({
  output: '',
  raw: new Uint8Array(0),
  exitCode: 126,
  timedOut: false,
  totalBytes: 0,
  omittedBytes: 0,
  replacedBytes: 0,
  durationMs: 0,
  oomKilled: false,
  transport,
  exceptionInfo,
});

export const timeoutInfo = (timeoutS: number): string =>
  `timed out after ${timeoutS}s: the command and everything it started were killed; what it printed until then is kept. Commands have no input (stdin is empty) and no terminal.`;
