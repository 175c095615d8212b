/**
 * The viewer's documents as lines for a terminal: a trajectory to page through, and a run that goes on. Pure: documents and a
 * clock in, lines out; all foreign text is inert.
 */

import { inert } from '../base/text/terminal.ts';
import { formatCost } from '../money.ts';
import { wilson } from '../report/statistics/proportions.ts';
import type { AttemptDocument, MessageDocument, OutlineRow, RunDocument } from './documents/documents.ts';

export interface TrajectoryOptions {
  /** Lines of one observation before its middle is left out; 0 shows all. */
  readonly maxLines?: number;
}

/** One message after the other; the caller reads chunks as it goes, so thousands of steps need little memory. */
export function* trajectoryLines(
  doc: AttemptDocument,
  messages: Iterable<MessageDocument>,
  options: TrajectoryOptions = {},
): Generator<string> {
  const rows = new Map(doc.outline.map((row) => [row.seq, row]));
  yield* headLines(doc);
  for (const message of messages) {
    yield '';
    yield rule(rows.get(message.seq), message.role);
    if (message.reasoning) yield* indent(inert(message.reasoning).split('\n'), '  · ');
    if (message.content !== '') yield* fold(inert(message.content).split('\n'), options.maxLines ?? 40);
    for (const call of message.toolCalls)
      yield* indent(inert(call.text).split('\n'), call.name === 'bash' ? '  $ ' : `  ${inert(call.name)} `);
  }
}

/** The patch of an attempt, under a rule like a message's. */
export function patchLines(patch: string, options: TrajectoryOptions = {}): string[] {
  return [rule(undefined, 'patch'), ...fold(inert(patch).split('\n'), options.maxLines ?? 40)];
}

function* headLines(doc: AttemptDocument): Generator<string> {
  const { attempt, instance, trial, run } = doc;
  const verdict = doc.evaluations.find((evaluation) => evaluation.current);
  yield inert(
    `${instance.instanceId}  run ${run.name}, arm ${trial.arm}, epoch ${trial.epoch}, attempt ${attempt.number} of ${doc.attempts.length}`,
  );
  yield inert(
    `${attempt.exitReason ?? attempt.state}${verdict ? `, ${verdict.outcome}` : ''}; ${attempt.steps} steps, ${formatCost(attempt.money.costNano)}, ${clock(attempt.elapsedMs)}`,
  );
  if (attempt.error) yield inert(`error: ${attempt.error}`);
  for (const flag of attempt.flags)
    yield inert(`flag: ${flag.rule}${flag.step === null ? '' : ` at step ${flag.step}`}`);
}

function rule(row: OutlineRow | undefined, role: string): string {
  const parts = [inert(role)];
  if (row && row.step !== null) parts.push(`step ${row.step}`);
  if (row?.call) parts.push(clock(row.call.latency_ms), formatCost(row.call.cost_nano));
  if (row && row.execMs !== null) parts.push(clock(row.execMs));
  if (row?.timedOut) parts.push('timed out');
  else if (row?.exitCode) parts.push(`exit ${row.exitCode}`);
  return `── ${parts.join(' · ')} ${'─'.repeat(Math.max(3, 72 - parts.join(' · ').length))}`;
}

const indent = (lines: readonly string[], by: string): string[] => lines.map((line) => `${by}${line}`);

function fold(lines: readonly string[], most: number): readonly string[] {
  if (most === 0 || lines.length <= most) return lines;
  const head = Math.ceil(most * 0.6);
  const tail = most - head;
  return [...lines.slice(0, head), `  … ${lines.length - most} lines left out …`, ...lines.slice(-tail)];
}

export function clock(ms: number | null): string {
  if (ms === null || !Number.isFinite(ms)) return '-';
  const s = Math.round(ms / 1000);
  if (s < 60) return ms < 10_000 ? `${(ms / 1000).toFixed(1)} s` : `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}

/** Rate over the last hour of work, and what it says about the rest; null before anything ended. */
export function paceOf(
  run: RunDocument,
): { perHour: number; nanoPerHour: number; leftMs: number; left: number } | null {
  const last = run.series.at(-1);
  if (!last) return null;
  const end = Date.parse(last.at);
  const since = Math.max(Date.parse(run.summary.createdAt), end - 3_600_000);
  const recent = run.series.filter((point) => Date.parse(point.at) > since);
  const hours = (end - since) / 3_600_000;
  if (hours <= 0 || recent.length === 0) return null;
  const before = run.series.at(-recent.length - 1)?.costNano ?? 0;
  const left = run.summary.tally.planned - run.summary.tally.sealed;
  const perHour = recent.length / hours;
  return {
    perHour,
    nanoPerHour: (last.costNano - before) / hours,
    leftMs: (left / perHour) * 3_600_000,
    left,
  };
}

/** What `ls RUN --watch` draws: the run in four lines, then a line for each slot. */
export function watchLines(run: RunDocument, nowMs: number): string[] {
  const { summary, slots, breaker, pulls } = run;
  const { tally, money } = summary;
  const pace = paceOf(run);
  const budget = summary.budgetNano === null ? '' : ` of ${formatCost(summary.budgetNano)}`;
  const spent = `${money.unknownCalls > 0 ? '≥ ' : ''}${formatCost(money.costNano)}`;
  const phases = [...Map.groupBy(slots, (slot) => slot.phase ?? 'starting')].map(
    ([name, list]) => `${name} ${list.length}`,
  );
  const lines = [
    `${inert(summary.name)}  ${summary.status}  ${tally.sealed}/${tally.planned} sealed, ${tally.running} running, ${tally.pending} pending`,
    `${resolvedOf(run)}; ${tally.classes.map(([name, n]) => `${inert(name)} ${n}`).join(', ')}`,
    `${spent}${budget}${pace ? `, ${formatCost(Math.round(pace.nanoPerHour))}/h, ${pace.perHour.toFixed(1)} trials/h, about ${clock(pace.leftMs)} left` : ''}`,
    `slots ${slots.length}: ${phases.join(', ') || 'idle'}${pulls.now > 0 ? `; pulling ${pulls.now}` : ''}`,
  ];
  if (breaker?.open) lines.push(inert(`held since ${breaker.at}: ${breaker.reason}`));
  for (const slot of slots) {
    const since = slot.phaseSince === null ? null : nowMs - Date.parse(slot.phaseSince);
    lines.push(
      inert(
        `  ${String(slot.slot ?? '-').padStart(3)}  ${slot.instanceId.padEnd(32)} step ${String(slot.steps).padStart(3)}  ${`${slot.phase ?? '-'} ${clock(since)}`.padEnd(22)} ${formatCost(slot.costNano)}`,
      ),
    );
  }
  return lines;
}

function resolvedOf(run: RunDocument): string {
  const { resolved, graded } = run.summary.tally;
  if (graded === 0) return 'nothing graded yet';
  const { low, high } = wilson(resolved, graded);
  return `resolved ${resolved}/${graded} = ${((resolved / graded) * 100).toFixed(1)} % [${(low * 100).toFixed(1)}, ${(high * 100).toFixed(1)}]`;
}
