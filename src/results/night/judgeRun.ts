/** The end of a night: finds the baseline, judges every arm, writes the artifacts and runs `run.on_finish`. */
import { pathInside } from '../../base/files/pathInside.ts';
import { pathName } from '../../base/text/fileName.ts';
import type { GateResult } from '../../report/gate/gate.ts';
import type { GatePolicy } from '../../report/gate/rules.ts';
import { RESAMPLING_SEED } from '../../report/measure/summary.ts';
import { NIGHT_ERROR } from '../../report/statistics/nightTests.ts';
import type { Caller } from '../../run/caller.ts';
import { createNotifier, warningTo } from '../../run/control/notify.ts';
import type { RunEvent } from '../../run/events.ts';
import { plannedConfig } from '../../run/plan/planRecord.ts';
import { requireRun } from '../../run/resultsRoot.ts';
import type { RunOutcome } from '../../run/run.ts';
import type { Store } from '../../store/open.ts';
import type { RunRow } from '../../store/records/runs.ts';
import { fixedTest, type NamedSide, sidesOfRun } from '../compareSources.ts';
import {
  findBaseline,
  type Gated,
  type PassedOver,
  runFirstNight,
  runGate,
  writeArtifacts,
} from './gateRun.ts';
import { remeasure } from './remeasure.ts';

export interface NightOptions {
  /** Results root. */
  readonly results: string;
  /** The run to judge: name, unique prefix, or "last". It must be graded. */
  readonly run: string;
  /** "last" (the newest comparable run), a baseline's name, or a run. */
  readonly baseline: string;
  readonly policy?: GatePolicy | undefined;
  /** Instances that newly broke are run again this many times before the verdict, with those that got fixed where many broke; default 3. */
  readonly remeasure?: number | undefined;
  /** What a night that has no baseline ends with; default: its limits alone decide. */
  readonly withoutBaseline?: 'warn' | 'fail' | undefined;
}

export interface ArmVerdict extends Gated {
  readonly arm: string;
  /** Files that were written for a CI. */
  readonly artifacts: readonly string[];
  readonly event: Extract<RunEvent, { type: 'gate' }>;
}

export interface FirstVerdict {
  readonly arm: string;
  readonly result: GateResult;
  /** Files that were written for a CI. */
  readonly artifacts: readonly string[];
}

export interface NightVerdict {
  /** Null when nothing comparable exists: then `first` has what was judged. */
  readonly baseline: string | null;
  /** Comparable nights that are newer and no baseline: their gate failed, or they did not end as a whole. */
  readonly passedOver: readonly PassedOver[];
  readonly arms: readonly ArmVerdict[];
  /** Without a baseline: each arm by the limits that need none. */
  readonly first: readonly FirstVerdict[];
  /** As for the command: 0 within policy, 1 regressed, 3 not all could be measured again. */
  readonly exitCode: 0 | 1 | 3;
}

export interface NightHooks {
  /** An arm is judged; the commands of `run.on_finish` come after it. */
  readonly judged?: (verdict: ArmVerdict) => void;
  readonly remeasured?: (outcome: RunOutcome) => void;
}

const REMEASURE_DEFAULT = 3;

/** Call it once the run is graded and its lock released. */
export async function judgeRun(
  store: Store,
  options: NightOptions,
  caller: Caller,
  hooks: NightHooks = {},
): Promise<NightVerdict> {
  const run = requireRun(store, options.run);
  const { baseline, passedOver } = findBaseline(store, options.baseline, run);
  if (!baseline) return judgeFirst(store, run, options, passedOver, caller);
  const references = sidesOfRun(store, baseline);
  const arms: ArmVerdict[] = [];
  const court: Court = { store, options, caller, hooks, passedOver };
  const sides = sidesOfRun(store, run).map((b) => ({ b, a: referenceFor(b, references) }));
  // Every arm is a chance of a false alarm: they share the error rate of the night.
  const judged = sides.filter(({ a }) => a).length;
  for (const { a, b } of sides) {
    if (a) arms.push(await judgeArm(court, run, a, b, judged));
    else
      caller.tell({
        level: 'warning',
        text: `${baseline.name} has no arm ${b.from!.arm}; it is not judged`,
      });
  }
  const codes = arms.map(({ event }) => event.exitCode);
  return {
    ...{ baseline: baseline.name, passedOver, arms, first: [] },
    exitCode: codes.includes(1) ? 1 : codes.includes(3) ? 3 : 0,
  };
}

async function judgeFirst(
  store: Store,
  run: RunRow,
  { results, policy = {}, withoutBaseline }: NightOptions,
  passedOver: readonly PassedOver[],
  caller: Caller,
): Promise<NightVerdict> {
  const first: FirstVerdict[] = [];
  const required = withoutBaseline === 'fail';
  for (const b of sidesOfRun(store, run)) {
    const result = runFirstNight(store, b, { policy, required });
    const found = { result, past: [], passedOver };
    const artifacts = await writeArtifacts(folderOf(results, run, b), b, found, caller.env);
    first.push({ arm: b.from!.arm, result, artifacts });
  }
  const passed = first.every(({ result }) => result.passed);
  return { baseline: null, passedOver, arms: [], first, exitCode: passed ? 0 : 1 };
}

const folderOf = (root: string, run: RunRow, { from }: NamedSide): string =>
  pathInside(root, run.name, from!.data.arms.length > 1 ? pathName(from!.arm) : '');

const referenceFor = (b: NamedSide, references: readonly NamedSide[]): NamedSide | undefined =>
  references.find((a) => a.from!.arm === b.from!.arm) ??
  (references.length === 1 ? references[0] : undefined);

interface Court {
  readonly store: Store;
  readonly options: NightOptions;
  readonly caller: Caller;
  readonly hooks: NightHooks;
  readonly passedOver: readonly PassedOver[];
}

async function judgeArm(
  court: Court,
  run: RunRow,
  a: NamedSide,
  b: NamedSide,
  arms: number,
): Promise<ArmVerdict> {
  const { store, options, caller, hooks, passedOver } = court;
  const root = options.results;
  const { arm } = b.from!;
  const given = options.policy ?? {};
  const epochs = options.remeasure ?? REMEASURE_DEFAULT;
  const ended = hooks.remeasured;
  const again = async (ids: readonly string[]) => {
    await remeasure({ store, root, run, arm, ids, epochs, ...(ended && { ended }) }, caller);
  };
  const gated = await runGate({
    ...{
      a,
      b,
      store,
      policy: { ...given, alpha: (given.alpha ?? NIGHT_ERROR) / arms },
      tell: caller.tell,
      passedOver,
      record: true,
    },
    test: fixedTest(b) ?? 'exact',
    seed: RESAMPLING_SEED,
    ...(epochs > 0 && { remeasure: again }),
  });
  const artifacts = await writeArtifacts(folderOf(root, run, b), b, gated, caller.env);
  const { verdict, passed, line, broken, drop, p } = gated.result;
  const judged: ArmVerdict = {
    ...gated,
    arm,
    artifacts,
    event: {
      ...{ type: 'gate', run: run.name, arm, baseline: a.side.label, verdict, passed },
      exitCode: gated.exitCode,
      ...{ line, broken, drop, p, passedOver },
    },
  };
  hooks.judged?.(judged);
  const notifier = createNotifier(plannedConfig(run).run, warningTo(caller.tell));
  notifier.listener(judged.event);
  await notifier.settle();
  return judged;
}
