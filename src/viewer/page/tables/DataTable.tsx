/** One table for every list: drawn row by row by TanStack Virtual, driven by keyboard or mouse. */
// biome-ignore-all lint/a11y/useSemanticElements: rows are virtualised and placed by transform, which a table element cannot lay out
// biome-ignore-all lint/a11y/useFocusableInteractive: focus stays on the grid, which names its active row (aria-activedescendant)
// biome-ignore-all lint/a11y/useKeyWithClickEvents: the grid handles Enter for its active row

import {
  type KeyboardEvent,
  type ReactNode,
  useEffect,
  useId,
  useMemo,
  useRef,
  useState,
} from 'preact/compat';
import { go } from '../route.ts';
import { type Column, inOrder } from './columns.tsx';
import { useVirtualRows } from './virtualRows.ts';

export interface DataTableProps<Row> {
  label: string;
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  visible?: ReadonlySet<string>;
  rowId: (row: Row) => string;
  /** Where Enter and a click lead. */
  rowHref: (row: Row) => string | undefined;
  /** `name` or `-name`. */
  sort: string;
  onSort: (sort: string) => void;
  empty: ReactNode;
  /** The table that the page is about: keys reach it before anybody clicked it. */
  main?: boolean;
}

/** Letters are smaller on a phone, and columns with them (style.css). */
const scaled = (px: number): string => `calc(${px}px * var(--columns))`;

const ROW_HEIGHT = 32;
const ARROWS = { ascending: ' ▲', descending: ' ▼', none: '' };

export function DataTable<Row extends object>(props: DataTableProps<Row>) {
  const { label, columns, visible, rowId, rowHref, sort, onSort, empty, main = false } = props;
  const rows = useMemo(() => inOrder(props.rows, columns, sort), [props.rows, columns, sort]);
  const shown = columns.filter((column) => (visible ? visible.has(column.id) : column.hidden !== true));
  const scroller = useRef<HTMLDivElement>(null);
  const gridId = useId();
  const virtualizer = useVirtualRows({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: 12,
    scrollPaddingStart: ROW_HEIGHT,
  });
  const [active, setActive] = useState(0);
  const current = Math.min(active, Math.max(0, rows.length - 1));
  useEffect(() => {
    if (active >= rows.length && rows.length > 0) setActive(rows.length - 1);
  }, [active, rows.length]);
  const open = (index: number) => {
    const to = rows[index] && rowHref(rows[index]);
    if (to) go(to);
  };
  const onKeyDown = (event: KeyboardEvent<HTMLElement>) => {
    if (event.metaKey || event.ctrlKey || event.altKey) return;
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 320) / ROW_HEIGHT) - 2);
    const ends = { Home: -rows.length, End: rows.length };
    const steps = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page, ...ends };
    const step = new Map(Object.entries(steps)).get(event.key);
    if (step !== undefined) {
      const next = Math.max(0, Math.min(rows.length - 1, current + step));
      setActive(next);
      virtualizer.scrollToIndex(next);
    } else if (event.key === 'Enter' && event.target === event.currentTarget) open(current);
    else return;
    event.preventDefault();
  };
  /** The direction that suits the column first, then the other one, then none. */
  const sortBy = ({ id, numeric }: Column<Row>) => {
    const [first, second] = numeric ? [`-${id}`, id] : [id, `-${id}`];
    onSort(sort === first ? second : sort === second ? '' : first);
  };
  const template = shown
    .map(({ width }, i) => (i === 0 ? `minmax(${scaled(width)}, 1fr)` : scaled(width)))
    .join(' ');
  const width = scaled(shown.reduce((sum, column) => sum + column.width, 0));
  return (
    <div
      ref={scroller}
      className="grid"
      role="grid"
      aria-label={label}
      aria-rowcount={rows.length + 1}
      aria-colcount={shown.length}
      aria-activedescendant={rows.length > 0 ? `${gridId}-${current}` : undefined}
      tabIndex={0}
      data-keys={main ? '' : undefined}
      onKeyDown={onKeyDown}
    >
      <div
        className="row head"
        role="row"
        aria-rowindex={1}
        style={{ gridTemplateColumns: template, minWidth: width }}
      >
        {shown.map((column, i) => {
          const { id, header, title, numeric } = column;
          const direction = sort === id ? 'ascending' : sort === `-${id}` ? 'descending' : 'none';
          return (
            <div
              key={id}
              role="columnheader"
              aria-colindex={i + 1}
              aria-sort={direction}
              className={numeric ? 'numeric' : ''}
            >
              <button
                type="button"
                tabIndex={-1}
                title={title ?? `sort by ${header}`}
                onClick={() => sortBy(column)}
              >
                {header}
                <span aria-hidden="true">{ARROWS[direction]}</span>
              </button>
            </div>
          );
        })}
      </div>
      <div className="rows" role="rowgroup" style={{ height: virtualizer.getTotalSize(), minWidth: width }}>
        {virtualizer.getVirtualItems().map(({ index, start }) => {
          const row = rows[index]!;
          const to = rowHref(row);
          return (
            <div
              key={rowId(row)}
              id={`${gridId}-${index}`}
              role="row"
              aria-rowindex={index + 2}
              aria-selected={index === current}
              className={`row${index === current ? ' active' : ''}${to ? ' link' : ''}`}
              style={{
                gridTemplateColumns: template,
                height: ROW_HEIGHT,
                transform: `translateY(${start}px)`,
              }}
              onClick={(event) => {
                setActive(index);
                // A click opens the row, unless it was on a link of its own or marked text.
                const isOnLink = (event.target as HTMLElement).closest('a,button') !== null;
                if (!isOnLink && window.getSelection()?.isCollapsed !== false) open(index);
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
                    <>
                      <a href={to} tabIndex={-1}>
                        {cellOf(column, row)}
                      </a>
                      <Beside column={column} row={row} />
                    </>
                  ) : (
                    cellOf(column, row)
                  )}
                </div>
              ))}
            </div>
          );
        })}
      </div>
      {rows.length === 0 ? <div className="quiet pad">{empty}</div> : null}
    </div>
  );
}

function Beside<Row>({ column, row }: { column: Column<Row>; row: Row }) {
  const text = column.beside?.(row);
  return text ? <span className="beside quiet">{text}</span> : null;
}

function cellOf<Row>(column: Column<Row>, row: Row): ReactNode {
  if (column.cell) return column.cell(row);
  const value = column.value(row);
  return Array.isArray(value) ? value.join(', ') : String(value ?? '–');
}
