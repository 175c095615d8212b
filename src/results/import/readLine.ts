/** "read as a job folder of Harbor: 12 trials …": what a source came to, from the record that was made of it. Pure. */
import { SOURCE_WORDS, type SourceKind } from '../../formats/sourceKind.ts';
import { scoredTrials } from '../../report/measure/score.ts';
import { percent } from '../../report/render/format.ts';
import type { RunData } from '../../store/records/reportQueries.ts';

/** "a, b (2 trials), …": each id once, with how many trials it stands for. */
export function counted(ids: readonly string[], most: number): string {
  const groups = [...Map.groupBy(ids, (id) => id)].map(([id, all]) =>
    all.length > 1 ? `${id} (${all.length} trials)` : id,
  );
  return `${groups.slice(0, most).join(', ')}${groups.length > most ? ', …' : ''}`;
}

const WHY: Readonly<Record<string, string>> = {
  grading_infra: 'lost, or without a verdict',
  infra: 'lost by infrastructure',
  config: 'could not work',
  cancelled: 'cancelled',
  not_run: 'never ran',
  not_graded: 'not graded',
};
const NAMED = 5;

export function readLine(data: RunData, kind: SourceKind | null): string {
  const rows = data.arms.flatMap(({ name }) => scoredTrials(data.trials.filter((t) => t.arm === name)));
  const instances = new Set(rows.map((row) => row.instanceId)).size;
  const valid = rows.filter((row) => row.valid);
  const resolved = valid.filter((row) => row.resolved).length;
  const missing = rows.flatMap(({ standing, trial }) =>
    standing.valid ? [] : [{ trial, why: standing.why }],
  );
  const parts = [
    rows.length === instances ? `${instances} instances` : `${rows.length} trials of ${instances} instances`,
    ...(data.arms.length > 1 ? [`${data.arms.length} arms`] : []),
    valid.length > 0
      ? `${resolved} of ${valid.length} resolved = ${percent(resolved / valid.length)}`
      : 'no verdicts',
    ...[...Map.groupBy(missing, ({ why }) => why)].map(([why, group]) => {
      const names = group.map(({ trial }) => trial.instanceId);
      // Where nothing is graded, every instance would stand here.
      const who = why === 'not_graded' && valid.length === 0 ? '' : `: ${counted(names, NAMED)}`;
      return `missing ${group.length} (${WHY[why] ?? why})${who}`;
    }),
  ];
  return `read as ${kind === null ? 'results of another tool' : SOURCE_WORDS[kind]}: ${parts.join('; ')}`;
}
