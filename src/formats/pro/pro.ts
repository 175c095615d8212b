/** eval_results.json of SWE-bench Pro: instance id to whether it is resolved, and nothing else. */

import { z } from 'zod';
import { isRecord } from '../../base/isRecord.ts';
import { keyed } from '../../base/keyed.ts';
import { instanceIdSchema } from '../../base/text/instanceId.ts';
import { readForeignFile } from '../foreignFile.ts';
import type { ForeignFormat, ForeignVerdicts } from '../foreignFormat.ts';
import { type RawBody, type Read, readForeign } from '../foreignJson.ts';
import { runFromReport } from '../harness/reports.ts';

const VERDICT_MAP = /^\s{0,100}\{\s{0,100}"[^"]{1,200}"\s{0,100}:\s{0,100}(?:true|false)/;

export const pro: ForeignFormat = {
  recognise: ({ files, head }) =>
    files === null && VERDICT_MAP.test(head(''))
      ? { words: 'verdicts by instance (SWE-bench Pro)', certain: 'possible' }
      : null,
  read(source) {
    const verdicts = verdictsOfMap(source);
    return verdicts && runFromReport(source, verdicts);
  },
};

/** Null for a file of another kind. */
export function verdictsOfMap(path: string): ForeignVerdicts | null {
  const read = readVerdictMap(readForeignFile(path));
  if (!read.ok) return null;
  return new Map(
    [...read.value].map(([id, resolved]) => [
      id,
      { verdict: resolved ? 'resolved' : 'unresolved', reason: null, report: null, grader: 'harness' },
    ]),
  );
}

const verdictsSchema = keyed(z.boolean(), instanceIdSchema);

export function readVerdictMap(text: RawBody): Read<ReadonlyMap<string, boolean>> {
  const read = readForeign(
    text,
    verdictsSchema,
    (value) =>
      isRecord(value) &&
      Object.keys(value).length > 0 &&
      Object.values(value).every((verdict) => typeof verdict === 'boolean'),
    'it does not map instance ids to true or false',
  );
  return read.ok ? { ok: true, value: new Map(Object.entries(read.value)) } : read;
}
