/** results/ of a leaderboard entry: results.json names the resolved ids, resolved_by_repo.json how many instances each repository has. */

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { isRecord } from '../../base/isRecord.ts';
import { keyed } from '../../base/keyed.ts';
import { instanceIdSchema } from '../../base/text/instanceId.ts';
import { readForeignFile } from '../foreignFile.ts';
import type { ForeignInstance, ForeignOutcome, ForeignRun, ReadVerdicts } from '../foreignFormat.ts';
import { type RawBody, type Read, readForeign } from '../foreignJson.ts';

/** Where an entry keeps them, in the order in which they are looked for. */
export const RESULTS = ['results/results.json', 'results.json'];

export const RESOLVED_LIST = /"resolved"\s{0,100}:\s{0,100}\[/;

const ids = z.array(instanceIdSchema).default([]);
const resultsSchema = z.looseObject({
  resolved: z.array(instanceIdSchema),
  no_generation: ids,
  no_logs: ids,
});

export type LeaderboardResults = z.infer<typeof resultsSchema>;
export const readLeaderboardResults = (text: RawBody): Read<LeaderboardResults> =>
  readForeign(
    text,
    resultsSchema,
    (value) => isRecord(value) && Array.isArray(value.resolved),
    'it has no list of resolved ids, so it is not a results.json of the leaderboard',
  );

const totalsSchema = keyed(z.looseObject({ total: z.number() }));

/** Repository to number of instances. */
export function readRepoTotals(text: RawBody): Read<ReadonlyMap<string, number>> {
  const read = readForeign(text, totalsSchema, isRecord, 'it does not say the total of each repository');
  if (!read.ok) return read;
  return { ok: true, value: new Map(Object.entries(read.value).map(([repo, { total }]) => [repo, total])) };
}

/** results.json of a leaderboard entry lists resolved instances; all other predictions are unresolved. Null for another kind of file. */
export function verdictsOfLeaderboard(path: string, instances: ForeignRun['instances']): ReadVerdicts | null {
  const read = readLeaderboardResults(readForeignFile(path));
  if (!read.ok)
    return read.fault === 'damaged'
      ? { ok: false, message: `${path} cannot be used: ${read.message}` }
      : null;
  const { resolved, no_generation, no_logs } = read.value;
  const [won, empty, lost] = [new Set(resolved), new Set(no_generation), new Set(no_logs)];
  const verdictOf = ({ instanceId: id, modelPatch }: ForeignInstance): ForeignOutcome => {
    if (won.has(id)) return 'resolved';
    if (lost.has(id)) return 'error';
    return empty.has(id) || modelPatch === '' ? 'empty_patch' : 'unresolved';
  };
  return {
    ok: true,
    verdicts: new Map(
      instances.map((i) => [
        i.instanceId,
        { verdict: verdictOf(i), reason: null, report: null, grader: 'harness' },
      ]),
    ),
    printed: { resolved: won.size, of: datasetSize(path) ?? instances.length },
  };
}

/** The leaderboard's rate is over the whole dataset, also where a prediction is missing. */
function datasetSize(results: string): number | null {
  const path = join(dirname(results), 'resolved_by_repo.json');
  const totals = existsSync(path) ? readRepoTotals(readForeignFile(path)) : null;
  return totals?.ok ? [...totals.value.values()].reduce((sum, total) => sum + total, 0) : null;
}
