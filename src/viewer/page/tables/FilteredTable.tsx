/** A table under its filter box: both are part of the address, so that a link shows what somebody saw. */
import { type ReactNode, useMemo, useState } from 'react';
import {
  type Chosen,
  type Facet,
  type FacetCount,
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
export function useSort(initial = '', key = 'sort'): Pick<DataTableProps<never>, 'sort' | 'onSort'> {
  const { query } = useRoute();
  return { sort: query.get(key) ?? initial, onSort: (sort) => setQuery({ [key]: sort }) };
}

interface FilteredTableProps<Row> extends Omit<DataTableProps<Row>, 'sort' | 'onSort'> {
  readonly fields: Fields<Row>;
  /** What the table is narrowed by without typing. */
  readonly facets?: readonly Facet<Row>[];
  /** What a word without a field is looked for in. A constant function: the filter is made anew for another one. */
  readonly words: (row: Row) => string;
  readonly hint: string;
  readonly csvName: string;
  /** Rows before the filter; more than `rows` while some are still on their way. */
  readonly total?: number;
  /** What the count of rows is followed by. */
  readonly counted?: (rows: readonly Row[]) => string;
  /** Further controls beside the filter box. */
  readonly controls?: ReactNode;
  readonly wrapper?: string;
}

const NO_FACETS: readonly Facet<object>[] = [];

export function FilteredTable<Row extends object>(props: FilteredTableProps<Row>) {
  const { rows: all, fields, words, columns, visible } = props;
  const facets: readonly Facet<Row>[] = props.facets ?? NO_FACETS;
  const text = useRoute().query.get('f') ?? '';
  const chosen = useChosen(facets);
  const filter = useMemo(() => compileFilter(text, fields, words), [text, fields, words]);
  const typed = useMemo(() => all.filter(filter.test), [all, filter]);
  const rows = useMemo(() => typed.filter(facetTest(facets, chosen)), [typed, facets, chosen]);
  const isNarrowed = text !== '' || chosen.size > 0;
  const empty = isNarrowed ? <NothingFits clear={() => clearFilters(facets)} /> : props.empty;
  const table = (
    <DataTable {...props} {...useSort()} rows={rows} empty={empty} main={props.wrapper === undefined} />
  );
  return (
    <>
      <div className="bar">
        <FilterBox
          value={text}
          onChange={(f) => setQuery({ f })}
          problems={filter.problems}
          hint={props.hint}
          fields={fields}
        />
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

function NothingFits({ clear }: { clear: () => void }) {
  return (
    <p>
      Nothing here fits the filters.{' '}
      <button type="button" onClick={clear}>
        Show all again
      </button>
    </p>
  );
}

interface BoxProps {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly problems: readonly string[];
  /** An example of the syntax. */
  readonly hint: string;
  readonly fields: ReadonlyMap<string, unknown>;
}

function FilterBox({ value, onChange, problems, hint, fields }: BoxProps) {
  const [isExplained, explain] = useState(false);
  return (
    <div className="filter">
      <div className="filterline">
        <input
          type="search"
          aria-label="Filter"
          placeholder="search"
          title={hint}
          value={value}
          spellCheck={false}
          onChange={(event) => onChange(event.target.value)}
          aria-invalid={problems.length > 0}
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
      {problems.length > 0 ? (
        <p role="alert" className="problem">
          {plain(problems.join('; '))}
        </p>
      ) : null}
      {isExplained ? <Syntax hint={hint} fields={[...fields.keys()]} /> : null}
    </div>
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

function Syntax({ hint, fields }: { hint: string; fields: readonly string[] }): ReactNode {
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

function useChosen<Row>(facets: readonly Facet<Row>[]): Chosen {
  const { query } = useRoute();
  return useMemo(() => readChosen(facets, query), [facets, query]);
}

const toggle = (id: string, chosen: Chosen, value: string): void => {
  const next = new Set(chosen.get(id));
  if (!next.delete(value)) next.add(value);
  setQuery({ [id]: writeChosen(next) });
};

/** Takes away everything that narrows a table. */
const clearFilters = (facets: readonly { readonly id: string }[]): void =>
  setQuery({ f: undefined, ...Object.fromEntries(facets.map(({ id }) => [id, undefined])) });

interface ChipsProps<Row> {
  /** All rows of the table, and of them those that what is typed leaves. */
  readonly all: readonly Row[];
  readonly rows: readonly Row[];
  readonly facets: readonly Facet<Row>[];
  readonly chosen: Chosen;
}

function FilterChips<Row>({ all, rows, facets, chosen }: ChipsProps<Row>) {
  const counts = useMemo(() => facetCounts(rows, facets, chosen, all), [all, rows, facets, chosen]);
  const valuesOf = ({ id }: Facet<Row>) => counts.get(id) ?? [];
  // A facet of which all rows have the same value narrows nothing; a flag is a value that most rows do not have.
  const useful = facets.filter(
    (facet) => valuesOf(facet).length > (facet.id === 'flags' ? 0 : 1) || chosen.has(facet.id),
  );
  // Its few values are what people ask for most; of any other facet there may be hundreds.
  const open = facets[0];
  return (
    <fieldset className="chips">
      <legend className="hide">Narrow by</legend>
      {useful.map((facet) =>
        facet === open ? (
          <Toggles key={facet.id} facet={facet} values={valuesOf(facet)} chosen={chosen} />
        ) : (
          <Menu key={facet.id} facet={facet} values={valuesOf(facet)} chosen={chosen} />
        ),
      )}
      {[...chosen].flatMap(([id, values]) =>
        id === open?.id
          ? []
          : [...values].map((value) => (
              <button
                key={`${id} ${value}`}
                type="button"
                className="chip on"
                title="show the others again"
                onClick={() => toggle(id, chosen, value)}
              >
                {plain(words(value))}
                <span aria-hidden="true"> ×</span>
              </button>
            )),
      )}
    </fieldset>
  );
}

interface FacetProps {
  readonly facet: { readonly id: string; readonly label: string };
  readonly values: readonly FacetCount[];
  readonly chosen: Chosen;
}

/** A facet that stands open: each value is a button. */
function Toggles({ facet, values, chosen }: FacetProps) {
  return values.map(({ value, n }) => {
    const isOn = chosen.get(facet.id)?.has(value) ?? false;
    return (
      <button
        key={value}
        type="button"
        className={`chip tone-${value.replace(/[^a-z_]/g, '')}${isOn ? ' on' : ''}`}
        aria-pressed={isOn}
        onClick={() => toggle(facet.id, chosen, value)}
      >
        {plain(words(value))} <span className="n">{integer(n)}</span>
      </button>
    );
  });
}

function Menu({ facet, values, chosen }: FacetProps) {
  const own = chosen.get(facet.id);
  return (
    <details className="menu" name="facets">
      <summary className={own ? 'chip on' : 'chip'}>{facet.label}</summary>
      <fieldset>
        <legend className="hide">{facet.label}</legend>
        {values.length === 0 ? <p className="quiet">none here</p> : null}
        {values.slice(0, 200).map(({ value, n }) => (
          <label key={value}>
            <input
              type="checkbox"
              checked={own?.has(value) ?? false}
              onChange={() => toggle(facet.id, chosen, value)}
            />
            <span>{plain(words(value))}</span>
            <span className="n">{integer(n)}</span>
          </label>
        ))}
      </fieldset>
    </details>
  );
}
