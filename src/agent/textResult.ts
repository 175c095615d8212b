/** The result of a command of which only its output as a text is known: for replayed trajectories and for templates that are tried out. */
import type { CommandResult } from '../environment/environment.ts';

export function textResult(output: string, exitCode = 0, timedOut = false): CommandResult {
  const raw = Buffer.from(output);
  return {
    output,
    raw,
    exitCode,
    timedOut,
    totalBytes: raw.length,
    omittedBytes: 0,
    replacedBytes: 0,
    durationMs: 0,
    oomKilled: false,
    transport: 'local',
    exceptionInfo: '',
  };
}
