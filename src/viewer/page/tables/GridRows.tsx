/** The rows of a table, as the grid places them. */
// biome-ignore-all lint/a11y/useSemanticElements: rows are virtualised and placed by transform, which a table element cannot lay out
// biome-ignore-all lint/a11y/useFocusableInteractive: focus stays on the grid, which names its active row (aria-activedescendant)
import type { CSSProperties, MouseEvent, ReactNode } from 'react';
import type { Column } from './column.ts';

const ARROWS = { ascending: ' ▲', descending: ' ▼', none: '' };

export function HeadRow<Row extends object>({
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

export function GridRow<Row extends object>(props: GridRowProps<Row>) {
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
