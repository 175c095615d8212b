/** The end of `run --baseline`: find what to hold the night against, judge every arm, leave the artifacts, give the exit code. */
import { join } from 'node:path';
import { pathName } from '../base/text/fileName.ts';
import type { RunConfig } from '../config/run.ts';
import { gateDocument } from '../report/gate/gateDocument.ts';
import { DEFAULT_SEED } from '../report/measure/summary.ts';
import { renderTerminal } from '../report/render/renderTerminal.ts';
import type { RunEvent } from '../runner/events.ts';
import { type NamedSide, sidesOfRun } from '../service/compare/sides.ts';
import { createNotifier } from '../service/start/notify.ts';
import { UserError } from '../service/userError.ts';
import type { Store } from '../store/open.ts';
import { baselineRun, lastComparable } from '../store/records/baselines.ts';
import { findRun, type RunRow, runByName } from '../store/records/runs.ts';
import type { NightArgs } from './flags/gateFlags.ts';
import { fixedTest, gateExit, policyOf, runGate, writeArtifacts } from './gating.ts';
import { remeasure } from './remeasure.ts';
import { EXIT, printData, say } from './terminal/context.ts';
import { type ProgressMode, printEvent } from './terminal/progress.ts';

export const REMEASURE_DEFAULT = 3;

export interface NightRequest {
  readonly store: Store;
  readonly root: string;
  readonly runName: string;
  readonly args: NightArgs;
  /** Keeps stdout free for the run's own JSON. */
  readonly json: boolean;
  readonly progress: ProgressMode;
  /** Its run.on_finish hears of the verdict. */
  readonly config: RunConfig;
}

/** Exit code 0, 1 or 3; call it once the run is graded and its lock released. */
export async function judgeNight(request: NightRequest): Promise<number> {
  const { store, runName, args } = request;
  const run = runByName(store, runName)!;
  const baseline = resolveBaseline(store, args.baseline!, run);
  if (!baseline) {
    say(`no comparable baseline: nothing complete and graded has this configuration and dataset`);
    return args.withoutBaseline === 'fail' ? EXIT.gate : EXIT.done;
  }
  const references = sidesOfRun(store, baseline);
  let worst: number = EXIT.done;
  for (const b of sidesOfRun(store, run)) {
    const a = referenceFor(b, references);
    if (!a) {
      say(`warning: ${baseline.name} has no arm ${b.from!.arm}; it is not judged`);
      continue;
    }
    const code = await judgeArm(request, run, a, b);
    if (code === EXIT.gate || worst === EXIT.done) worst = code;
  }
  return worst;
}

/** A name that is wrong must be said before the night is paid for. */
export function requireBaseline(store: Store, name: string, run: Pick<RunRow, 'name'>): void {
  if (name === 'last' || baselineRun(store, name)) return;
  const found = findRun(store, name);
  if ('id' in found && found.name !== run.name) return;
  throw new UserError(`--baseline: there is no baseline or other run "${name}"`, {
    hint: 'swebatch baseline show, swebatch ls; "last" takes the newest comparable run',
  });
}

function resolveBaseline(store: Store, name: string, run: RunRow): RunRow | undefined {
  if (name === 'last') return lastComparable(store, run);
  const named = baselineRun(store, name);
  if (named) return named;
  const found = findRun(store, name);
  return 'id' in found ? found : undefined;
}

const referenceFor = (b: NamedSide, references: readonly NamedSide[]): NamedSide | undefined =>
  references.find((a) => a.from!.arm === b.from!.arm) ??
  (references.length === 1 ? references[0] : undefined);

async function judgeArm(
  { store, root, args, json, progress, config }: NightRequest,
  run: RunRow,
  a: NamedSide,
  b: NamedSide,
): Promise<number> {
  const epochs = args.remeasure ?? REMEASURE_DEFAULT;
  const { arm, data } = b.from!;
  const gated = await runGate({
    a,
    b,
    policy: policyOf(args),
    test: fixedTest(b) ?? 'exact',
    seed: DEFAULT_SEED,
    store,
    ...(epochs > 0
      ? {
          remeasure: async (ids: readonly string[]) => {
            await remeasure({ store, root, run, arm, ids, epochs });
          },
        }
      : {}),
  });
  const folder = join(root, run.name, data.arms.length > 1 ? pathName(arm) : '');
  const { comparison, result, past } = gated;
  const paths = await writeArtifacts(folder, b, gated);
  const text = renderTerminal(gateDocument(result, { a: comparison.a.label, b: comparison.b.label }, past));
  if (json || progress === 'json') say(text);
  else printData(text);
  for (const path of paths) say(`written: ${path}`);
  say(`gate: ${result.verdict}; ${result.line}`);
  const exitCode = gateExit(result, epochs > 0);
  const event: RunEvent = {
    type: 'gate',
    run: run.name,
    arm,
    baseline: a.side.label,
    verdict: result.verdict,
    passed: result.passed,
    exitCode,
    line: result.line,
    broken: result.broken,
    drop: result.drop,
    p: result.p,
  };
  if (progress === 'json') printEvent(event);
  const notifier = createNotifier(config, say);
  notifier.listener(event);
  await notifier.settle();
  return exitCode;
}
