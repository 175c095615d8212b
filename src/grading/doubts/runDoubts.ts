/** Doubts that the run of the tests raises, whatever they printed. */
import { compact } from '../../base/compact.ts';
import type { TestRun } from '../runTests.ts';
import { type Finding, finding, limitMet } from './patchDoubts.ts';

export type DoubtedRun = Pick<TestRun, 'omittedBytes' | 'scriptKept' | 'scriptEnded' | 'limitsMet'>;

export const runDoubts = ({ omittedBytes, scriptKept, scriptEnded, limitsMet }: DoubtedRun): Finding[] =>
  compact([
    omittedBytes > 0 &&
      finding('log_truncated', 'the middle of the log is missing', `${omittedBytes} bytes did not fit`),
    // Bash reads a script while it runs, so what the tests write into it decides what comes after them.
    !scriptKept &&
      finding('script_changed', 'the eval script was changed or removed while it ran', '/eval.sh'),
    !scriptEnded &&
      finding(
        'script_cut_off',
        'the eval script did not end by itself: something killed it while it ran',
        '/eval.sh',
      ),
    limitsMet !== '' && limitMet(limitsMet),
  ]);
