/** The trials of one run: filter, sort, choose columns, open one, take the rest away as CSV. */
import { useMemo } from 'react';
import type { TrialDocument } from '../../documents/documents.ts';
import { scoreOfRows } from '../../documents/pairs.ts';
import { useRunId, useTrials } from '../data/source.ts';
import { NoRun, Up, Waiting } from '../parts.tsx';
import { href, keep, kept, setQuery, useRoute } from '../route.ts';
import { TRIAL_COLUMNS, TRIAL_FACETS, TRIAL_FIELDS, trialWords } from '../tables/columns.tsx';
import { FilteredTable } from '../tables/FilteredTable.tsx';
import { plain } from '../text/foreignText.ts';
import { rate } from '../text/numbers.ts';

const DEFAULT = new Set(TRIAL_COLUMNS.filter((column) => column.hidden !== true).map((column) => column.id));

function counted(rows: readonly TrialDocument[]): string {
  const { graded, resolved } = scoreOfRows(rows);
  return graded > 0 ? `; resolved ${resolved}/${graded} = ${rate(resolved, graded)}` : '; none graded';
}

export function InstancesPage({ run }: { run: string }) {
  const found = useRunId(run);
  const trials = useTrials(found.id);
  const { query } = useRoute();
  const picked = query.get('cols') ?? kept('columns');
  // What a trial's page needs to know of this list, to lead to the neighbours in it.
  const list = useMemo(() => {
    const rest = new URLSearchParams(query);
    rest.delete('cols');
    return rest.toString();
  }, [query]);
  const visible = useMemo(
    () => (picked === null ? DEFAULT : new Set(['instance', ...picked.split(',')])),
    [picked],
  );
  if (found.data && found.id === undefined) return <NoRun name={run} />;
  if (!trials.data) return <Waiting entry={found.error ? found : trials} />;
  return (
    <section className="page">
      <Up to={href(['run', run])}>{plain(run)}</Up>
      <h1>Instances of {plain(run)}</h1>
      <FilteredTable
        label="Instances"
        rows={trials.data}
        total={trials.total}
        counted={counted}
        columns={TRIAL_COLUMNS}
        visible={visible}
        fields={TRIAL_FIELDS}
        facets={TRIAL_FACETS}
        words={trialWords}
        hint="django class:limit steps>50 cost>=0.5 time>10m -flags:any"
        csvName={`${run}-instances`}
        controls={<ColumnPicker visible={visible} />}
        rowId={(row) => String(row.trial)}
        rowHref={(row) => (row.attempt === null ? undefined : href(['attempt', row.attempt], { list }))}
        empty="This run has no trials yet: they appear when its instances are chosen."
      />
    </section>
  );
}

function ColumnPicker({ visible }: { visible: ReadonlySet<string> }) {
  const choose = (chosen: string, isOn: boolean) => {
    const shown = TRIAL_COLUMNS.filter(({ id }) => (id === chosen ? isOn : visible.has(id)));
    const cols = shown.map(({ id }) => id).join(',');
    keep('columns', cols);
    setQuery({ cols });
  };
  return (
    <details className="picker">
      <summary>Columns</summary>
      <fieldset>
        <legend className="hide">Columns to show</legend>
        {TRIAL_COLUMNS.map(({ id, header }, i) => (
          <label key={id}>
            <input
              type="checkbox"
              checked={visible.has(id)}
              disabled={i === 0}
              onChange={(event) => choose(id, event.target.checked)}
            />
            {header}
          </label>
        ))}
      </fieldset>
    </details>
  );
}
