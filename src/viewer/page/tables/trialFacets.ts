/** What trials are narrowed by without a syntax, and the trials of a list as its address describes them. */
import type { TrialDocument } from '../../documents/documents.ts';
import { type Facet, facetTest, readChosen } from '../../documents/facets.ts';
import { compileFilter } from '../../documents/filter.ts';
import { inOrder } from './rowOrder.ts';
import { ending, TRIAL_COLUMNS, TRIAL_FIELDS, trialWords } from './trialColumns.tsx';

export const TRIAL_FACETS: readonly Facet<TrialDocument>[] = [
  { id: 'verdict', label: 'Verdict', values: (row) => [row.verdict] },
  { id: 'class', label: 'Class', values: (row) => [row.exit_class ?? 'not_run'] },
  { id: 'reason', label: 'Ended', values: (row) => [ending(row)] },
  { id: 'repo', label: 'Repository', values: (row) => [row.repo] },
  { id: 'difficulty', label: 'Difficulty', values: (row) => (row.difficulty ? [row.difficulty] : []) },
  { id: 'flags', label: 'Flags', values: (row) => row.flags },
  { id: 'arm', label: 'Arm', values: (row) => [row.arm] },
  { id: 'epoch', label: 'Epoch', values: (row) => [String(row.epoch)] },
];

/** The rows that the table of this address shows, in its order. */
export function rowsOfList(all: readonly TrialDocument[], query: URLSearchParams): TrialDocument[] {
  const typed = compileFilter(query.get('f') ?? '', TRIAL_FIELDS, trialWords);
  const passes = facetTest(TRIAL_FACETS, readChosen(TRIAL_FACETS, query));
  return inOrder(
    all.filter((row) => typed.test(row) && passes(row)),
    TRIAL_COLUMNS,
    query.get('sort') ?? '',
  );
}
