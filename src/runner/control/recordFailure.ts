/**
 * What happens when the record cannot be kept: nothing new starts, what runs is ended as by a second interrupt, and the first error is
 * thrown at the end, when everything has come down in order.
 */
import { StorageError } from '../../store/open.ts';
import type { StopLadder } from './stop.ts';

export interface RecordFailure {
  report(error: unknown): void;
  /** A write whose caller has nobody to throw at. */
  guard(write: () => void): void;
  /** For an error that stops nothing any more: thrown at the end, unless the record broke before. */
  note(error: unknown): void;
  throwIfAny(): void;
}

export function createRecordFailure(stop: StopLadder): RecordFailure {
  let first: unknown = null;
  const report = (error: unknown) => {
    if (first !== null) return;
    first = error;
    stop.stopStarting('internal_error', error instanceof Error ? error.message : String(error));
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
