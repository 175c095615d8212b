/** The end of a run: a summary for people, JSON for programs, and the exit code. */

import { inert } from '../base/text/inert.ts';
import { COUNTED_CLASSES } from '../outcome.ts';
import type { GateResult } from '../report/gate/gate.ts';
import { wordOf } from '../report/gate/verdictWords.ts';
import { scoreText } from '../report/measure/score.ts';

import { budgetEnd } from '../run/control/budget.ts';
import type { GradingSummary } from '../run/grader/grader.ts';
import type { RunOutcome } from '../run/run.ts';
import type { Store } from '../store/open.ts';
import { type NightArgs, policyOf } from './flags/runFlags.ts';
import { commandOn, EXIT, printData, printJson, say } from './terminal/context.ts';
import { type ProgressMode, printEvent } from './terminal/progress.ts';
import { countsText, documentWidth, spentText } from './terminal/table.ts';
import { signalExitCode, thisProcess } from './terminal/thisProcess.ts';

/** Arms and epochs have a file each. */
const MANY_FILES = 3;

export function conclude(outcome: RunOutcome, json: boolean): number {
  const { run, shard, status, counts, spent, predictions, graded } = outcome;
  if (json)
    printJson({
      run,
      ...(shard && { shard }),
      status,
      counts,
      cost_nano: spent.nano,
      unknown_cost_calls: spent.unknownCalls,
      predictions,
      graded,
    });
  say(
    `run ${run}${shard ? ` (shard ${shard})` : ''}: ${status} · ${countsText(counts)} · ${spentText(spent)}`,
  );
  if (graded) say(`graded: ${countsText(graded.outcomes) || 'none'}`);
  const [first, ...more] = predictions;
  if (first && more.length > MANY_FILES) say(`predictions: ${first} and ${more.length} more beside it`);
  else for (const path of predictions) say(`predictions: ${path}`);
  const code = sayWhatNext(outcome);
  sayScores(outcome, code);
  return code;
}

/** The last line of a run with several arms: what each came to, and what compares them. */
function sayScores({ run, root, status, scores = [] }: RunOutcome, code: number): void {
  const graded = scores.filter((score) => score.graded);
  if (scores.length < 2 || graded.length === 0) return;
  const figures = scores.map(
    (score) => `${inert(score.arm)} ${score.graded ? scoreText(score) : 'not graded'}`,
  );
  const next = code === EXIT.done ? `compare ${run}` : nextWords(run, status);
  say(`resolved: ${figures.join(' · ')}; next: ${commandOn(root, next)}`);
}

function nextWords(run: string, status: RunOutcome['status']): string {
  if (status === 'complete') return `evaluate ${run}`;
  if (status === 'budget') return `resume ${run} --cost-limit N`;
  return status === 'incomplete' ? `resume ${run} --retry infra` : `resume ${run}`;
}

/** A prediction for which no rules are known stays without a verdict, however often it is tried. */
function ungradedText({ ungraded, outcomes }: GradingSummary, root: string, run: string): string {
  const never = outcomes.ungradable ?? 0;
  const again = ungraded - never;
  return [
    ...(never > 0
      ? [`${never} prediction(s) cannot be graded; ${commandOn(root, `show ${run} INSTANCE`)} says why`]
      : []),
    ...(again > 0
      ? [`${again} prediction(s) could not be graded; try ${commandOn(root, `evaluate ${run}`)}`]
      : []),
  ].join('; ');
}

function sayWhatNext({ run, root, status, counts, graded, predictions, ...outcome }: RunOutcome): number {
  const notRun = counts.not_run ?? 0;
  switch (status) {
    case 'interrupted':
      say(`interrupted; go on with ${commandOn(root, `resume ${run}`)}`);
      return signalExitCode(outcome.interruptedBy ?? 'SIGINT');
    case 'failed':
      say(inert(`error: ${outcome.fatal ?? 'the configuration cannot work'}; ${notRun} trial(s) not run`));
      return EXIT.usage;
    case 'budget': {
      const decided = [...COUNTED_CLASSES].reduce((n, c) => n + (counts[c] ?? 0), 0);
      const end = budgetEnd(outcome.budgetNano, outcome.spent.committedNano);
      say(
        `${end}${end.endsWith('reached') ? ':' : ';'} ${decided} finished, ${notRun} not run; go on with ${commandOn(root, `resume ${run} --cost-limit N`)}`,
      );
      return EXIT.budget;
    }
    case 'complete':
      if (!graded && predictions.length > 0)
        say(`not graded; grade it with ${commandOn(root, `evaluate ${run}`)}`);
      if (!graded || graded.ungraded === 0) return EXIT.done;
      say(`incomplete: ${ungradedText(graded, root, run)}`);
      return EXIT.incomplete;
    default:
      say(
        `incomplete: ${counts.infra ?? 0} trial(s) ended for reasons that are not the model's; run them again with ${commandOn(root, `resume ${run} --retry infra`)}`,
      );
      if (counts.cancelled)
        say(`${counts.cancelled} cancelled; ${commandOn(root, `resume ${run}`)} runs them`);
      if (graded && graded.ungraded > 0) say(ungradedText(graded, root, run));
      for (const { reason, count, instanceId, message } of outcome.failures)
        say(`  ${reason} ${count}${message ? `: ${inert(instanceId)}: ${inert(message)}` : ''}`);
      return EXIT.incomplete;
  }
}

/** The verdict of `run --baseline`, printed for people and programs; with `json`, stdout stays free for the run's own. Exit code 0, 1 or 3. */
export async function showNight(
  store: Store,
  of: { readonly results: string; readonly run: string },
  args: NightArgs & { readonly json: boolean; readonly progress: ProgressMode },
): Promise<number> {
  const options = {
    ...of,
    baseline: args.baseline!,
    remeasure: args.remeasure,
    withoutBaseline: args.withoutBaseline,
    // Read only where there is something to judge.
    get policy() {
      return policyOf(args);
    },
  };
  // Most runs are no nights: the judge of nights is loaded with the first.
  const [{ judgeRun }, { gateDocument }, { renderTerminal }] = await Promise.all([
    import('../results/night/judgeRun.ts'),
    import('../report/gate/gateDocument.ts'),
    import('../report/render/renderers.ts'),
  ]);
  const alone = args.progress === 'none';
  const night = await judgeRun(store, options, thisProcess(args.progress), {
    judged({ comparison, result, past, passedOver, artifacts, event }) {
      const sides = { a: comparison.a.label, b: comparison.b.label };
      const text = renderTerminal(gateDocument(result, sides, past, passedOver), documentWidth());
      if (args.json || args.progress === 'json') say(text);
      else printData(text);
      sayJudged(result, sides.a, alone ? [] : artifacts);
      if (event.exitCode === EXIT.incomplete) sayUnconfirmed(result);
      if (args.progress === 'json') printEvent(event);
    },
    remeasured: (outcome) => void (alone || conclude(outcome, false)),
  });
  if (night.baseline !== null) return night.exitCode;
  say('no comparable baseline: no complete and graded run has this configuration and dataset');
  for (const { run, why } of night.passedOver) say(`passed over: ${inert(run)} (${why})`);
  for (const { result, artifacts } of night.first) {
    for (const { text, passed } of result.rules) if (!passed) say(`FAIL ${text}`);
    sayJudged(result, null, alone ? [] : artifacts);
  }
  return night.exitCode;
}

export function sayJudged(
  { verdict, line, unconfirmed }: GateResult,
  baseline: string | null,
  written: readonly string[],
): void {
  for (const path of written) say(`written: ${path}`);
  say(`gate: ${wordOf({ verdict, baseline, unconfirmed: unconfirmed.length })}; ${line}`);
}

/** Tells of instances that should have been measured again and were not. */
export function sayUnconfirmed({ unconfirmed }: GateResult): void {
  say(
    `incomplete: ${unconfirmed.length} newly broken instance(s) could not be measured again: ${unconfirmed.slice(0, 5).map(inert).join(', ')}`,
  );
}
