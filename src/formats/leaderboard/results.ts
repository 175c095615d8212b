/** results/ of a leaderboard entry: results.json names the resolved ids, resolved_by_repo.json how many instances each repository has. */

import { existsSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { isRecord } from '../../base/isRecord.ts';
import { keyed } from '../../base/keyed.ts';
import { beginningOf, readerOf, readForeignFile, usable } from '../foreignFile.ts';
import {
  alsoListed,
  type ForeignVerdict,
  foreignIds,
  type IdLists,
  refuseContradictions,
  repeatedIds,
  type StatedVerdicts,
  verdictsOfLists,
} from '../foreignFormat.ts';
import { PREDICTIONS, readPredictions } from '../predictions.ts';

/** The places of an entry's results, in the order in which they are looked for. */
export const RESULTS = ['results/results.json', 'results.json'];

export const RESOLVED_LIST = /"resolved"\s{0,100}:\s{0,100}\[/;

/** The folder of the entry whose results.json this is. */
export function entryFolder(results: string): string {
  const folder = dirname(resolve(results));
  return basename(folder) === 'results' ? dirname(folder) : folder;
}

const ids = foreignIds.default([]);
const resultsSchema = z
  .looseObject({
    resolved: foreignIds,
    no_generation: ids,
    no_logs: ids,
    incomplete_ids: ids,
    unresolved: ids,
    /** The predicted instances, in entries before the harness ran in containers. */
    generated: ids,
  })
  .superRefine(refuseContradictions('resolved', ['unresolved']));

const LISTS: IdLists = [
  ['generated', 'unresolved'],
  ['unresolved', 'unresolved'],
  ['incomplete_ids', 'incomplete'],
  ['no_generation', 'empty_patch'],
  ['no_logs', 'error'],
  ['resolved', 'resolved'],
];

export const readLeaderboardResults = readerOf(
  resultsSchema,
  (value) => isRecord(value) && Array.isArray(value.resolved),
  'it has no list of resolved ids, so it is not a results.json of the leaderboard',
);

/** Repository to number of instances. */
export const readRepoTotals = readerOf(
  keyed(z.looseObject({ total: z.number().int().min(0) })).transform(
    (repos): ReadonlyMap<string, number> =>
      new Map(Object.entries(repos).map(([repo, { total }]) => [repo, total])),
  ),
  isRecord,
  'it does not say the total of each repository',
);

/** results.json of a leaderboard entry lists resolved instances; all others are unresolved. Null for another kind of file. */
export function verdictsOfLeaderboard(path: string): StatedVerdicts | null {
  const results = usable(path, readLeaderboardResults(readForeignFile(path)));
  if (!results) return null;
  const verdicts = verdictsOfLists(LISTS, results);
  const lost = new Set(results.no_logs);
  const resolved = new Set(results.resolved);
  const { open, warnings } = sizeOf(path, verdicts.keys());
  return {
    kind: 'leaderboard',
    verdicts: new Map(
      [...verdicts].map(([id, verdict]): [string, ForeignVerdict] => [
        id,
        {
          ...{ verdict, reason: null, report: null, grader: 'harness' },
          ...(verdict === 'error' && lost.has(id) && { lost: 'no_logs' }),
        },
      ]),
    ),
    open,
    printed: { resolved: resolved.size, of: open.total ?? 0 },
    facts: new Map(),
    warnings: [
      ...repeatedIds(results.resolved),
      ...alsoListed(results, 'resolved', ['no_generation', 'no_logs', 'incomplete_ids']),
      ...warnings,
    ],
  };
}

type Sizes = ReadonlyMap<string, number>;

/** Instances of the splits whose entries are published: of the test split, of Lite, of Verified. */
const REPOSITORIES: readonly (readonly [repo: string, test: number, lite: number, verified: number])[] = [
  ['astropy/astropy', 95, 6, 22],
  ['django/django', 850, 114, 231],
  ['matplotlib/matplotlib', 184, 23, 34],
  ['mwaskom/seaborn', 22, 4, 2],
  ['pallets/flask', 11, 3, 1],
  ['psf/requests', 44, 6, 8],
  ['pydata/xarray', 110, 5, 22],
  ['pylint-dev/pylint', 57, 6, 10],
  ['pytest-dev/pytest', 119, 17, 19],
  ['scikit-learn/scikit-learn', 229, 23, 32],
  ['sphinx-doc/sphinx', 187, 16, 44],
  ['sympy/sympy', 386, 77, 75],
];
const sizesOf = (column: 1 | 2 | 3): Sizes => new Map(REPOSITORIES.map((row) => [row[0], row[column]]));
const VERIFIED = sizesOf(3);
/** The sizes by the folder that holds the entries of a split, and by its name in the addresses of their logs. */
const SPLITS: ReadonlyMap<string, Sizes> = new Map([
  ['test', sizesOf(1)],
  ['lite', sizesOf(2)],
  ['verified', VERIFIED],
  ['bash-only', VERIFIED],
]);

const sum = (sizes: Sizes): number => [...sizes.values()].reduce((all, one) => all + one, 0);

/** The size of an entry's dataset, by its totals, unless they are of another one; `listed`: ids that its results name. */
function sizeOf(results: string, listed: Iterable<string>) {
  const entry = entryFolder(results);
  const predicted = predictedIn(entry);
  const path = join(dirname(results), 'resolved_by_repo.json');
  const read = existsSync(path) ? readRepoTotals(readForeignFile(path)) : null;
  const totals = read?.ok ? read.value : null;
  const unread =
    read && !read.ok && read.fault === 'not_json' ? [`has totals that cannot be read: ${read.message}`] : [];
  const split = splitOf(entry);
  const own = SPLITS.get(split ?? '');
  const wrong =
    totals && whyOther(totals, new Set([...listed, ...predicted]), { predicted: predicted.size, split, own });
  const open: NonNullable<StatedVerdicts['open']> =
    totals && wrong === null
      ? { total: sum(totals), byRepo: totals }
      : own
        ? { total: sum(own), byRepo: own }
        : { total: predicted.size || null, byRepo: null };
  const not = wrong
    ? [`has totals of ${sum(totals!)} instances, ${wrong}: they are of another split, and not used`]
    : [];
  return { open, warnings: [...unread, ...not] };
}

/** The reason why totals are not of the entry; null where nothing says so. Ten published entries of Lite had the test split's: "112 of 2261". */
function whyOther(
  totals: Sizes,
  named: ReadonlySet<string>,
  { predicted, split, own }: { predicted: number; split: string | null; own: Sizes | undefined },
): string | null {
  const total = sum(totals);
  if (own) return total === sum(own) ? null : `and ${split} has ${sum(own)}`;
  for (const [repo, ids] of Map.groupBy(named, repositoryOf)) {
    const most = repo === null ? undefined : (totals.get(repo) ?? 0);
    if (most !== undefined && ids.length > most)
      return `${most} of them of ${repo}, and the entry names ${ids.length} of those`;
  }
  if (predicted === 0 || predicted === total) return null;
  const known = [...SPLITS.values()];
  const isWhole = known.some((sizes) => sum(sizes) === predicted);
  const isOf = known.find((sizes) => [...totals].every(([repo, size]) => sizes.get(repo) === size));
  return isWhole || (isOf && predicted < sum(isOf) / 2) ? `and the entry predicts ${predicted}` : null;
}

/** "django__django-11099" is of django/django; ids of other forms have no repository to tell. */
const repositoryOf = (id: string): string | null =>
  id.includes('__') ? id.replace(/-[^-]*$/, '').replace('__', '/') : null;

const LOGS_OF = /s3:\/\/[\w.-]{1,100}\/([\w-]{1,50})\//;

/** The split of evaluation/<split>/<entry>, or by the addresses in its metadata. */
function splitOf(entry: string): string | null {
  const parts = entry.split('/');
  if (parts.at(-3) === 'evaluation' && SPLITS.has(parts.at(-2)!)) return parts.at(-2)!;
  for (const name of ['metadata.yaml', 'metadata.yml']) {
    const found = LOGS_OF.exec(beginningOf(join(entry, name), 65_536))?.[1];
    if (found !== undefined && SPLITS.has(found)) return found;
  }
  return null;
}

function predictedIn(entry: string): ReadonlySet<string> {
  const file = PREDICTIONS.map((name) => join(entry, name)).find(existsSync);
  const read = file === undefined ? undefined : readPredictions(readForeignFile(file), file);
  return new Set(read?.predictions.map(({ instance_id: id }) => id));
}
