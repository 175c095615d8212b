/** All trials of a run as small cells: what a page needs to show a night at one look, at a tenth of the bytes of its table. */
import type { ViewerQueries } from '../../store/records/viewerQueries.ts';
import type { Ledger } from './attemptMoney.ts';
import type { TrialDocument } from './documents.ts';
import type { RunMap } from './mapGroups.ts';
import { trialsWithMoney } from './trialDocuments.ts';

/** Words that repeat are written once; a cell names them by their place. */
function wordList(): { words: string[]; place: (word: string) => number } {
  const words: string[] = [];
  const places = new Map<string, number>();
  const place = (word: string): number => {
    const known = places.get(word);
    if (known !== undefined) return known;
    places.set(word, words.length);
    return words.push(word) - 1;
  };
  return { words, place };
}

const reasonOf = (row: TrialDocument): string =>
  row.attempt_state === 'running' ? 'running' : (row.exit_reason ?? row.not_run_reason ?? row.state);

export function runMap(queries: ViewerQueries, ledger: Ledger, runId: number): RunMap {
  const { words, place } = wordList();
  const rows = trialsWithMoney(queries, ledger, runId, queries.trials(runId, -1, 0));
  const cells = rows.map((row): RunMap['cells'][number] => [
    row.instance_id,
    place(row.repo),
    place(row.difficulty ?? ''),
    place(row.arm),
    row.epoch,
    place(row.verdict),
    place(row.exit_class ?? 'not_run'),
    place(reasonOf(row)),
    row.money.costNano,
    row.steps,
    row.attempt,
  ]);
  return { run: runId, words, cells };
}
