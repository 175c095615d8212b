/** An entry of the leaderboard: predictions or trajectories, and a results.json that names what is resolved. */
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { SourceError, topOf } from '../foreignFile.ts';
import type { ForeignFormat, ForeignRun } from '../foreignFormat.ts';
import { readPlain } from '../harness/harness.ts';
import { PREDICTIONS } from '../predictions.ts';
import { withReport } from '../verdictFiles.ts';
import { RESOLVED_LIST, RESULTS } from './results.ts';

export const leaderboard: ForeignFormat = {
  recognise({ files, head }) {
    if (files === null)
      return RESOLVED_LIST.test(head(''))
        ? { words: 'a results.json of the leaderboard', certain: 'likely', verdictsAlone: true }
        : null;
    const results = RESULTS.find((path) => files.includes(path));
    if (results === undefined || !RESOLVED_LIST.test(head(results))) return null;
    const top = topOf(files);
    // Without totals of the dataset, the predictions of an entry say which instances were not resolved.
    const namesItsInstances =
      PREDICTIONS.some((file) => top.includes(file)) &&
      !['results/resolved_by_repo.json', 'resolved_by_repo.json'].some((file) => files.includes(file));
    return { words: 'an entry of the leaderboard', certain: 'sure', verdictsAlone: !namesItsInstances };
  },
  read: (source, report) => (statSync(source).isDirectory() ? readEntry(source, report) : null),
};

/** Its predictions are the instances; one that lists resolved ids alone would be a run in which everything is resolved. */
function readEntry(folder: string, report: string | undefined): ForeignRun {
  const run = readPlain(folder);
  if (run.instances.length === 0)
    throw new SourceError(
      `${folder} lists resolved instances and has no predictions`,
      'compare reads it all the same: every other instance is taken as unresolved there',
    );
  const results = RESULTS.map((name) => join(folder, name)).find(existsSync);
  return withReport({ ...run, instances: withoutTrajectories(run.instances) }, report ?? results);
}

/** Only mini-swe-agent leaves no trajectory where the environment did not start; entries of others may publish none at all. */
function withoutTrajectories(instances: ForeignRun['instances']): ForeignRun['instances'] {
  if (instances.some(({ file }) => file !== null)) return instances;
  return instances.map((each) => ({ ...each, exitReason: 'submitted' }));
}
