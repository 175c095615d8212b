/** A table under its filter box: both are part of the address, so that a link shows what somebody saw. */
import { type ReactNode, useMemo } from 'react';
import { type Facet, facetTest } from '../../documents/facets.ts';
import { compileFilter, type Fields } from '../../documents/filter.ts';
import { CsvButton } from '../parts.tsx';
import { setQuery, useRoute } from '../route.ts';
import { DataTable, type DataTableProps } from './DataTable.tsx';
import { FilterBox } from './FilterBox.tsx';
import { clearFilters, FilterChips, useChosen } from './FilterChips.tsx';

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
