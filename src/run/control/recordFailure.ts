/**
 * When the record cannot be kept, nothing new starts, running attempts end as by a second interrupt, and the first error is thrown at the
 * end, after an orderly shutdown.
 */

import { errorText } from '../../base/text/errorText.ts';
import { StorageError } from '../../store/open.ts';
import type { StopLadder } from './stop.ts';

export interface RecordFailure {
  report(error: unknown): void;
  /** For a write in a callback, which cannot throw. */
  guard(write: () => void): void;
  /** For an error after the work: thrown at the end, unless there was one before. */
  note(error: unknown): void;
  throwIfAny(): void;
}

export function createRecordFailure(stop: StopLadder): RecordFailure {
  let first: unknown = null;
  const report = (error: unknown) => {
    if (first !== null) return;
    first = error;
    stop.stopStarting('internal_error', errorText(error));
    while (stop.stage < 2) stop.interrupt('a storage error');
  };
  return {
    report,
    guard(write) {
      try {
        write();
      } catch (error) {
        report(error);
      }
    },
    note(error) {
      first ??= error;
    },
    throwIfAny() {
      if (first === null) return;
      throw first instanceof Error ? first : new StorageError('write_failed', String(first));
    },
  };
}
