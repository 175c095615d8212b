/** A table under its filter box: both are part of the address, so that a link shows what somebody saw. */
import { type ReactNode, useMemo, useState } from 'preact/compat';
import {
  type Chosen,
  type Facet,
  facetCounts,
  facetTest,
  readChosen,
  writeChosen,
} from '../../documents/facets.ts';
import { compileFilter, type Fields } from '../../documents/filter.ts';
import { CsvButton } from '../parts.tsx';
import { setQuery, useRoute } from '../route.ts';
import { plain } from '../text/foreignText.ts';
import { integer, words } from '../text/numbers.ts';
import { DataTable, type DataTableProps } from './DataTable.tsx';

/** The sorting of a table as the address says it. */
export function useSort(initial = '') {
  const { query } = useRoute();
  return { sort: query.get('sort') ?? initial, onSort: (sort: string) => setQuery({ sort }) };
}

interface FilteredTableProps<Row> extends Omit<DataTableProps<Row>, 'sort' | 'onSort'> {
  fields: Fields<Row>;
  /** Choices that narrow the table without typing. */
  facets?: readonly Facet<Row>[];
  /** The text that is searched for a word without a field. A constant function: the filter is made anew for another one. */
  words: (row: Row) => string;
  /** An example of the syntax. */
  hint: string;
  csvName: string;
  /** Rows before the filter; more than `rows` while some are still on their way. */
  total?: number;
  /** The text after the count of rows. */
  counted?: (rows: readonly Row[]) => string;
  /** Further controls beside the filter box. */
  controls?: ReactNode;
  wrapper?: string;
}

const NO_FACETS: readonly Facet<object>[] = [];

export function FilteredTable<Row extends object>(props: FilteredTableProps<Row>) {
  const { rows: all, fields, hint, columns, visible, facets = NO_FACETS } = props;
  const { query } = useRoute();
  const text = query.get('f') ?? '';
  const chosen = useMemo(() => readChosen(facets, query), [facets, query]);
  const filter = useMemo(() => compileFilter(text, fields, props.words), [text, fields, props.words]);
  const typed = useMemo(() => all.filter(filter.test), [all, filter]);
  const rows = useMemo(() => typed.filter(facetTest(facets, chosen)), [typed, facets, chosen]);
  const [isExplained, explain] = useState(false);
  const narrowing = { f: undefined, ...Object.fromEntries(facets.map(({ id }) => [id, undefined])) };
  const nothingFits = (
    <p>
      Nothing here fits the filters.{' '}
      <button type="button" onClick={() => setQuery(narrowing)}>
        Show all again
      </button>
    </p>
  );
  const empty = text !== '' || chosen.size > 0 ? nothingFits : props.empty;
  const table = (
    <DataTable {...props} {...useSort()} rows={rows} empty={empty} main={props.wrapper === undefined} />
  );
  return (
    <>
      <div className="bar">
        <div className="filter">
          <div className="filterline">
            <input
              type="search"
              aria-label="Filter"
              placeholder="search"
              title={hint}
              value={text}
              spellcheck={false}
              onChange={(event) => setQuery({ f: event.currentTarget.value })}
              aria-invalid={filter.problems.length > 0}
            />
            <button
              type="button"
              aria-expanded={isExplained}
              aria-label="What can be typed here"
              title="what can be typed here"
              onClick={() => explain(!isExplained)}
            >
              ?
            </button>
          </div>
          {filter.problems.length > 0 ? (
            <p role="alert" className="problem">
              {plain(filter.problems.join('; '))}
            </p>
          ) : null}
          {isExplained ? <Syntax hint={hint} fields={[...fields.keys()]} /> : null}
        </div>
        <span className="quiet" role="status">
          {rows.length} of {props.total ?? all.length}
          {props.counted?.(rows)}
        </span>
        {props.controls}
        <CsvButton
          name={props.csvName}
          columns={visible ? columns.filter((column) => visible.has(column.id)) : columns}
          rows={rows}
        />
      </div>
      {facets.length > 0 ? <FilterChips all={all} rows={typed} facets={facets} chosen={chosen} /> : null}
      {props.wrapper ? <div className={props.wrapper}>{table}</div> : table}
    </>
  );
}

const RULES: readonly [string, string][] = [
  ['django limit', 'both words, anywhere in the row'],
  ['class:limit', 'the field contains it'],
  ['verdict=resolved|unresolved', 'the field is one of them'],
  ['steps>50 cost>=0.5 time>10m', 'numbers; s m h k M are units'],
  ['flags:any detail:none', 'has something, has nothing'],
  ['-repo:sympy "two words"', 'not; quoted'],
];

function Syntax({ hint, fields }: { hint: string; fields: readonly string[] }) {
  return (
    <div className="syntax">
      <dl>
        {RULES.map(([example, meaning]) => (
          <div key={example}>
            <dt>
              <code>{example}</code>
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
      <p>
        Here for example <code>{hint}</code>. Fields: <code>{fields.join(' ')}</code>
      </p>
    </div>
  );
}

interface ChipsProps<Row> {
  /** All rows of the table, and of them those that what is typed leaves. */
  all: readonly Row[];
  rows: readonly Row[];
  facets: readonly Facet<Row>[];
  chosen: Chosen;
}

/** The values of the first facet stand open, since people ask for them most; of any other there may be hundreds. */
function FilterChips<Row>({ all, rows, facets, chosen }: ChipsProps<Row>) {
  const counts = useMemo(() => facetCounts(rows, facets, chosen, all), [all, rows, facets, chosen]);
  const toggle = (id: string, value: string) => {
    const next = new Set(chosen.get(id));
    if (!next.delete(value)) next.add(value);
    setQuery({ [id]: writeChosen(next) });
  };
  return (
    <fieldset className="chips">
      <legend className="hide">Narrow by</legend>
      {facets.map(({ id, label }) => {
        const values = counts.get(id) ?? [];
        const own = chosen.get(id);
        // A facet of which all rows have the same value narrows nothing; a flag is a value that most rows do not have.
        if (values.length <= (id === 'flags' ? 0 : 1) && !own) return null;
        if (id === facets[0]!.id)
          return values.map(({ value, n }) => (
            <button
              key={value}
              type="button"
              className={`chip tone-${value.replace(/[^a-z_]/g, '')}${own?.has(value) ? ' on' : ''}`}
              aria-pressed={own?.has(value) ?? false}
              onClick={() => toggle(id, value)}
            >
              {plain(words(value))} <span className="n">{integer(n)}</span>
            </button>
          ));
        return (
          <details key={id} className="menu" name="facets">
            <summary className={own ? 'chip on' : 'chip'}>{label}</summary>
            <fieldset>
              <legend className="hide">{label}</legend>
              {values.length === 0 ? <p className="quiet">none here</p> : null}
              {values.slice(0, 200).map(({ value, n }) => (
                <label key={value}>
                  <input
                    type="checkbox"
                    checked={own?.has(value) ?? false}
                    onChange={() => toggle(id, value)}
                  />
                  <span>{plain(words(value))}</span>
                  <span className="n">{integer(n)}</span>
                </label>
              ))}
            </fieldset>
          </details>
        );
      })}
      {facets.slice(1).flatMap(({ id }) =>
        [...(chosen.get(id) ?? [])].map((value) => (
          <button
            key={`${id} ${value}`}
            type="button"
            className="chip on"
            title="show the others again"
            onClick={() => toggle(id, value)}
          >
            {plain(words(value))}
            <span aria-hidden="true"> ×</span>
          </button>
        )),
      )}
    </fieldset>
  );
}
