/** A raw dataset row becomes an Instance: its kind brings its columns under the names of SWE-bench. */
import { isRecord } from '../../base/isRecord.ts';
import { kindOf } from '../../base/text/errorText.ts';
import { kindOfRow } from '../kinds/datasetKinds.ts';
import { type NormalisedRow, normaliseColumns } from './readColumns.ts';

export function normaliseRow(given: unknown): NormalisedRow {
  if (!isRecord(given)) return { ok: false, messages: [`the row is ${kindOf(given)}, not an object`] };
  const kind = kindOfRow(given);
  return normaliseColumns(kind?.rows ? kind.rows.columns(given) : given, kind?.name, kind?.baseIsHead);
}
