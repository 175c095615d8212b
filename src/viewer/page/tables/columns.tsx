/** Columns of tables: what one shows, sorts by and exports; the order of rows by it; and the columns of a trial. */

import type { ReactNode } from 'preact/compat';
import { endingOf, type MoneyDocument, type TrialDocument } from '../../documents/documents.ts';
import { byText, type Facet, facetTest, readChosen } from '../../documents/facets.ts';
import { compileFilter, type Fields, type FieldValue } from '../../documents/filter.ts';
import { Badge, Flags } from '../parts.tsx';
import { plain } from '../text/foreignText.ts';
import { cost, DASH, duration, reward, short, time, tokens, words } from '../text/numbers.ts';

export interface Column<Row> {
  readonly id: string;
  readonly header: string;
  /** The value that is sorted, filtered and exported. */
  readonly value: (row: Row) => FieldValue;
  readonly cell?: (row: Row) => ReactNode;
  /** Of the first column: shown beside what leads to the row, as far as there is room. */
  readonly beside?: (row: Row) => ReactNode;
  readonly width: number;
  readonly numeric?: boolean;
  /** Explains the column on hover and to screen readers. */
  readonly title?: string;
  readonly hidden?: boolean;
}

/** `sort` is `name` or `-name`; rows without a value come last, and an empty text is none. */
export function inOrder<Row>(rows: readonly Row[], columns: readonly Column<Row>[], sort: string): Row[] {
  const isDown = sort.startsWith('-');
  const column = columns.find(({ id }) => id === sort.replace(/^-/, ''));
  if (!column) return [...rows];
  const sortedValue = (row: Row): FieldValue => {
    const value = column.value(row);
    return value === null || value === '' ? undefined : value;
  };
  return rows.toSorted((one, other) => {
    const [a, b] = [sortedValue(one), sortedValue(other)];
    if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
    const order = typeof a === 'number' && typeof b === 'number' ? a - b : byText(String(a), String(b));
    return isDown ? -order : order;
  });
}

type MakeColumn<Value> = <Row>(
  id: string,
  header: string,
  width: number,
  value: (row: Row) => Value,
  more?: Partial<Column<Row>>,
) => Column<Row>;

const column: MakeColumn<FieldValue> = (id, header, width, value, more) => ({
  id,
  header,
  width,
  value,
  ...more,
});

export const textColumn: MakeColumn<string | null | undefined> = (id, header, width, value, more) =>
  column(id, header, width, value, { cell: (row) => plain(value(row) ?? DASH), ...more });
export const badgeColumn: MakeColumn<string | null | undefined> = (id, header, width, value, more) =>
  column(id, header, width, value, { cell: (row) => <Badge word={value(row)} />, ...more });
export const numberColumn: MakeColumn<number | null> = (id, header, width, value, more) =>
  column(id, header, width, value, { numeric: true, ...more });
/** Large numbers, shortened for the eye: 12.3k. */
const countColumn: MakeColumn<number | null> = (id, header, width, value, more) =>
  numberColumn(id, header, width, value, { cell: (row) => short(value(row)), ...more });

interface WithMoney {
  readonly money: MoneyDocument;
}

export const costColumn = <Row extends WithMoney>(width: number, title?: string): Column<Row> =>
  numberColumn(
    'cost',
    'Cost',
    width,
    ({ money }) => (money.costNano === null ? null : money.costNano / 1e9),
    {
      cell: ({ money }) => cost(money),
      ...(title && { title }),
    },
  );
export const tokensColumn = <Row extends WithMoney>(): Column<Row> =>
  countColumn('tokens', 'Tokens', 75, (r) => tokens(r.money));

const seconds = (ms: number | null): number | null => (ms === null ? null : ms / 1000);

const strict = ({ resolved_strict }: TrialDocument): string | null =>
  resolved_strict === null ? null : resolved_strict === 1 ? 'yes' : 'no';

const hidden = true;

export const TRIAL_COLUMNS: readonly Column<TrialDocument>[] = [
  textColumn('instance', 'Instance', 230, (r) => r.instance_id, {
    beside: ({ task }) => task && <span title={plain(task)}>{plain(task)}</span>,
  }),
  badgeColumn('verdict', 'Verdict', 110, (r) => r.verdict, {
    title: 'resolved, unresolved, or why it is missing from the score',
  }),
  // Where there are several, rows of one instance differ by these alone.
  numberColumn('epoch', 'Epoch', 66, (r) => r.epoch, { hidden }),
  textColumn('arm', 'Arm', 120, (r) => r.arm),
  textColumn('reason', 'Ended', 170, endingOf, {
    title: 'exit reason',
    cell: (r) => plain(words(endingOf(r))),
  }),
  badgeColumn('class', 'Class', 70, (r) => r.exit_class, { title: 'exit class' }),
  badgeColumn('outcome', 'Outcome', 120, (r) => r.outcome, { title: 'what the grader found', hidden }),
  numberColumn('reward', 'Reward', 80, (r) => r.reward ?? null, {
    title: 'between 0 and 1, of suites that give one',
    cell: (r) => (r.reward === undefined ? DASH : reward(r.reward)),
    hidden,
  }),
  numberColumn('steps', 'Steps', 60, (r) => r.steps),
  costColumn(80, 'of all attempts, in dollars'),
  tokensColumn(),
  numberColumn('time', 'Time', 90, (r) => seconds(r.elapsed_ms), {
    title: 'in seconds when filtered: time>5m',
    cell: (r) => duration(r.elapsed_ms),
  }),
  column('flags', 'Flags', 100, (r) => r.flags, { cell: (r) => <Flags flags={r.flags} /> }),
  // The name of an instance begins with it, and the task has more to say in its place.
  textColumn('repo', 'Repository', 150, (r) => r.repo, { hidden }),
  textColumn('task', 'Task', 300, (r) => r.task, { title: 'its first line', hidden }),
  textColumn('difficulty', 'Difficulty', 120, (r) => r.difficulty),
  textColumn('model', 'Model', 160, (r) => r.model, { hidden }),
  numberColumn('attempts', 'Attempts', 85, (r) => r.attempts, { hidden }),
  badgeColumn('state', 'State', 90, (r) => r.state, { hidden }),
  textColumn('status', 'Exit status', 140, (r) => r.exit_status, {
    title: 'the exit status that mini-swe-agent would write',
    hidden,
  }),
  textColumn('detail', 'Detail', 110, (r) => r.exit_detail, { hidden }),
  numberColumn('calls', 'Calls', 70, (r) => r.money.calls, { hidden }),
  numberColumn('failed', 'Failed calls', 100, (r) => r.money.failedCalls, { hidden }),
  countColumn('input', 'Input', 80, (r) => r.money.inputTokens, {
    title: 'tokens neither read from nor written to a cache',
    hidden,
  }),
  countColumn('cached', 'Cache read', 95, (r) => r.money.cacheReadTokens, { hidden }),
  countColumn('written', 'Cache write', 95, (r) => r.money.cacheWriteTokens, { hidden }),
  countColumn('output', 'Output', 80, (r) => r.money.outputTokens, { hidden }),
  countColumn('reasoning', 'Reasoning', 90, (r) => r.money.reasoningTokens, { hidden }),
  numberColumn('working', 'Working', 110, (r) => seconds(r.working_ms), {
    title: 'time without pulls, rate waits and back-off',
    cell: (r) => duration(r.working_ms),
    hidden,
  }),
  countColumn('patch', 'Patch', 80, (r) => r.patch_chars, {
    title: 'characters of the predicted patch',
    hidden,
  }),
  textColumn('source', 'Patch source', 130, (r) => r.patch_source, {
    cell: (r) => words(r.patch_source ?? '–'),
    hidden,
  }),
  textColumn('strict', 'Strict', 70, strict, { title: 'resolved under the strict rules', hidden }),
  textColumn('started', 'Started', 140, (r) => r.started_at, { cell: (r) => time(r.started_at), hidden }),
];

export const TRIAL_FIELDS: Fields<TrialDocument> = new Map(
  TRIAL_COLUMNS.map((column) => [column.id, column.value]),
);

export const trialWords = (row: TrialDocument): string =>
  `${row.instance_id} ${row.repo} ${endingOf(row)} ${row.exit_class ?? ''} ${row.outcome ?? ''} ${row.verdict} ${row.arm} ${row.model} ${row.flags.join(' ')} ${row.task ?? ''}`;

export const TRIAL_FACETS: readonly Facet<TrialDocument>[] = [
  { id: 'verdict', label: 'Verdict', values: (row) => [row.verdict] },
  { id: 'class', label: 'Class', values: (row) => [row.exit_class ?? 'not_run'] },
  { id: 'reason', label: 'Ended', values: (row) => [endingOf(row)] },
  { id: 'repo', label: 'Repository', values: (row) => [row.repo] },
  { id: 'difficulty', label: 'Difficulty', values: (row) => (row.difficulty ? [row.difficulty] : []) },
  { id: 'flags', label: 'Flags', values: (row) => row.flags },
  { id: 'arm', label: 'Arm', values: (row) => [row.arm] },
  { id: 'epoch', label: 'Epoch', values: (row) => [String(row.epoch)] },
];

/** The rows that the table of this address shows, in its order. */
export function rowsOfList(all: readonly TrialDocument[], query: URLSearchParams): TrialDocument[] {
  const typed = compileFilter(query.get('f') ?? '', TRIAL_FIELDS, trialWords);
  const passes = facetTest(TRIAL_FACETS, readChosen(TRIAL_FACETS, query));
  return inOrder(
    all.filter((row) => typed.test(row) && passes(row)),
    TRIAL_COLUMNS,
    query.get('sort') ?? '',
  );
}
