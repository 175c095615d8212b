/** Two attempts at one instance, step beside step: what the page and `swebatch compare --instance` show. */

import type { AttemptDocument, HistoryRow } from '../documents/documents.ts';
import { type AlignedSteps, alignSteps, partingOf } from './alignSteps.ts';
import type { StepFacts } from './stepFacts.ts';
import { type StepLine, stepLines } from './stepLines.ts';

export interface AlignedAttempts {
  readonly a: readonly StepLine[];
  readonly b: readonly StepLine[];
  readonly rows: readonly AlignedSteps[];
  /** The first row where one does what the other does not. */
  readonly partsAt: number | null;
  /** The first row where both edit, and not in the same way, or only one does. */
  readonly editsPartAt: number | null;
}

const NOTHING: StepFacts = { kind: 'talk', files: [], command: '', digest: 0 };

/** Of a program its own conversation. */
function ownLines({ outline, threads }: AttemptDocument): StepLine[] {
  const own = threads[0]?.name;
  return stepLines(own === undefined ? outline : outline.filter((row) => row.thread === own));
}

export function alignAttempts(left: AttemptDocument, right: AttemptDocument): AlignedAttempts {
  const [a, b] = [ownLines(left), ownLines(right)];
  const factsOf = (line: StepLine) => line.row.does ?? NOTHING;
  const rows = alignSteps(a.map(factsOf), b.map(factsOf));
  const isEdit = (lines: readonly StepLine[], at: number | null) =>
    at !== null && factsOf(lines[at]!).kind === 'edit';
  const edits = rows.findIndex((row) => row.how !== 'same' && (isEdit(a, row.a) || isEdit(b, row.b)));
  return { a, b, rows, partsAt: partingOf(rows), editsPartAt: edits < 0 ? null : edits };
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
