/** The trials of one run: filter, sort, choose columns, open one, take the rest away as CSV. */
import { useMemo, useState } from 'preact/compat';
import { scoreOf, scoreText } from '../../../report/measure/score.ts';
import type { TrialDocument } from '../../documents/documents.ts';
import { useRunId, useTrials } from '../data/source.ts';
import { NoRun, Up, Waiting } from '../parts.tsx';
import { href, keep, kept, setQuery, useRoute } from '../route.ts';
import { type Column, TRIAL_COLUMNS, TRIAL_FACETS, TRIAL_FIELDS, trialWords } from '../tables/columns.tsx';
import { FilteredTable } from '../tables/FilteredTable.tsx';
import { plain } from '../text/foreignText.ts';
import { integer } from '../text/numbers.ts';

/** Columns that tell trials of one instance apart are shown where there are several values. */
const WHERE_SEVERAL = new Set(['arm', 'epoch', 'reward']);
const severalIn = (rows: readonly TrialDocument[], { value }: Column<TrialDocument>) =>
  new Set(rows.map(value)).size > 1;
const usualColumns = (rows: readonly TrialDocument[]): Set<string> =>
  new Set(
    TRIAL_COLUMNS.filter((column) =>
      WHERE_SEVERAL.has(column.id) ? severalIn(rows, column) : column.hidden !== true,
    ).map((column) => column.id),
  );

/** The scores of the rows, arm by arm and by the rule of `report`: over instances where there are several epochs. */
function scoresOf(rows: readonly TrialDocument[]): string[] {
  return [...Map.groupBy(rows, (row) => row.arm)].flatMap(([arm, own], _i, arms = []) => {
    const scored = own.map(({ instance_id: instanceId, verdict }) => ({
      instanceId,
      valid: verdict === 'resolved' || verdict === 'unresolved',
      resolved: verdict === 'resolved',
    }));
    if (!scored.some(({ valid }) => valid)) return [];
    const text = scoreText(scoreOf(scored, new Set(own.map(({ epoch }) => epoch)).size));
    return [arms.length > 1 ? `${plain(arm)} ${text}` : text];
  });
}

const counted = (rows: readonly TrialDocument[]): string => {
  const scores = scoresOf(rows);
  return scores.length > 0 ? `; resolved ${scores.join('; ')}` : '; none graded';
};

export function InstancesPage({ run }: { run: string }) {
  const found = useRunId(run);
  const { query } = useRoute();
  const [all, loadAll] = useState(false);
  // A filter and an order are about every trial.
  const isNarrowed = [...query.keys()].some((key) => key !== 'cols');
  const trials = useTrials(found.id, all || isNarrowed);
  const picked = query.get('cols') ?? kept('columns');
  const rows = trials.data;
  // The query of this list, from which a trial's page leads to the neighbours in it.
  const list = useMemo(() => {
    const rest = new URLSearchParams(query);
    rest.delete('cols');
    return rest.toString();
  }, [query]);
  const visible = useMemo(
    () => (picked === null ? usualColumns(rows ?? []) : new Set(['instance', ...picked.split(',')])),
    [picked, rows],
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
        controls={
          <>
            {trials.data.length < trials.total ? (
              <button type="button" disabled={all || isNarrowed} onClick={() => loadAll(true)}>
                {all || isNarrowed ? 'loading …' : `load all ${integer(trials.total)}`}
              </button>
            ) : null}
            <ColumnPicker visible={visible} />
          </>
        }
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
              onChange={(event) => choose(id, event.currentTarget.checked)}
            />
            {header}
          </label>
        ))}
      </fieldset>
    </details>
  );
}
