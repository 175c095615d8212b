/** The verdict of `run --baseline`, printed for people and programs. */
import { inert } from '../base/text/inert.ts';
import type { GateResult } from '../report/gate/gate.ts';
import { gateDocument } from '../report/gate/gateDocument.ts';
import { renderTerminal } from '../report/render/renderers.ts';
import { type ArmVerdict, judgeRun, type NightOptions } from '../results/night/judgeRun.ts';
import type { Store } from '../store/open.ts';
import { conclude } from './conclude.ts';
import { type NightArgs, policyOf } from './flags/gateFlags.ts';
import { EXIT, printData, say } from './terminal/context.ts';
import { type ProgressMode, printEvent } from './terminal/progress.ts';
import { thisProcess } from './terminal/thisProcess.ts';

export interface NightRequest extends Pick<NightOptions, 'results' | 'run'> {
  readonly args: NightArgs;
  /** Keeps stdout free for the run's own JSON. */
  readonly json: boolean;
  readonly progress: ProgressMode;
}

/** Exit code 0, 1 or 3. */
export async function showNight(
  store: Store,
  { args, json, progress, ...of }: NightRequest,
): Promise<number> {
  const options = {
    ...{ ...of, baseline: args.baseline!, remeasure: args.remeasure },
    withoutBaseline: args.withoutBaseline,
    // Read only where there is something to judge.
    get policy() {
      return policyOf(args);
    },
  };
  const night = await judgeRun(store, options, thisProcess(), {
    judged: (verdict) => show(verdict, json, progress),
    remeasured: (outcome) => void conclude(outcome, false),
  });
  if (night.baseline !== null) return night.exitCode;
  say('no comparable baseline: no complete and graded run has this configuration and dataset');
  for (const { run, why } of night.passedOver) say(`passed over: ${inert(run)} (${why})`);
  for (const { result, artifacts } of night.first) {
    for (const { text, passed } of result.rules) if (!passed) say(`FAIL ${text}`);
    for (const path of artifacts) say(`written: ${path}`);
    say(`gate: ${result.verdict}; ${result.line}`);
  }
  return night.exitCode;
}

function show(
  { comparison, result, past, passedOver, artifacts, event }: ArmVerdict,
  json: boolean,
  progress: ProgressMode,
): void {
  const text = renderTerminal(
    gateDocument(result, { a: comparison.a.label, b: comparison.b.label }, past, passedOver),
  );
  if (json || progress === 'json') say(text);
  else printData(text);
  for (const path of artifacts) say(`written: ${path}`);
  say(`gate: ${result.verdict}; ${result.line}`);
  if (event.exitCode === EXIT.incomplete) sayUnconfirmed(result);
  if (progress === 'json') printEvent(event);
}

/** For instances that should have been measured again and were not. */
export function sayUnconfirmed({ unconfirmed }: GateResult): void {
  say(
    `incomplete: ${unconfirmed.length} newly broken instance(s) could not be measured again: ${unconfirmed.slice(0, 5).map(inert).join(', ')}`,
  );
}
