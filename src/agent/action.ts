/** What a reply can ask for: a command to run, or a call that cannot run and still needs its answer. */

import type { CommandResult } from '../environment/environment.ts';

/** A command to run. */
export interface Action {
  readonly command: string;
  readonly callId?: string;
  /** Python's name for the kind of value that came where text belongs: version 2 lets the engine's command line refuse it. */
  readonly notText?: string;
}
/** A tool call that cannot run, and why: it still needs its answer. */
interface Refused {
  readonly callId: string;
  readonly error: string;
}
export type Call = Action | Refused;
export const isAction = (call: Call): call is Action => 'command' in call;

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
