/** eval_results.json of SWE-bench Pro: instance id to whether it is resolved, and nothing else. */
import { z } from 'zod';
import { isRecord } from '../../base/isRecord.ts';
import { instanceIdSchema } from '../../base/text/instanceId.ts';
import { type Body, type Read, readForeign } from '../foreignJson.ts';

const verdictsSchema = z.record(instanceIdSchema, z.boolean());

export function readVerdictMap(text: Body): Read<ReadonlyMap<string, boolean>> {
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
