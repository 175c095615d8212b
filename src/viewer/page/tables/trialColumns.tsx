/** The columns of a trial, shared by the instances of a run and the history of an instance. */
import type { TrialDocument } from '../../documents/documents.ts';
import type { Fields } from '../../documents/filter.ts';
import { Badge, Flags } from '../parts.tsx';
import { plain } from '../text/foreignText.ts';
import { duration, short, time, words } from '../text/numbers.ts';
import type { Column } from './column.ts';
import { costColumn, tokensColumn } from './moneyColumns.ts';

const seconds = (ms: number | null): number | null => (ms === null ? null : ms / 1000);

export const ending = (row: TrialDocument): string =>
  row.attempt_state === 'running' ? 'running' : (row.exit_reason ?? row.not_run_reason ?? row.state);

export const TRIAL_COLUMNS: readonly Column<TrialDocument>[] = [
  {
    id: 'instance',
    header: 'Instance',
    width: 230,
    value: (r) => r.instance_id,
    cell: (r) => plain(r.instance_id),
  },
  {
    id: 'verdict',
    header: 'Verdict',
    title: 'resolved, unresolved, or why it is missing from the score',
    width: 120,
    value: (r) => r.verdict,
    cell: (r) => <Badge word={r.verdict} />,
  },
  {
    id: 'reason',
    header: 'Ended',
    title: 'exit reason',
    width: 170,
    value: ending,
    cell: (r) => plain(words(ending(r))),
  },
  {
    id: 'class',
    header: 'Class',
    title: 'exit class',
    width: 90,
    value: (r) => r.exit_class,
    cell: (r) => <Badge word={r.exit_class} />,
  },
  {
    id: 'outcome',
    header: 'Outcome',
    title: 'the grader’s word',
    width: 120,
    hidden: true,
    value: (r) => r.outcome,
    cell: (r) => <Badge word={r.outcome} />,
  },
  { id: 'steps', header: 'Steps', width: 70, numeric: true, value: (r) => r.steps },
  costColumn({ title: 'of all attempts, in dollars', width: 90 }),
  tokensColumn(),
  {
    id: 'time',
    header: 'Time',
    title: 'in seconds when filtered: time>5m',
    width: 110,
    numeric: true,
    value: (r) => seconds(r.elapsed_ms),
    cell: (r) => duration(r.elapsed_ms),
  },
  { id: 'flags', header: 'Flags', width: 170, value: (r) => r.flags, cell: (r) => <Flags flags={r.flags} /> },
  { id: 'repo', header: 'Repository', width: 150, value: (r) => r.repo, cell: (r) => plain(r.repo) },
  {
    id: 'difficulty',
    header: 'Difficulty',
    width: 130,
    value: (r) => r.difficulty,
    cell: (r) => plain(r.difficulty),
  },
  { id: 'arm', header: 'Arm', width: 90, value: (r) => r.arm, cell: (r) => plain(r.arm) },
  {
    id: 'model',
    header: 'Model',
    width: 160,
    hidden: true,
    value: (r) => r.model,
    cell: (r) => plain(r.model),
  },
  { id: 'epoch', header: 'Epoch', width: 70, numeric: true, hidden: true, value: (r) => r.epoch },
  { id: 'attempts', header: 'Attempts', width: 85, numeric: true, hidden: true, value: (r) => r.attempts },
  {
    id: 'state',
    header: 'State',
    width: 90,
    hidden: true,
    value: (r) => r.state,
    cell: (r) => <Badge word={r.state} />,
  },
  {
    id: 'status',
    header: 'Exit status',
    title: 'mini-swe-agent’s word',
    width: 140,
    hidden: true,
    value: (r) => r.exit_status,
    cell: (r) => plain(r.exit_status ?? '–'),
  },
  {
    id: 'detail',
    header: 'Detail',
    width: 110,
    hidden: true,
    value: (r) => r.exit_detail,
    cell: (r) => plain(r.exit_detail ?? '–'),
  },
  { id: 'calls', header: 'Calls', width: 70, numeric: true, hidden: true, value: (r) => r.money.calls },
  {
    id: 'failed',
    header: 'Failed calls',
    width: 100,
    numeric: true,
    hidden: true,
    value: (r) => r.money.failedCalls,
  },
  {
    id: 'input',
    header: 'Input',
    title: 'tokens neither read from nor written to a cache',
    width: 80,
    numeric: true,
    hidden: true,
    value: (r) => r.money.inputTokens,
    cell: (r) => short(r.money.inputTokens),
  },
  {
    id: 'cached',
    header: 'Cache read',
    width: 95,
    numeric: true,
    hidden: true,
    value: (r) => r.money.cacheReadTokens,
    cell: (r) => short(r.money.cacheReadTokens),
  },
  {
    id: 'written',
    header: 'Cache write',
    width: 95,
    numeric: true,
    hidden: true,
    value: (r) => r.money.cacheWriteTokens,
    cell: (r) => short(r.money.cacheWriteTokens),
  },
  {
    id: 'output',
    header: 'Output',
    width: 80,
    numeric: true,
    hidden: true,
    value: (r) => r.money.outputTokens,
    cell: (r) => short(r.money.outputTokens),
  },
  {
    id: 'reasoning',
    header: 'Reasoning',
    width: 90,
    numeric: true,
    hidden: true,
    value: (r) => r.money.reasoningTokens,
    cell: (r) => short(r.money.reasoningTokens),
  },
  {
    id: 'working',
    header: 'Working',
    title: 'time without pulls, rate waits and back-off',
    width: 110,
    numeric: true,
    hidden: true,
    value: (r) => seconds(r.working_ms),
    cell: (r) => duration(r.working_ms),
  },
  {
    id: 'patch',
    header: 'Patch',
    title: 'characters of the predicted patch',
    width: 80,
    numeric: true,
    hidden: true,
    value: (r) => r.patch_chars,
    cell: (r) => short(r.patch_chars),
  },
  {
    id: 'source',
    header: 'Patch source',
    width: 130,
    hidden: true,
    value: (r) => r.patch_source,
    cell: (r) => words(r.patch_source ?? '–'),
  },
  {
    id: 'strict',
    header: 'Strict',
    title: 'resolved under the strict rules',
    width: 70,
    hidden: true,
    value: (r) => (r.resolved_strict === null ? null : r.resolved_strict === 1 ? 'yes' : 'no'),
  },
  {
    id: 'started',
    header: 'Started',
    width: 140,
    hidden: true,
    value: (r) => r.started_at,
    cell: (r) => time(r.started_at),
  },
];

export const TRIAL_FIELDS: Fields<TrialDocument> = new Map(
  TRIAL_COLUMNS.map((column) => [column.id, column.value]),
);

export const trialWords = (row: TrialDocument): string =>
  `${row.instance_id} ${row.repo} ${ending(row)} ${row.exit_class ?? ''} ${row.outcome ?? ''} ${row.verdict} ${row.arm} ${row.model} ${row.flags.join(' ')}`;
