/** An evaluation on the terminal: a line for each verdict, then the scores for people, JSON for programs, and the exit code. */
import { inert } from '../base/text/inert.ts';
import type { Block } from '../report/render/document.ts';
import { rate } from '../report/render/format.ts';
import { renderTerminal } from '../report/render/renderTerminal.ts';
import { proportion } from '../report/statistics/proportions.ts';
import type { Evaluation, GradedPart } from '../results/evaluate/gradeRun.ts';
import type { Attendant, Work } from '../run/caller.ts';
import type { Calibrated } from '../store/records/evaluations.ts';
import { EXIT, printData, printJson, printResult, say } from './terminal/context.ts';
import { commandOn } from './terminal/nextStep.ts';
import { listenForSignals, signalExitCode } from './terminal/signals.ts';
import { table } from './terminal/table.ts';

/** One line for each verdict. */
export function attendGrading({ events, stop }: Work): Attendant {
  let done = 0;
  let total = 0;
  events.on((event) => {
    if (event.type === 'graded')
      say(
        `[${++done}/${total}] ${event.trial.instanceId}  ${event.outcome}  ${(event.durationMs / 1000).toFixed(1)} s`,
      );
    if (event.type === 'stopping') say(event.reason);
    if (event.type === 'paused' || event.type === 'resumed') say(`${event.type}: ${inert(event.reason)}`);
    if (event.type === 'note') say(inert(event.text));
  });
  return {
    exitNow: () => process.exit(signalExitCode('SIGINT')),
    toGrade: (count) => {
      done = 0;
      total = count;
    },
    over: listenForSignals(stop, events),
  };
}

export function concludeEvaluation(evaluation: Evaluation, json: boolean): number {
  const { run, root, reports, faults, ungraded, interruptedBy } = evaluation;
  if (interruptedBy !== null) {
    say(`interrupted; go on with ${commandOn(root, `evaluate ${run}`)}`);
    return signalExitCode(interruptedBy);
  }
  if (reports.length === 0) {
    if (json) printJson([]);
    say(
      `incomplete: no trial of ${run} has a result that could be graded; ${commandOn(root, `resume ${run} --retry infra`)} goes on`,
    );
    return EXIT.incomplete;
  }
  const parts = reports.map((part) => partJson(evaluation, part));
  printResult(json, parts, () => scoreText(reports));
  for (const message of faults) say(`note: ${inert(message.slice(0, 500))}`);
  for (const { path } of reports) say(`report: ${path}`);
  if (ungraded === 0) return EXIT.done;
  say(
    `incomplete: ${ungraded} prediction(s) have no verdict; ${commandOn(root, `evaluate ${run}`)} tries them again`,
  );
  return EXIT.incomplete;
}

const partJson = ({ run, dialect, network }: Evaluation, part: GradedPart) => ({
  run,
  arm: part.arm,
  epoch: part.epoch,
  model: part.model,
  dialect,
  network,
  report_path: part.path,
  report: {
    ...part.report,
    ...(part.report.failure_reasons && {
      failure_reasons: Object.fromEntries(part.report.failure_reasons),
    }),
  },
  gold: part.gold,
});

function scoreText(reports: readonly GradedPart[]): string {
  const several = reports.some((part) => part.epoch > 1);
  const blocks = reports.flatMap((part): Block[] => {
    const { report, gold } = part;
    const resolved = proportion(report.resolved_instances, report.submitted_instances);
    return [
      { kind: 'heading', level: 3, text: several ? `${part.arm}, epoch ${part.epoch}` : part.arm },
      {
        kind: 'facts',
        rows: [
          ['resolved', `${rate(resolved)} of submitted (Wilson 95 %)`],
          ['where gold passes', gold ? rate(proportion(gold.resolved, gold.submitted)) : 'not calibrated'],
          [
            'others',
            `unresolved ${report.unresolved_instances}, empty ${report.empty_patch_instances}, error ${report.error_instances}`,
          ],
        ],
      },
    ];
  });
  return renderTerminal(blocks);
}

/** How often the gold patches of these instances passed, now and before. */
export function showCalibration(rows: readonly Calibrated[]): void {
  const notable = rows.filter((row) => row.standing !== 'passes');
  say(
    `gold passes on this machine for ${rows.length - notable.length} of ${rows.length} instance and image pairs`,
  );
  if (notable.length > 0)
    printData(
      table(
        ['instance', 'gold', 'resolved', 'image', 'last'],
        notable.map((row) => [
          row.instance_id,
          row.standing,
          `${row.resolved} of ${row.evaluations}`,
          (row.image_digest ?? '-').slice(0, 19),
          row.last_at.slice(0, 19),
        ]),
      ),
    );
}
