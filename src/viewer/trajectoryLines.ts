/** An attempt as lines for a terminal, to page through. Pure: documents in, lines out; all foreign text is inert. */

import { inert } from '../base/text/inert.ts';
import { plural } from '../base/text/numbers.ts';
import { formatCost } from '../money.ts';
import type {
  AttemptDocument,
  MessageDocument,
  OutlineRow,
  ThreadDocument,
} from './documents/attemptDocuments.ts';
import { judgeText, staysText } from './documents/documents.ts';
import type { Why } from './documents/why.ts';

interface LineOptions {
  /** Lines of one observation before its middle is left out; 0 shows all. */
  readonly maxLines?: number;
}

/** One message after the other; the caller reads chunks as it goes, so thousands of steps need little memory. */
export function* trajectoryLines(
  doc: AttemptDocument,
  messages: Iterable<MessageDocument>,
  options: LineOptions = {},
): Generator<string> {
  const rows = new Map(doc.outline.map((row) => [row.seq, row]));
  yield* headLines(doc);
  let thread: string | null = doc.threads[0]?.name ?? null;
  let taskStep: string | undefined;
  for (const message of messages) {
    const own = rows.get(message.seq)?.thread ?? null;
    yield '';
    if (own !== thread) yield* threadLines(doc, own);
    thread = own;
    if (message.taskStep !== undefined && message.taskStep !== taskStep)
      yield* heading(`step ${message.taskStep} of the task`);
    taskStep = message.taskStep;
    yield rule(rows.get(message.seq), message.role);
    if (message.reasoning) yield* indent(inert(message.reasoning).split('\n'), '  · ');
    if (message.content !== '') yield* fold(inert(message.content).split('\n'), options.maxLines ?? 40);
    for (const call of message.toolCalls)
      yield* indent(inert(call.text).split('\n'), call.name === 'bash' ? '  $ ' : `  ${inert(call.name)} `);
  }
}

/** A conversation beside the agent's own, with what it cost. */
function* threadLines({ threads }: AttemptDocument, name: string | null): Generator<string> {
  const thread = threads.find((one) => one.name === name);
  if (!thread) return;
  yield* heading(threadText(thread));
}

function* heading(text: string): Generator<string> {
  const shown = inert(text);
  yield `══ ${shown} ${'═'.repeat(Math.max(3, 72 - shown.length))}`;
  yield '';
}

function threadText({ name, label, calls, costNano, unknownCalls }: ThreadDocument): string {
  const who = label === null || label === name ? name : `${name} (${label.split(':')[0]})`;
  const least = costNano !== null && unknownCalls > 0 ? 'at least ' : '';
  return inert(`${who} · ${calls} call${calls === 1 ? '' : 's'} · ${least}${formatCost(costNano)}`);
}

/** The agent's own conversation first, then each of the others. */
export function byThread(doc: AttemptDocument, messages: readonly MessageDocument[]): MessageDocument[] {
  const place = new Map(doc.threads.map(({ name }, at) => [name, at]));
  const placeOf = new Map(doc.outline.map(({ seq, thread }) => [seq, place.get(thread ?? '') ?? 0]));
  return messages.toSorted((a, b) => (placeOf.get(a.seq) ?? 0) - (placeOf.get(b.seq) ?? 0) || a.seq - b.seq);
}

/** How a program ended, and what it wrote last. */
export function programLines({ attempt: { program } }: AttemptDocument, options: LineOptions = {}): string[] {
  if (!program) return [];
  const said =
    program.outputEnd === '' ? [] : fold(inert(program.outputEnd).split('\n'), options.maxLines ?? 40);
  const ended = program.exitCode === null ? 'killed' : `exit ${program.exitCode}`;
  const memory = program.oomKilled ? ' · the memory limit killed a process of it' : '';
  return ['', rule(undefined, `program · ${ended}${memory}`), ...said];
}

/** The patch of an attempt, under a rule like a message's. */
export function patchLines(patch: string, options: LineOptions = {}, title = 'patch'): string[] {
  return [rule(undefined, title), ...fold(inert(patch).split('\n'), options.maxLines ?? 40)];
}

function* headLines(doc: AttemptDocument): Generator<string> {
  const { attempt, instance, trial, run } = doc;
  const verdict = doc.evaluations.find((evaluation) => evaluation.current);
  yield inert(
    `${instance.instanceId}  run ${run.name}, arm ${trial.arm}, epoch ${trial.epoch}, attempt ${attempt.number} of ${doc.attempts.length}`,
  );
  yield inert(
    `${attempt.exitReason ?? attempt.state}${verdict ? `, ${verdict.outcome}` : ''}; ${plural(attempt.steps, 'step')}, ${formatCost(attempt.money.costNano)}, ${clockTime(attempt.elapsedMs)}`,
  );
  if (attempt.oomKills > 0)
    yield `memory: the limit (environment.memory) killed ${plural(attempt.oomKills, 'process', 'processes')}`;
  if (attempt.engines) yield inert(`engine: ${staysText(attempt.engines)}`);
  if (attempt.judge) yield inert(judgeText(attempt.judge, judgedFor(attempt.judge)));
  if (doc.threads.length > 1) yield `conversations: ${doc.threads.map(threadText).join('; ')}`;
  if (attempt.error && attempt.error !== doc.why?.firstError) yield inert(`error: ${attempt.error}`);
  if (verdict?.error && verdict.error !== doc.why?.firstError) yield inert(`grading: ${verdict.error}`);
  for (const note of attempt.notes) yield inert(`note: ${note}`);
  for (const flag of attempt.flags)
    yield inert(`flag: ${flag.rule}${flag.step === null ? '' : ` at step ${flag.step}`}`);
  if (doc.why) yield* whyLines(doc.why);
}

const judgedFor = ({ costNano, unknownCalls }: { costNano: number | null; unknownCalls: number }): string =>
  `${unknownCalls > 0 && costNano !== null ? '≥ ' : ''}${formatCost(costNano)}`;

const NAMED = 10;

/** The lines that a person looks for first. */
export function* whyLines({
  says,
  notPassed,
  broken,
  firstError,
  logEnd,
  touched,
  next,
}: Why): Generator<string> {
  yield '';
  yield inert(says);
  if (next) yield inert(`swebatch ${next.command} ${next.does}`);
  for (const [title, names] of [
    ['should pass now and does not', notPassed],
    ['passed before and is broken', broken],
  ] as const) {
    if (names.length === 0) continue;
    yield `${title} (${names.length}):`;
    for (const name of names.slice(0, NAMED)) yield inert(`  ${name}`);
    if (names.length > NAMED) yield `  and ${names.length - NAMED} more`;
  }
  if (firstError) yield* indent(inert(`first error: ${firstError}`).split('\n').slice(0, NAMED), '');
  if (touched.length > 0)
    yield inert(
      `the patch touches ${touched.map(({ file, added, removed }) => `${file} (+${added} -${removed})`).join(', ')}`,
    );
  if (logEnd.length > 0) {
    yield 'the end of the test output:';
    yield* indent(logEnd.map(inert), '  | ');
  }
}

function rule(row: OutlineRow | undefined, role: string): string {
  const parts = [inert(role)];
  if (row && row.step !== null) parts.push(`step ${row.step}`);
  if (row?.call) parts.push(clockTime(row.call.latency_ms), formatCost(row.call.cost_nano));
  if (row && row.execMs !== null) parts.push(clockTime(row.execMs));
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

export function clockTime(ms: number | null): string {
  if (ms === null || !Number.isFinite(ms)) return '-';
  const s = Math.round(ms / 1000);
  if (s < 60) return ms < 10_000 ? `${(ms / 1000).toFixed(1)} s` : `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}
