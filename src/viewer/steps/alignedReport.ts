/** Two aligned trajectories as a report for a terminal, Markdown or HTML, and as data. */
import { formatCost } from '../../money.ts';
import { type Block, block, type Document } from '../../report/render/document.ts';
import type { AttemptDocument, EvaluationDocument } from '../documents/attemptDocuments.ts';
import { KEPT_WORK, keptWork } from '../documents/keptWork.ts';
import { clockTime } from '../trajectoryLines.ts';
import { alignAttempts, failureOf, type StepLine } from './alignedAttempts.ts';

export interface ReportedSide {
  readonly label: string;
  readonly doc: AttemptDocument;
  readonly verdict: EvaluationDocument | undefined;
}

/** Two of them fit beside each other on a terminal of 80 columns. */
const SHOWN = 29;
const firstLine = (text: string, most: number): string => {
  const line = text.split('\n', 1)[0]!;
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
};

function cells(line: StepLine | undefined): [step: string, does: string] {
  if (!line) return ['', ''];
  const { kind, command } = line.does;
  const failure = failureOf(line);
  const end = failure && ` [${failure}]`;
  return [String(line.row.step ?? ''), `${firstLine(`${kind} ${command}`, SHOWN - end.length)}${end}`];
}

const failedTests = (side: ReportedSide): string[] =>
  side.verdict?.tests.flatMap((test) => (test.passed ? [] : [test.name])) ?? [];

const factsOf = ({ doc: { attempt, patch }, verdict }: ReportedSide): string[] => [
  verdict?.outcome ?? 'not graded',
  attempt.exitReason ?? attempt.state,
  String(attempt.steps),
  formatCost(attempt.money.costNano),
  clockTime(attempt.elapsedMs),
  patch === '' ? 'none' : `${patch.split('\n').length} lines`,
];
const FACTS = ['verdict', 'ended', 'steps', 'cost', 'time', 'patch'];

const SIGNS = { same: '=', alike: '~', alone: '' };

export function alignedDocument(a: ReportedSide, b: ReportedSide): Document {
  const { rows, partsAt } = alignAttempts(a.doc, b.doc);
  const count = (how: string) => rows.filter((row) => row.how === how).length;
  const [left, right] = [factsOf(a), factsOf(b)];
  const steps = rows.map((row, at) => [
    at === partsAt ? 'parts' : SIGNS[row.how],
    ...cells(row.a),
    ...cells(row.b),
  ]);
  const [failedA, failedB] = [failedTests(a), failedTests(b)];
  const failed = [...new Set([...failedA, ...failedB])];
  const said = (side: ReportedSide, failures: readonly string[], test: string) =>
    side.verdict ? (failures.includes(test) ? 'failed' : 'passed') : '-';
  return [
    block.heading(1, a.doc.instance.instanceId),
    block.table(
      ['', `A ${a.label}`, `B ${b.label}`],
      FACTS.map((name, i) => [name, left[i]!, right[i]!]),
    ),
    block.heading(2, 'Steps'),
    block.text(
      `${count('same')} the same (=), ${count('alike')} alike (~: same kind of step, same files or tests), ${count('alone')} on one side only${partsAt === null ? '' : '; they part at the row marked so'}.`,
    ),
    block.table(['', 'A', 'does', 'B', 'does'], steps, ['A', 'B']),
    ...(failed.length > 0
      ? [
          block.heading(2, 'Tests that failed'),
          block.table(
            ['test', 'A', 'B'],
            failed.map((test) => [test, said(a, failedA, test), said(b, failedB, test)]),
          ),
        ]
      : []),
    ...[a, b].flatMap((side, i) => [
      block.heading(2, `Patch of ${i === 0 ? 'A' : 'B'}`),
      ...patchBlocks(side.doc),
    ]),
  ];
}

function patchBlocks(doc: AttemptDocument): Block[] {
  const kept = keptWork(doc);
  if (kept !== null)
    return [block.text(`There is none; this was ${KEPT_WORK}:`), block.lines(kept.split('\n'))];
  return [doc.patch === '' ? block.text('There is none.') : block.lines(doc.patch.split('\n'))];
}

function stepData(line: StepLine | undefined) {
  if (!line) return null;
  const { row, does } = line;
  return {
    step: row.step,
    kind: does.kind,
    command: does.command,
    files: does.files,
    exitCode: line.exitCode,
    timedOut: line.timedOut,
    ms: line.ms,
    costNano: row.call?.cost_nano ?? null,
  };
}

const sideData = (side: ReportedSide) => ({
  run: side.doc.run.name,
  arm: side.doc.trial.arm,
  epoch: side.doc.trial.epoch,
  attempt: side.doc.attempt.id,
  outcome: side.verdict?.outcome ?? null,
  exitReason: side.doc.attempt.exitReason,
  steps: side.doc.attempt.steps,
  costNano: side.doc.attempt.money.costNano,
  elapsedMs: side.doc.attempt.elapsedMs,
  failedTests: failedTests(side),
  patch: side.doc.patch,
});

export function alignedData(a: ReportedSide, b: ReportedSide) {
  const { rows, partsAt, editsPartAt } = alignAttempts(a.doc, b.doc);
  return {
    schemaVersion: 1,
    instance: a.doc.instance.instanceId,
    a: sideData(a),
    b: sideData(b),
    partsAt,
    editsPartAt,
    rows: rows.map((row) => ({ how: row.how, a: stepData(row.a), b: stepData(row.b) })),
  };
}
