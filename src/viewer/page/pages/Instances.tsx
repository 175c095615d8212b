/** The trials of one run: filter, sort, choose columns, open one, take the rest away as CSV. */
import { useMemo } from 'react';
import type { TrialDocument } from '../../documents/documents.ts';
import { scoreOf } from '../data/comparedSide.ts';
import { useRunId, useTrials } from '../data/useTrials.ts';
import { ColumnPicker, NoRun, Waiting } from '../parts.tsx';
import { href, setQuery, useRoute } from '../route.ts';
import { FilteredTable } from '../tables/FilteredTable.tsx';
import { TRIAL_COLUMNS, TRIAL_FIELDS, trialWords } from '../tables/trialColumns.tsx';
import { plain } from '../text/foreignText.ts';
import { rate } from '../text/numbers.ts';

const DEFAULT = new Set(TRIAL_COLUMNS.filter((column) => column.hidden !== true).map((column) => column.id));

function counted(rows: readonly TrialDocument[]): string {
  const { graded, resolved } = scoreOf(rows);
  return graded > 0 ? `; resolved ${resolved}/${graded} = ${rate(resolved, graded)}` : '; none graded';
}

export function InstancesPage({ run }: { run: string }) {
  const found = useRunId(run);
  const trials = useTrials(found.id);
  const picked = useRoute().query.get('cols');
  const visible = useMemo(
    () => (picked === null ? DEFAULT : new Set(['instance', ...picked.split(',')])),
    [picked],
  );
  if (found.data && found.id === undefined) return <NoRun name={run} />;
  if (!trials.data) return <Waiting entry={found.error ? found : trials} />;
  return (
    <section className="page">
      <h1>Instances of {plain(run)}</h1>
      <FilteredTable
        label="Instances"
        rows={trials.data}
        total={trials.total}
        counted={counted}
        columns={TRIAL_COLUMNS}
        visible={visible}
        fields={TRIAL_FIELDS}
        words={trialWords}
        hint="django class:limit steps>50 cost>=0.5 time>10m -flags:any"
        csvName={`${run}-instances`}
        controls={
          <ColumnPicker
            columns={TRIAL_COLUMNS}
            visible={visible}
            onChange={(cols) => setQuery({ cols: cols.join(',') })}
          />
        }
        rowId={(row) => String(row.trial)}
        rowHref={(row) => (row.attempt === null ? undefined : href(['attempt', row.attempt]))}
        empty="No trial matches the filter."
      />
    </section>
  );
}
