/** `swebatch evaluate RUN | predictions | gold`, `--regrade DIR`, `--verify-gold`: verdicts, with and without containers. */

import { existsSync } from 'node:fs';
import { MOST, setting } from '../../base/plausible.ts';
import { inert } from '../../base/text/inert.ts';
import type { GradingConfig } from '../../grading/gradingConfig.ts';
import type { Regraded } from '../../grading/regradeFolder.ts';
import type { Block } from '../../report/render/document.ts';
import { rate } from '../../report/render/document.ts';
import { renderTerminal } from '../../report/render/renderers.ts';
import { proportion } from '../../report/statistics/proportions.ts';
import { evaluatePredictions } from '../../results/evaluate/evaluatePredictions.ts';
import {
  type EvaluateOptions,
  type Evaluation,
  evaluateRun,
  type GradedPart,
} from '../../results/evaluate/gradeRun.ts';
import { regradeLogs } from '../../results/evaluate/regradeLogs.ts';
import type { Attendant, Work } from '../../run/caller.ts';
import { resultsRoot } from '../../run/resultsRoot.ts';
import { UserError } from '../../run/userError.ts';
import type { Calibrated } from '../../store/records/evaluations.ts';
import { integer } from '../flags/checks.ts';
import { type Args, defineVerb, flags, json, oneOf, output, string, toggle } from '../flags/verb.ts';
import { commandOn, EXIT, printData, printJson, printResult, say } from '../terminal/context.ts';
import { documentWidth, table } from '../terminal/table.ts';
import { listenForSignals, signalExitCode, thisProcess } from '../terminal/thisProcess.ts';

const texts = (describe: string) => ({ ...string(describe), repeats: true }) as const;

const evaluateFlags = flags({
  target: {
    ...string('run (name, unique prefix, "last"), preds.json, all_preds.jsonl, or "gold"'),
    place: 'optional',
  },
  output,
  subset: { alias: 'd', ...texts('dataset of the predictions or logs; may repeat with --regrade') },
  split: string('split of the dataset'),
  dataDir: string('folder with local copies of datasets'),
  instance: { alias: 'i', ...texts('only these ids (repeat, or separate with commas)') },
  workers: { alias: ['w', 'max_workers'], ...integer(1, 'evaluations at a time', MOST.atOnce) },
  timeout: {
    alias: 't',
    type: 'number',
    check: setting.seconds().optional(),
    describe: 'seconds for the tests [1800]',
  },
  memory: string('memory limit of a container; 0: none [16g, or three quarters of a smaller machine]'),
  network: oneOf(['default', 'none'], "default is the harness's own; none is recorded with the verdict"),
  capAdd: texts('capability of the containers; SYS_ADMIN is what the harness adds for browser tests'),
  harness: oneOf(['v5', 'v4.1'], 'rules of the harness to grade by [v5]'),
  config: {
    alias: 'c',
    ...texts('file, or key.path=value: suite.env and suite.judge of predictions, anything of gold'),
  },
  parser: texts('ID=MODULE: a log parser of your own (exports parseLog)'),
  runId: { alias: 'id', ...string('name of the run that predictions become') },
  again: toggle('re-grade instances that already have a verdict'),
  regrade: texts('grade from the logs in this folder, without containers'),
  write: {
    ...toggle('with --regrade: replace report.json in each folder (--no-write: only show)'),
    default: true,
  },
  verifyGold: toggle('solve each task anew by its own solution, and remember which pass on this machine'),
  repeat: integer(
    1,
    'with --verify-gold: how often each instance is solved, to find flaky ones [1]',
    MOST.repeats,
  ),
  json,
});
type EvaluateArgs = Args<typeof evaluateFlags>;

/** Only what was given; everything else stays as the run was planned, or at its default. */
function gradingGiven(args: EvaluateArgs): Partial<GradingConfig> {
  const own = args.parser.map((entry): [string, string] => {
    const at = entry.indexOf('=');
    if (at < 1) throw new UserError(`--parser ${entry}: write ID=MODULE, e.g. --parser mine=./my-parser.ts`);
    return [entry.slice(0, at), entry.slice(at + 1)];
  });
  const { workers, timeout, memory, network, harness } = args;
  const cap_add = args.capAdd.length > 0 ? args.capAdd : undefined;
  const given = Object.entries({ workers, timeout, memory, network, harness, cap_add });
  return {
    ...Object.fromEntries(given.filter(([, value]) => value !== undefined)),
    parsers: Object.fromEntries(own),
  };
}

const idsGiven = (args: EvaluateArgs): string[] =>
  args.instance.flatMap((entry) => entry.split(',')).filter(Boolean);

const PREDICTIONS = /\.(json|jsonl|ndjson)$/;

async function run(args: EvaluateArgs): Promise<number> {
  if (args.regrade.length > 0) return regrade(args);
  const target = args.verifyGold ? 'gold' : args.target;
  if (args.verifyGold && args.target !== undefined && args.target !== 'gold')
    throw new UserError('--verify-gold grades the solutions of a dataset; leave the run or file out', {
      hint: 'swebatch evaluate --verify-gold --subset verified',
    });
  if (target === undefined)
    throw new UserError('name what to evaluate', {
      hint: 'a run ("last"), a predictions file (preds.json, all_preds.jsonl), "gold", or use --regrade DIR',
    });
  if (target === 'gold' || PREDICTIONS.test(target)) return predictions(args, target);
  if (existsSync(target) && args.subset.length > 0)
    throw new UserError(`${target} is not a predictions file: its name must end in .json or .jsonl`);
  if (args.config.length > 0)
    throw new UserError(`${target} is graded by the configuration that it was planned with: leave -c out`);
  const evaluation = await evaluateRun({ ...optionsOf(args), run: target }, caller());
  return concludeEvaluation(evaluation, args.json);
}

const caller = () => ({ ...thisProcess(), attend: attendGrading });

const optionsOf = (args: EvaluateArgs): EvaluateOptions => ({
  results: resultsRoot(args.output),
  grading: gradingGiven(args),
  instances: idsGiven(args),
  again: args.again || args.verifyGold,
});

async function predictions(args: EvaluateArgs, target: string): Promise<number> {
  if (target !== 'gold' && !existsSync(target))
    throw new UserError(`${target} cannot be read: there is no such file`, {
      hint: 'name a predictions file that is here, or a run ("swebatch ls")',
    });
  const [subset, ...more] = args.subset;
  if (subset === undefined)
    throw new UserError(`--subset is missing: ${target} does not say which tests are expected`, {
      hint: `swebatch evaluate ${target} --subset verified`,
    });
  if (more.length > 0) throw new UserError('predictions are graded against one dataset; give --subset once');
  const evaluation = await evaluatePredictions(
    {
      ...optionsOf(args),
      predictions: target,
      dataset: { subset, split: args.split, dataDir: args.dataDir },
      name: args.runId,
      config: args.config,
      repeat: args.verifyGold ? args.repeat : 1,
    },
    caller(),
  );
  const code = concludeEvaluation(evaluation, args.json, target === 'gold' ? 'resume' : 'evaluate');
  if (args.verifyGold && !args.json) showCalibration(evaluation.calibration);
  // A calibration measures how many pass.
  return target === 'gold' && !args.verifyGold && code === EXIT.done ? unresolvedGold(evaluation) : code;
}

const NAMED = 5;

/** A task that its own solution does not solve is solved by no model. */
function unresolvedGold({ run, root, reports }: Evaluation): number {
  const failed = reports.flatMap(({ report }) => {
    const resolved = new Set(report.resolved_ids);
    return report.submitted_ids.filter((id) => !resolved.has(id));
  });
  if (failed.length === 0) return EXIT.done;
  const named = failed.slice(0, NAMED).map(inert).join(', ');
  const more = failed.length > NAMED ? ` and ${failed.length - NAMED} more` : '';
  const many = failed.length === 1 ? '1 task is' : `${failed.length} tasks are`;
  say(
    `${many} not resolved by the task's own solution: ${named}${more}; ${commandOn(root, `show ${run} ${inert(failed[0]!)}`)} shows why`,
  );
  return EXIT.gate;
}

/** One line for each verdict. */
function attendGrading({ events, stop }: Work): Attendant {
  let done = 0;
  let total = 0;
  events.on((event) => {
    if (event.type === 'run_started') total = event.toDo;
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

/** Solutions are a run, and go on as one. */
function concludeEvaluation(
  evaluation: Evaluation,
  json: boolean,
  goOn: 'evaluate' | 'resume' = 'evaluate',
): number {
  const { run, root, reports, faults, ungraded, interruptedBy } = evaluation;
  if (interruptedBy !== null) {
    say(`interrupted; go on with ${commandOn(root, `${goOn} ${run}`)}`);
    return signalExitCode(interruptedBy);
  }
  if (reports.length === 0) {
    if (json) printJson([]);
    for (const message of faults) say(`note: ${inert(message.slice(0, 500))}`);
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
    `incomplete: ${ungraded} prediction(s) have no verdict; ${commandOn(root, goOn === 'resume' ? `resume ${run} --retry infra` : `evaluate ${run}`)} tries them again`,
  );
  return EXIT.incomplete;
}

const partJson = ({ run, harness, network }: Evaluation, part: GradedPart) => ({
  run,
  arm: part.arm,
  epoch: part.epoch,
  model: part.model,
  harness,
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
  return renderTerminal(blocks, documentWidth());
}

/** The passes of these instances' gold patches, now and before. */
function showCalibration(rows: readonly Calibrated[]): void {
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

const shown = ({ error, folder, patch, specHash, infra, ...verdict }: Regraded) => ({
  ...verdict,
  ...(error !== null && { error }),
});

async function regrade(args: EvaluateArgs): Promise<number> {
  if (args.subset.length === 0)
    throw new UserError('--regrade needs the dataset that says which tests are expected', {
      hint: 'add --subset verified, or --subset FILE.parquet; it may be given several times',
    });
  const {
    rows: all,
    skipped,
    harness,
  } = await regradeLogs(
    {
      folders: args.regrade,
      datasets: args.subset.map((subset) => ({ subset, split: args.split, dataDir: args.dataDir })),
      grading: gradingGiven(args),
      instances: idsGiven(args),
      write: args.write,
    },
    thisProcess(),
  );
  for (const sentence of skipped) say(`note: ${inert(sentence)}`);
  if (all.length === 0)
    throw new UserError(`no instance folders in ${args.regrade.join(', ')}`, {
      hint: 'an instance folder holds test_output.txt; its name is the instance id',
    });

  const cells = all.map((row) => [
    row.instance_id,
    row.resolved === null ? 'no verdict' : row.resolved ? 'resolved' : 'unresolved',
    row.suspicion.map((flag) => flag.rule).join(' '),
    row.run_id,
    row.model,
  ]);
  printResult(args.json, all.map(shown), () =>
    table(['instance', 'verdict', 'flags', 'run', 'model'], cells),
  );
  for (const row of all) if (row.error !== null) say(`note: ${inert(row.error)}`);
  const resolved = all.filter((row) => row.resolved === true).length;
  const none = all.filter((row) => row.report === null).length;
  say(
    `resolved ${rate(proportion(resolved, all.length))} by harness ${harness}${none > 0 ? `, ${none} without a verdict` : ''}`,
  );
  return EXIT.done;
}

export const evaluateVerb = defineVerb({
  name: 'evaluate',
  describe: 'grade a run, a predictions file or gold; regrade saved logs; calibrate a dataset',
  flags: evaluateFlags,
  examples: [
    ['$0 evaluate last', 'grade what the last run predicted'],
    ['$0 evaluate preds.json --subset verified -w 4', 'a predictions file of any tool'],
    ['$0 evaluate --verify-gold --subset lite', 'how the gold patches do on this machine'],
    [
      '$0 evaluate --regrade logs/run_evaluation --subset lite.parquet --no-write --json',
      "the harness's own logs",
    ],
  ],
  run,
});
