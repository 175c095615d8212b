/** An entry of the leaderboard: predictions or trajectories, and a results.json that names what is resolved. */
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { hasKeys, topOf } from '../foreignFile.ts';
import type { ForeignFormat, ForeignRun } from '../foreignFormat.ts';
import { readPlain, runOf } from '../harness/harness.ts';
import { isRunReport } from '../harness/runReport.ts';
import { PREDICTIONS } from '../predictions.ts';
import { SourceError } from '../sourceError.ts';
import { verdictsIn, withReport } from '../verdicts.ts';
import { entryFolder, RESOLVED_LIST, RESULTS } from './results.ts';

export const leaderboard: ForeignFormat = {
  recognise({ files, head }) {
    if (files === null)
      return RESOLVED_LIST.test(head('')) && !isReport(head(''))
        ? {
            words: 'a results.json of the leaderboard',
            certain: 'likely',
            verdictsAlone: true,
            reads: 'above',
          }
        : null;
    const results = RESULTS.find((path) => files.includes(path));
    if (results === undefined) return null;
    const report = isReport(head(results));
    if (!RESOLVED_LIST.test(head(results)) && !(report && results.includes('/'))) return null;
    const top = topOf(files);
    // Without totals of the dataset, the predictions of an entry say which instances were not resolved.
    const namesItsInstances =
      PREDICTIONS.some((file) => top.includes(file)) &&
      (report ||
        !['results/resolved_by_repo.json', 'resolved_by_repo.json'].some((file) => files.includes(file)));
    return { words: 'an entry of the leaderboard', certain: 'sure', verdictsAlone: !namesItsInstances };
  },
  read(source, report) {
    if (statSync(source).isDirectory()) return readEntry(source, source, report);
    return readEntry(entryFolder(source), source, report ?? source);
  },
};

const isReport = (head: string): boolean => isRunReport((key) => hasKeys(head, key));

/** An entry's predictions are the instances; an entry that lists resolved ids alone would be a run in which everything is resolved. */
function readEntry(folder: string, source: string, report: string | undefined): ForeignRun {
  const results = report ?? RESULTS.map((name) => join(folder, name)).find(existsSync);
  const run = readPlain(folder);
  if (run.instances.length > 0)
    return withReport({ ...run, instances: withoutTrajectories(run.instances) }, results);
  const stated = results === undefined || statSync(results).isDirectory() ? null : verdictsIn(results);
  if (
    stated &&
    (!stated.open || [...stated.verdicts.values()].some(({ verdict }) => verdict === 'unresolved'))
  )
    return runOf(results!, stated);
  throw new SourceError(
    `${source} lists resolved instances and has no predictions`,
    'compare reads it all the same: every other instance is taken as unresolved there',
  );
}

/** Only mini-swe-agent leaves no trajectory where the environment did not start; entries of others may publish none at all. */
function withoutTrajectories(instances: ForeignRun['instances']): ForeignRun['instances'] {
  if (instances.some(({ file }) => file !== null)) return instances;
  return instances.map((each) => ({ ...each, exitReason: 'submitted' }));
}
