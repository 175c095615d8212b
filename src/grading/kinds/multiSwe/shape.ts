/** What the readers of Multi-SWE-bench's logs have in common. */
import { eachLine } from '../../../base/python/lines.ts';
import { strip } from '../../../base/python/text.ts';

export interface TestSets {
  readonly passed: Set<string>;
  readonly failed: Set<string>;
  readonly skipped: Set<string>;
}

/** From the text of a run to the names of its tests. Pure, and linear in the length of the log. */
export type Shape = (log: string) => TestSets;

export const emptySets = (): TestSets => ({ passed: new Set(), failed: new Set(), skipped: new Set() });

/** A reader that looks at each line by itself; in an empty one no test is named. */
export const eachStripped =
  (read: (line: string, sets: TestSets) => void): Shape =>
  (log) => {
    const sets = emptySets();
    eachLine(log, (line) => {
      if (line !== '') read(strip(line), sets);
      return undefined;
    });
    return sets;
  };

/** What stands behind a mark at the start of a line. */
export const behind = (line: string, mark: string): string | undefined =>
  line.startsWith(mark) && line.length > mark.length ? line.slice(mark.length) : undefined;

const LONGEST_TAIL = 80;

/** A text without what a pattern finds at its end; the pattern sees only the last characters, which bounds its time. */
export function withoutTail(text: string, tail: RegExp): string {
  const from = Math.max(1, text.length - LONGEST_TAIL);
  const found = tail.exec(text.slice(from));
  return found === null ? text : text.slice(0, from + found.index);
}
