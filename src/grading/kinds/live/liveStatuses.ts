/** Test statuses as SWE-bench-Live names them, and its own reader for pytest. Pure. */
import { tokens } from '../../../base/python/text.ts';
import { STATUS_WORDS } from '../../parsers/logParser.ts';

/** Words of others are kept: only those with "pass" or "fail" in them count. */
export type LiveStatuses = ReadonlyMap<string, string>;

/** As its evaluation reads a log of pytest: an expected failure counts as a failure there. */
export function livePytest(log: string): LiveStatuses {
  const found = new Map<string, string>();
  for (const line of log.split('\n')) {
    if (!STATUS_WORDS.some((word) => line.startsWith(word))) continue;
    const [status, name] = tokens(line.startsWith('FAILED') ? line.replaceAll(' - ', ' ') : line);
    if (status === undefined || name === undefined) continue;
    const word = status.toLowerCase();
    found.set(name, word.includes('pass') ? 'pass' : word.includes('skip') ? 'skip' : 'fail');
  }
  return found;
}

/** Names whose status has a word in it. */
export const namesWith = (statuses: LiveStatuses, word: 'pass' | 'fail'): ReadonlySet<string> =>
  new Set([...statuses].filter(([, status]) => status.toLowerCase().includes(word)).map(([name]) => name));
