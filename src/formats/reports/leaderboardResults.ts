/** results/ of a leaderboard entry: results.json names the resolved ids, resolved_by_repo.json how many instances each repository has. */

import { z } from 'zod';
import { isRecord } from '../../base/isRecord.ts';
import { instanceIdSchema } from '../../base/text/instanceId.ts';
import { type Body, type Read, readForeign } from '../foreignJson.ts';

const ids = z.array(instanceIdSchema).default([]);
const resultsSchema = z.looseObject({
  resolved: z.array(instanceIdSchema),
  no_generation: ids,
  no_logs: ids,
});

export type LeaderboardResults = z.infer<typeof resultsSchema>;
export const readLeaderboardResults = (text: Body): Read<LeaderboardResults> =>
  readForeign(
    text,
    resultsSchema,
    (value) => isRecord(value) && Array.isArray(value.resolved),
    'it has no list of resolved ids, so it is not a results.json of the leaderboard',
  );

const totalsSchema = z.record(z.string(), z.looseObject({ total: z.number() }));

/** Repository to number of instances. */
export function readRepoTotals(text: Body): Read<ReadonlyMap<string, number>> {
  const read = readForeign(text, totalsSchema, isRecord, 'it does not say the total of each repository');
  if (!read.ok) return read;
  return { ok: true, value: new Map(Object.entries(read.value).map(([repo, { total }]) => [repo, total])) };
}
