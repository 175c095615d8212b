/** Small pieces that several pages share: states, badges, facts, tabs, small tables, a CSV button. */

import { type ReactNode, useState } from 'preact/compat';
import { toCsv } from '../../base/text/inert.ts';
import { type Entry, MissingDocument } from './data/source.ts';
import { href } from './route.ts';
import { plain } from './text/foreignText.ts';
import { words } from './text/numbers.ts';

/** Shown in the place of a document that is loading or missing. */
export function Waiting({ entry }: { entry: Entry<unknown> }) {
  if (entry.error instanceof MissingDocument)
    return (
      <Nothing title="It is not here">
        <p>{plain(entry.error.message)}</p>
      </Nothing>
    );
  return entry.error ? (
    <p role="alert" className="pad">
      {plain(entry.error.message)}
    </p>
  ) : (
    <p className="pad quiet" data-loading="">
      loading …
    </p>
  );
}

/** A page with nothing to show says what to do. */
export function Nothing({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="page nothing">
      <h1>{title}</h1>
      {children}
      <p>
        <a data-up="" href={href(['runs'])}>
          All runs
        </a>
      </p>
    </section>
  );
}

export const NoRun = ({ name }: { name: string }) => (
  <Nothing title={`There is no run “${plain(name)}” here`}>
    <p>The list has the names of all runs of this results root.</p>
  </Nothing>
);

/** The page above; Esc leads there too. */
export const Up = ({ to, children }: { to: string; children: ReactNode }) => (
  <a className="up" data-up="" href={to}>
    <span aria-hidden="true">‹ </span>
    {children}
  </a>
);

const TONES = new Map([
  ['resolved', 'good'],
  ['complete', 'good'],
  ['running', 'busy'],
  ['paused', 'warn'],
  ['budget', 'warn'],
  ['incomplete', 'warn'],
  ['interrupted', 'warn'],
  ['unresolved', 'bad'],
  ['failed', 'bad'],
  ['apply_failed', 'bad'],
  ['timeout', 'bad'],
  ['empty_patch', 'bad'],
  ['infra', 'warn'],
  ['grading_infra', 'warn'],
  ['limit', 'note'],
  ['model', 'note'],
]);

export function Badge({ word }: { word: string | null | undefined }) {
  if (!word) return <span className="quiet">–</span>;
  return <span className={`badge ${TONES.get(word) ?? 'plain'}`}>{plain(words(word))}</span>;
}

export const Flags = ({ flags }: { flags: readonly string[] }) =>
  flags.map((flag) => (
    <span key={flag} className="badge warn">
      {plain(words(flag))}
    </span>
  ));

export type Fact = readonly [name: string, value: ReactNode, title?: string];

/** Of these those that have a value. */
export const Facts = ({ facts }: { facts: readonly Fact[] }) => (
  <dl className="facts">
    {facts.map(([name, value, title]) =>
      value === null ? null : (
        <div key={name} className="fact" title={title}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ),
    )}
  </dl>
);

/** The value of a text of JSON; any other text itself. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

export function save(name: string, type: string, text: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name.replace(/[^A-Za-z0-9_.-]+/g, '_');
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

interface CsvProps<Row> {
  name: string;
  columns: Parameters<typeof toCsv<Row>>[0];
  rows: readonly Row[];
}

export const CsvButton = <Row,>({ name, columns, rows }: CsvProps<Row>) => (
  <button type="button" onClick={() => save(`${name}.csv`, 'text/csv', toCsv(columns, rows))}>
    CSV
  </button>
);

export function Tabs({
  tabs,
  current,
  onChange,
}: {
  tabs: readonly [id: string, label: string][];
  current: string;
  onChange: (id: string) => void;
}) {
  return (
    <div role="tablist" className="tabs">
      {tabs.map(([id, label], i) => (
        <button
          key={id}
          type="button"
          role="tab"
          id={`tab-${id}`}
          aria-selected={id === current}
          aria-controls="panel"
          tabIndex={id === current ? 0 : -1}
          onClick={() => onChange(id)}
          onKeyDown={(event) => {
            const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
            if (by === 0) return;
            const next = tabs[(i + by + tabs.length) % tabs.length]!;
            onChange(next[0]);
            document.getElementById(`tab-${next[0]}`)?.focus();
          }}
        >
          {label}
        </button>
      ))}
    </div>
  );
}

/** Long text that is drawn only when somebody opens it. */
export function Foldout({ title, children }: { title: string; children: () => ReactNode }) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{title}</summary>
      {open ? children() : null}
    </details>
  );
}

/** A region that scrolls by itself is reached by the keyboard. */
export const Scrolled = (props: { label: string; className: string; children: ReactNode }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: it is scrolled by keys too
  <section className={props.className} aria-label={props.label} tabIndex={0}>
    {props.children}
  </section>
);

export interface PlainColumn<Row> {
  readonly header: string;
  readonly title?: string;
  /** Of a column that is drawn: its header is for screen readers. */
  readonly drawn?: boolean;
  readonly cell: (row: Row) => ReactNode;
}

interface PlainProps<Row> {
  className?: string;
  /** The first one names the row. */
  columns: readonly PlainColumn<Row>[];
  rows: readonly Row[];
  rowId: (row: Row) => string;
}

/** A table of few rows, without order and search. */
export const PlainTable = <Row,>({ className = 'plain', columns, rows, rowId }: PlainProps<Row>) => (
  <table className={className}>
    <thead>
      <tr>
        {columns.map(({ header, title, drawn }) => (
          <th key={header} scope="col" title={title} className={drawn ? 'drawn' : undefined}>
            {drawn ? <span className="hide">{header}</span> : header}
          </th>
        ))}
      </tr>
    </thead>
    <tbody>
      {rows.map((row) => (
        <tr key={rowId(row)}>
          <th scope="row">{columns[0]!.cell(row)}</th>
          {columns.slice(1).map(({ header, drawn, cell }) => (
            <td key={header} className={drawn ? 'drawn' : undefined}>
              {cell(row)}
            </td>
          ))}
        </tr>
      ))}
    </tbody>
  </table>
);
