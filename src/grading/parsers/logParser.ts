/** What a log parser is: a pure function from the text of a test run to the status of each test it names. */
import type { GradingConfig } from '../gradingConfig.ts';

export type HarnessDialect = GradingConfig['dialect'];

/** Statuses that mean something to grading. A map can hold other words too: `PASSED:` is what a log said, and counts as nothing. */
export const STATUS_WORDS = ['FAILED', 'PASSED', 'SKIPPED', 'ERROR', 'XFAIL'] as const;
export type Status = (typeof STATUS_WORDS)[number];

export interface ParserContext {
  readonly instanceId: string;
  readonly version: string;
  readonly dialect: HarnessDialect;
}

const passes = (status: string) => status === 'PASSED' || status === 'XFAIL';
const fails = (status: string) => status === 'FAILED' || status === 'ERROR';

/** Test name to status; the last word wins, as in the official parsers. Remembers which failures were later called passes. */
export class StatusMap extends Map<string, string> {
  readonly overruled = new Set<string>();
  override set(name: string, status: string): this {
    const before = this.get(name);
    if (before !== undefined && fails(before) && passes(status)) this.overruled.add(name);
    return super.set(name, status);
  }
}

export type LogParser = (log: string, context: ParserContext) => ReadonlyMap<string, string>;

/** The parser gave up on a log. The official harness loses the instance to an exception in the same places. */
export class ParserError extends Error {
  override readonly name = 'ParserError';
}

/**
 * Guards parsers that put the names of enclosing suites before each test: a log with one endless suite name and many tests would make
 * names of quadratic size. The allowance grows with the log, so every real one fits many times over.
 */
export function nameBudget(log: string): (name: string) => string {
  let left = Math.max(64 * 1024 * 1024, log.length * 16);
  return (name) => {
    left -= name.length;
    if (left < 0)
      throw new ParserError('the names of nested suites in this log add up to far more than the log itself');
    return name;
  };
}
