/** One table for every list: sorted by TanStack Table, drawn row by row by TanStack Virtual, driven by keyboard or mouse. */
// biome-ignore-all lint/a11y/useSemanticElements: rows are virtualised and placed by transform, which a table element cannot lay out
// biome-ignore-all lint/a11y/useFocusableInteractive: focus stays on the grid, which names its active row (aria-activedescendant)

import {
  columnVisibilityFeature,
  createSortedRowModel,
  rowSortingFeature,
  type SortingState,
  tableFeatures,
  useTable,
} from '@tanstack/react-table';
import { useVirtualizer } from '@tanstack/react-virtual';
import {
  type CSSProperties,
  type KeyboardEvent,
  type MouseEvent,
  type ReactNode,
  type RefObject,
  useEffect,
  useId,
  useMemo,
  useRef,
  useState,
} from 'react';
import type { FieldValue } from '../../documents/filter.ts';
import { go } from '../route.ts';
import { type Column, compareValues, sortedValue } from './column.ts';

export interface DataTableProps<Row> {
  readonly label: string;
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  readonly visible?: ReadonlySet<string> | undefined;
  readonly rowId: (row: Row) => string;
  /** Where Enter and a click lead. */
  readonly rowHref?: (row: Row) => string | undefined;
  /** `name` or `-name`. */
  readonly sort: string;
  readonly onSort: (sort: string) => void;
  readonly empty: ReactNode;
  /** The table that the page is about: keys reach it before anybody clicked it. */
  readonly main?: boolean;
}

const features = tableFeatures({
  rowSortingFeature,
  columnVisibilityFeature,
  sortedRowModel: createSortedRowModel(),
});

const ROW_HEIGHT = 32;

export function DataTable<Row extends object>(props: DataTableProps<Row>) {
  const { rows, columns, visible, sort } = props;
  const definitions = useMemo(
    () =>
      columns.map((column) => ({
        id: column.id,
        header: column.header,
        accessorFn: (row: Row) => sortedValue(column, row),
        sortUndefined: 'last' as const,
        sortDescFirst: column.numeric ?? false,
        sortFn: (a: { getValue(id: string): unknown }, b: { getValue(id: string): unknown }, id: string) =>
          compareValues(a.getValue(id) as FieldValue, b.getValue(id) as FieldValue),
      })),
    [columns],
  );
  const sorting = useMemo<SortingState>(
    () => (sort === '' ? [] : [{ id: sort.replace(/^-/, ''), desc: sort.startsWith('-') }]),
    [sort],
  );
  const columnVisibility = useMemo(
    () => Object.fromEntries(columns.map((c) => [c.id, visible ? visible.has(c.id) : c.hidden !== true])),
    [columns, visible],
  );
  const data = useMemo(() => [...rows], [rows]);
  const table = useTable({
    features,
    columns: definitions,
    data,
    getRowId: props.rowId,
    state: { sorting, columnVisibility },
    onSortingChange: (updater) => {
      const [first] = typeof updater === 'function' ? updater(sorting) : updater;
      props.onSort(first ? `${first.desc ? '-' : ''}${first.id}` : '');
    },
  });
  const sorted = table.getRowModel().rows;
  const shown = columns.filter((column) => columnVisibility[column.id]);
  return (
    <Body
      {...props}
      shown={shown}
      sorted={sorted.map((row) => row.original)}
      onHeader={(id) => table.getColumn(id)?.toggleSorting()}
    />
  );
}

interface BodyProps<Row> extends DataTableProps<Row> {
  readonly shown: readonly Column<Row>[];
  readonly sorted: readonly Row[];
  readonly onHeader: (id: string) => void;
}

function Body<Row extends object>(props: BodyProps<Row>) {
  const { label, shown, sorted, rowId, rowHref, empty } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const id = useId();
  const virtualizer = useVirtualizer({
    count: sorted.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: 12,
    scrollPaddingStart: ROW_HEIGHT,
  });
  const { current, setActive, onKeyDown, open } = useActiveRow(props, scroller, virtualizer.scrollToIndex);
  const template = shown
    .map((column, i) => (i === 0 ? `minmax(${column.width}px, 1fr)` : `${column.width}px`))
    .join(' ');
  const width = shown.reduce((sum, column) => sum + column.width, 0);
  return (
    <div
      ref={scroller}
      className="grid"
      role="grid"
      aria-label={label}
      aria-rowcount={sorted.length + 1}
      aria-colcount={shown.length}
      aria-activedescendant={sorted.length > 0 ? `${id}-${current}` : undefined}
      tabIndex={0}
      data-keys={props.main ? '' : undefined}
      onKeyDown={onKeyDown}
    >
      <HeadRow
        shown={shown}
        sort={props.sort}
        onHeader={props.onHeader}
        style={{ gridTemplateColumns: template, minWidth: width }}
      />
      <div className="rows" role="rowgroup" style={{ height: virtualizer.getTotalSize(), minWidth: width }}>
        {virtualizer.getVirtualItems().map((item) => {
          const row = sorted[item.index]!;
          return (
            <GridRow
              key={rowId(row)}
              row={row}
              shown={shown}
              to={rowHref?.(row)}
              id={`${id}-${item.index}`}
              index={item.index}
              active={item.index === current}
              style={{
                gridTemplateColumns: template,
                height: ROW_HEIGHT,
                transform: `translateY(${item.start}px)`,
              }}
              onActive={setActive}
              onOpen={open}
            />
          );
        })}
      </div>
      {sorted.length === 0 ? <div className="quiet pad">{empty}</div> : null}
    </div>
  );
}

/** The active row, and the keys that move it or open it. */
function useActiveRow<Row extends object>(
  { sorted, rowHref }: BodyProps<Row>,
  scroller: RefObject<HTMLDivElement | null>,
  scrollTo: (index: number) => void,
) {
  const [active, setActive] = useState(0);
  const current = Math.min(active, Math.max(0, sorted.length - 1));
  useEffect(() => {
    if (active >= sorted.length && sorted.length > 0) setActive(sorted.length - 1);
  }, [active, sorted.length]);
  const move = (to: number) => {
    const next = Math.max(0, Math.min(sorted.length - 1, to));
    setActive(next);
    scrollTo(next);
  };
  const open = (index: number) => {
    const row = sorted[index];
    const to = row && rowHref?.(row);
    if (to) go(to);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.metaKey || event.ctrlKey || event.altKey) return;
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 320) / ROW_HEIGHT) - 2);
    const step = new Map<string, number>([
      ['ArrowDown', 1],
      ['j', 1],
      ['ArrowUp', -1],
      ['k', -1],
      ['PageDown', page],
      ['PageUp', -page],
      ['Home', -sorted.length],
      ['End', sorted.length],
    ]).get(event.key);
    if (step !== undefined) move(current + step);
    else if (event.key === 'Enter' && event.target === event.currentTarget) open(current);
    else return;
    event.preventDefault();
  };
  return { current, setActive, onKeyDown, open };
}

const ARROWS = { ascending: ' ▲', descending: ' ▼', none: '' };

function HeadRow<Row extends object>({
  shown,
  sort,
  onHeader,
  style,
}: {
  shown: readonly Column<Row>[];
  sort: string;
  onHeader: (id: string) => void;
  style: CSSProperties;
}) {
  return (
    <div className="row head" role="row" aria-rowindex={1} style={style}>
      {shown.map((column, i) => {
        const direction = sort === column.id ? 'ascending' : sort === `-${column.id}` ? 'descending' : 'none';
        return (
          <div
            key={column.id}
            role="columnheader"
            aria-colindex={i + 1}
            aria-sort={direction}
            className={column.numeric ? 'numeric' : ''}
          >
            <button
              type="button"
              tabIndex={-1}
              title={column.title ?? `sort by ${column.header}`}
              onClick={() => onHeader(column.id)}
            >
              {column.header}
              <span aria-hidden="true">{ARROWS[direction]}</span>
            </button>
          </div>
        );
      })}
    </div>
  );
}

interface GridRowProps<Row> {
  readonly row: Row;
  readonly shown: readonly Column<Row>[];
  readonly to: string | undefined;
  readonly id: string;
  readonly index: number;
  readonly active: boolean;
  readonly style: CSSProperties;
  readonly onActive: (index: number) => void;
  readonly onOpen: (index: number) => void;
}

/** A click opens the row, unless it was on a link of its own or marked text. */
const isOpening = (event: MouseEvent): boolean =>
  !(event.target as HTMLElement).closest('a,button') && window.getSelection()?.isCollapsed !== false;

function GridRow<Row extends object>(props: GridRowProps<Row>) {
  const { row, shown, to, id, index, active, style, onActive, onOpen } = props;
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the grid handles Enter for its active row
    <div
      id={id}
      role="row"
      aria-rowindex={index + 2}
      aria-selected={active}
      className={`row${active ? ' active' : ''}${to ? ' link' : ''}`}
      style={style}
      onClick={(event) => {
        onActive(index);
        if (isOpening(event)) onOpen(index);
      }}
    >
      {shown.map((column, i) => (
        <div
          key={column.id}
          role="gridcell"
          aria-colindex={i + 1}
          className={column.numeric ? 'numeric' : ''}
        >
          {i === 0 && to ? (
            <a href={to} tabIndex={-1}>
              {cellOf(column, row)}
            </a>
          ) : (
            cellOf(column, row)
          )}
        </div>
      ))}
    </div>
  );
}

function cellOf<Row>(column: Column<Row>, row: Row): ReactNode {
  if (column.cell) return column.cell(row);
  const value = column.value(row);
  return value === null || value === undefined
    ? '–'
    : Array.isArray(value)
      ? value.join(', ')
      : String(value);
}
