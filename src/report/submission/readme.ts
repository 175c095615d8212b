/** README.md of an entry: results with their interval, what was pinned, what was tried again, and the checklist. */

import { sha256 } from '../../base/sha256.ts';
import { markdown } from '../../base/text/inert.ts';
import type { RunData } from '../../store/records/reportQueries.ts';
import { rate } from '../render/format.ts';
import { proportion } from '../statistics/proportions.ts';
import type { SubmissionMetadata } from './metadata.ts';
import type { DerivedResults } from './results.ts';
import type { Review } from './review.ts';

export function submissionReadme(
  data: RunData,
  arm: string,
  metadata: SubmissionMetadata,
  derived: DerivedResults,
  review: Review,
): string {
  const { results, byRepo } = derived;
  const total = Object.values(byRepo).reduce((s, r) => s + r.total, 0);
  const retried = data.trials.filter((t) => t.arm === arm && t.epoch === 1 && t.attempts > 1);
  const authors = [metadata.info.authors].flat();
  return [
    `# ${markdown(metadata.info.name)}`,
    '',
    '## Results',
    '',
    '```',
    `resolved      ${rate(proportion(results.resolved.length, total))} (Wilson 95 %)`,
    `no generation ${results.no_generation.length}`,
    `no logs       ${results.no_logs.length}`,
    ...Object.entries(byRepo).map(([repo, r]) => `  ${repo}: ${rate(proportion(r.resolved, r.total))}`),
    '```',
    '',
    '## System',
    '',
    metadata.info.report
      ? `Described in ${metadata.info.report}.`
      : 'TODO: describe the system or link its report.',
    authors.length
      ? `Authors: ${authors.map(markdown).join(', ')}.`
      : 'TODO: authors, with a page of the first.',
    '',
    '## What was pinned',
    '',
    '| | |',
    '| --- | --- |',
    ...pinsOf(data, arm, review).map(([key, value]) => `| ${key} | ${markdown(value)} |`),
    '',
    `Instances tried again: ${retried.length}${retried.length ? ` (${retried.map((t) => markdown(t.instanceId)).join(', ')}); an attempt is repeated only when infrastructure failed, and all attempts are in the record` : ''}.`,
    '',
    '## Checklist',
    '',
    ...review.checklist.map((a) => `- [${a.ticked ? 'x' : ' '}] ${a.text}`),
    '',
    'Answered from the record of the run:',
    '',
    ...review.checklist.map((a) => `- ${a.box.replaceAll('_', ' ')}: ${markdown(a.because)}`),
    '',
  ].join('\n');
}

/** What another run needs to be the same. */
function pinsOf(data: RunData, arm: string, review: Review): [string, string][] {
  const trials = data.trials.filter((t) => t.arm === arm && t.epoch === 1);
  const unique = (xs: readonly (string | null)[]) => [...new Set(xs.filter((x) => x !== null))];
  const { program, dataset } = data.run.manifest;
  return [
    ['swebatch', `${program?.version ?? 'unknown'}${program?.commit ? ` (${program.commit})` : ''}`],
    ['run', data.run.name],
    ['configuration', data.run.configHash],
    [
      'dataset',
      `${data.run.datasetSource}${data.run.datasetRevision ? ` @ ${data.run.datasetRevision}` : ''}`,
    ],
    ...(typeof dataset?.file_sha256 === 'string'
      ? ([['dataset file, sha256', dataset.file_sha256]] as [string, string][])
      : []),
    ['selected rows, sha256', data.run.datasetHash],
    ['models that answered', review.models.join(', ') || 'none recorded'],
    ['grading dialect', unique(trials.map((t) => t.dialect)).join(', ') || 'none recorded'],
    ['image digests', digestsOf(trials)],
  ];
}

/** 500 digests would bury the rest: the trajectories and run.json hold them, and their hash binds them. */
function digestsOf(trials: RunData['trials']): string {
  const known = trials.filter((t) => t.imageDigest);
  const lines = known.map((t) => `${t.instanceId} ${t.imageDigest}\n`).sort();
  return `${known.length} of ${trials.length} recorded; sha256 of the sorted lines "id digest": ${sha256(lines.join(''))}`;
}
