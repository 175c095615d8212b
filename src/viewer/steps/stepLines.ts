/** A trajectory as one line for each step: what it does, how it ended, its time and its cost. */
import type { OutlineRow } from '../documents/documents.ts';

export interface StepLine {
  /** Place of the answer in the outline. */
  readonly index: number;
  readonly row: OutlineRow;
  readonly exitCode: number | null;
  readonly timedOut: boolean;
  readonly ms: number | null;
}

/** One line for each answer; how it ended stands in the observations that follow it. */
export function stepLines(outline: readonly OutlineRow[]): StepLine[] {
  const lines: StepLine[] = [];
  for (const [index, row] of outline.entries()) {
    const open = lines.at(-1);
    if (row.role === 'assistant') {
      lines.push({ index, row, exitCode: null, timedOut: false, ms: row.call?.latency_ms ?? null });
    } else if (open) {
      lines[lines.length - 1] = {
        ...open,
        exitCode: row.exitCode ?? open.exitCode,
        timedOut: open.timedOut || row.timedOut,
        ms: row.execMs === null ? open.ms : (open.ms ?? 0) + row.execMs,
      };
    }
  }
  return lines;
}
