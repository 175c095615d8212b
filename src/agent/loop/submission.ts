/**
 * When a command's output submits, and what it submits. Byte-exact: a patch that went through text decoding loses CRLF line ends and
 * invalid UTF-8, and then no longer applies.
 */

import { LINE_BREAKS } from '../../base/python/lines.ts';
import { SPACE, strip } from '../../base/python/text.ts';
import type { CommandResult } from '../../environment/environment.ts';

export const SUBMIT_MARKERS = [
  'COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT',
  'MINI_SWE_AGENT_FINAL_OUTPUT',
] as const;

export interface Submission {
  readonly text: string;
  readonly bytes: Uint8Array;
}

/** Leading white space, the first line, its line break: in Python's alphabets, which differ from JavaScript's `trim` and `\s`. */
const FIRST_LINE = new RegExp(`^[${SPACE}]*([^${LINE_BREAKS}]*)(?:\\r\\n|[${LINE_BREAKS}]|$)`);

/** Text of `output` up to and including the marker's line, or null when the first line is not a marker. */
export function markerPrefix(output: string, markers: readonly string[] = SUBMIT_MARKERS): string | null {
  const found = FIRST_LINE.exec(output);
  const line = strip(found?.[1] ?? '');
  return found && markers.includes(line) ? found[0] : null;
}

/**
 * The submission in a result, or null. The prefix is white space and ASCII, so its length in bytes is known from its text
 * and the rest of the raw bytes is untouched.
 */
export function submissionOf(
  result: Pick<CommandResult, 'raw' | 'exitCode' | 'timedOut'>,
): Submission | null {
  if (result.timedOut || result.exitCode !== 0) return null;
  const raw = Buffer.from(result.raw.buffer, result.raw.byteOffset, result.raw.byteLength);
  const prefix = markerPrefix(raw.toString('utf8'));
  if (prefix === null) return null;
  const bytes = raw.subarray(Buffer.byteLength(prefix, 'utf8'));
  return { text: bytes.toString('utf8'), bytes };
}
