/** eval_results.json of SWE-bench Pro: instance id to whether it is resolved, and nothing else. */

import { z } from 'zod';
import { isRecord } from '../../base/isRecord.ts';
import { instanceIdProblem } from '../../base/text/instanceId.ts';
import {
  jsonEntries,
  parseForeignJson,
  type RawBody,
  type Read,
  readerOf,
  readForeignFile,
  refused,
  usable,
} from '../foreignFile.ts';
import { type ForeignFormat, type ForeignVerdict, foreignId, type StatedVerdicts } from '../foreignFormat.ts';
import { runFromReport } from '../harness/reports.ts';

const VERDICT_MAP = /^\s{0,100}\{\s{0,100}"[^"]{1,200}"\s{0,100}:\s{0,100}(?:true|false)/;

export const pro: ForeignFormat = {
  recognise: ({ files, head }) =>
    files === null && VERDICT_MAP.test(head(''))
      ? { words: 'verdicts by instance (SWE-bench Pro)', certain: 'possible' }
      : null,
  read(source) {
    const read = verdictsOfMap(source);
    return read && runFromReport(source, read.verdicts);
  },
};

/** Null for a file of another kind. */
export function verdictsOfMap(path: string): StatedVerdicts | null {
  const map = usable(path, readVerdictMap(readForeignFile(path)));
  const verdicts = [...(map ?? [])].map(([id, resolved]): [string, ForeignVerdict] => [
    id,
    { verdict: resolved ? 'resolved' : 'unresolved', reason: null, report: null, grader: 'harness' },
  ]);
  const nothing = { open: null, printed: null, facts: new Map(), warnings: [] };
  return map && { kind: 'run-report', verdicts: new Map(verdicts), ...nothing };
}

const ofVerdictMap = readerOf(
  z.unknown(),
  (value) =>
    isRecord(value) &&
    Object.keys(value).length > 0 &&
    Object.values(value).every((verdict) => typeof verdict === 'boolean'),
  'it does not map instance ids to true or false',
);

/** Every key counts, also one that stands there twice, and `__proto__`, which an object of zod's does not have. */
export function readVerdictMap(text: RawBody): Read<ReadonlyMap<string, boolean>> {
  const read = ofVerdictMap(text);
  if (!read.ok) return read;
  const found = new Map<string, boolean>();
  for (const { key, value, line } of jsonEntries(parseForeignJson(text))) {
    const id = foreignId(key!);
    const wrong = instanceIdProblem(id);
    if (wrong !== null) return refused('damaged', `line ${line}: ${JSON.stringify(id)} ${wrong}`);
    if (typeof value !== 'boolean') return refused('damaged', `line ${line}: ${id} is not true or false`);
    if (found.has(id) && found.get(id) !== value)
      return refused('damaged', `line ${line}: ${id} is resolved and unresolved`);
    found.set(id, value);
  }
  return { ok: true, value: found };
}
