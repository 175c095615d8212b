/** Attempts step by step, and two at one instance beside each other: what the page and `swebatch compare --instance` show. */

import type { AttemptDocument, OutlineRow } from '../documents/attemptDocuments.ts';
import type { HistoryRow } from '../documents/trialDocuments.ts';
import type { StepFacts } from './stepFacts.ts';

export interface StepLine {
  /** Place of the answer in the outline. */
  readonly index: number;
  readonly row: OutlineRow;
  readonly does: StepFacts;
  exitCode: number | null;
  timedOut: boolean;
  ms: number | null;
}

const NOTHING: StepFacts = { kind: 'talk', files: [], command: '', digest: 0 };

/** One line for each answer; how it ended stands in the observations that follow it. */
export function stepLines(outline: readonly OutlineRow[]): StepLine[] {
  const lines: StepLine[] = [];
  for (const [index, row] of outline.entries()) {
    const open = lines.at(-1);
    if (row.role === 'assistant') {
      const ms = row.call?.latency_ms ?? null;
      lines.push({ index, row, does: row.does ?? NOTHING, exitCode: null, timedOut: false, ms });
    } else if (open) {
      open.exitCode = row.exitCode ?? open.exitCode;
      open.timedOut ||= row.timedOut;
      if (row.execMs !== null) open.ms = (open.ms ?? 0) + row.execMs;
    }
  }
  return lines;
}

/** "timed out" or "exit 1"; empty where nothing failed. */
export const failureOf = ({ timedOut, exitCode }: Pick<OutlineRow, 'timedOut' | 'exitCode'>): string =>
  timedOut ? 'timed out' : exitCode ? `exit ${exitCode}` : '';

/** Of a program its own conversation. */
function ownLines({ outline, threads }: AttemptDocument): StepLine[] {
  const own = threads[0]?.name;
  return stepLines(own === undefined ? outline : outline.filter((row) => row.thread === own));
}

export function alignAttempts(left: AttemptDocument, right: AttemptDocument) {
  const [a, b] = [ownLines(left), ownLines(right)];
  const aligned = alignSteps(
    a.map((line) => line.does),
    b.map((line) => line.does),
  );
  const rows = aligned.map((row) => ({
    how: row.how,
    a: row.a === null ? undefined : a[row.a]!,
    b: row.b === null ? undefined : b[row.b]!,
  }));
  const edits = rows.findIndex(
    (row) => row.how !== 'same' && (row.a?.does.kind === 'edit' || row.b?.does.kind === 'edit'),
  );
  return {
    rows,
    /** The first row where one does what the other does not. */
    partsAt: partingOf(aligned),
    /** The first row where both edit, and not in the same way, or only one does. */
    editsPartAt: edits < 0 ? null : edits,
  };
}

type Named = Pick<HistoryRow, 'run' | 'arm' | 'epoch' | 'attempt'>;

/** RUN, RUN/ARM, and either with @EPOCH: the shortest that names one trial of an instance. */
export function sideName(row: Named, all: readonly Named[]): string {
  const own = all.filter((other) => other.run === row.run);
  const arm = new Set(own.map((other) => other.arm)).size > 1 ? `/${row.arm}` : '';
  const epoch = new Set(own.map((other) => other.epoch)).size > 1 ? `@${row.epoch}` : '';
  return `${row.run}${arm}${epoch}`;
}

/** The trial that a name means; of several the first with an attempt. */
export function rowOfSide<Row extends Named>(wanted: string, all: readonly Row[]): Row | undefined {
  const tried = all.filter((row) => row.attempt !== null);
  return tried.find(({ run, arm, epoch }) =>
    [run, `${run}/${arm}`, `${run}@${epoch}`, `${run}/${arm}@${epoch}`].includes(wanted),
  );
}

export interface AlignedSteps {
  /** Places in the two lists; null where the other did nothing like it. */
  readonly a: number | null;
  readonly b: number | null;
  readonly how: 'same' | 'alike' | 'alone';
}

const SAME = 12;
/** So many pairs are compared at most at a time: a megabyte, and some milliseconds. */
const MOST_PAIRS = 1_000_000;

const firstWord = (command: string): string => command.split(/\s/, 1)[0] ?? '';

/** How alike two steps are; 0 for those that have nothing to do with each other. */
export function likeness(a: StepFacts, b: StepFacts): number {
  if (a.kind !== b.kind) return 0;
  if (a.digest === b.digest && a.command === b.command) return SAME;
  const shared = a.files.filter((file) => b.files.includes(file)).length;
  if (shared > 0) return 4 + Math.min(shared, 3) + (a.files[0] === b.files[0] ? 1 : 0);
  if (a.kind === 'submit') return 6;
  // Steps about different files do different things, whatever their commands are called.
  if (a.files.length > 0 || b.files.length > 0) return a.kind === 'test' ? 2 : 0;
  if (a.kind === 'test') return 3;
  return a.command !== '' && firstWord(a.command) === firstWord(b.command) ? 1 : 0;
}

const pair = (a: number, b: number, score: number): AlignedSteps => ({
  a,
  b,
  how: score === SAME ? 'same' : 'alike',
});

const UP = 1;
const LEFT = 2;
const BOTH = 3;

/** The best way through the table of all pairs. */
function alignWindow(
  a: readonly StepFacts[],
  b: readonly StepFacts[],
  fromA: number,
  fromB: number,
): AlignedSteps[] {
  const [n, m] = [a.length, b.length];
  const ways = new Uint8Array((n + 1) * (m + 1));
  let above = new Int32Array(m + 1);
  for (let i = 1; i <= n; i += 1) {
    const row = new Int32Array(m + 1);
    for (let j = 1; j <= m; j += 1) {
      const score = likeness(a[i - 1]!, b[j - 1]!);
      const both = score > 0 ? above[j - 1]! + score : -1;
      const best = Math.max(both, above[j]!, row[j - 1]!);
      row[j] = best;
      ways[i * (m + 1) + j] = both === best ? BOTH : above[j]! >= row[j - 1]! ? UP : LEFT;
    }
    above = row;
  }
  const rows: AlignedSteps[] = [];
  let [i, j] = [n, m];
  while (i > 0 || j > 0) {
    const way = i === 0 ? LEFT : j === 0 ? UP : ways[i * (m + 1) + j]!;
    if (way !== LEFT) i -= 1;
    if (way !== UP) j -= 1;
    if (way === BOTH) rows.push(pair(fromA + i, fromB + j, likeness(a[i]!, b[j]!)));
    else
      rows.push(
        way === UP ? { a: fromA + i, b: null, how: 'alone' } : { a: null, b: fromB + j, how: 'alone' },
      );
  }
  return rows.reverse();
}

export function alignSteps(a: readonly StepFacts[], b: readonly StepFacts[]): AlignedSteps[] {
  const windows = Math.max(1, Math.ceil(Math.sqrt((a.length * b.length) / MOST_PAIRS)));
  // Of very long trajectories the same share of both is compared: who did a thing in the first tenth meets who did it there too.
  return Array.from({ length: windows }, (_, k) => {
    const [fromA, toA] = [k, k + 1].map((edge) => Math.floor((edge * a.length) / windows)) as [
      number,
      number,
    ];
    const [fromB, toB] = [k, k + 1].map((edge) => Math.floor((edge * b.length) / windows)) as [
      number,
      number,
    ];
    return alignWindow(a.slice(fromA, toA), b.slice(fromB, toB), fromA, fromB);
  }).flat();
}

/** The first row where one does what the other does not; null where they never part. */
export const partingOf = (rows: readonly AlignedSteps[]): number | null => {
  const at = rows.findIndex((row) => row.how === 'alone');
  return at < 0 ? null : at;
};
