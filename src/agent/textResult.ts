/** The result of a command when only the text of its output is known: for replayed trajectories and for trial renderings of templates. */
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
