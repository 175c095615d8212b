/** Hashes of rows: equal where the same rows came in another form of file. */
import { isRecord } from '../../base/isRecord.ts';
import { sha256 } from '../../base/sha256.ts';
import type { Instance } from '../instance.ts';

/** JSON with sorted keys: the same row has the same hash whether it was read from lines, an array or Parquet. */
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical);
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, canonical(value[key])]),
  );
}
const hashOf = (value: unknown) => sha256(JSON.stringify(canonical(value)));

/** Hash of the whole normalised row. Its kind follows from the row. */
export const rowHashOf = ({ kind: _, ...row }: Instance): string => hashOf(row);

/** Hash of the columns that decide a verdict. Revisions of a dataset differ in exactly these. */
export const gradingHashOf = (
  row: Pick<Instance, 'eval_script' | 'FAIL_TO_PASS' | 'PASS_TO_PASS' | 'test_patch'>,
): string => hashOf([row.eval_script ?? null, row.FAIL_TO_PASS, row.PASS_TO_PASS, row.test_patch]);
