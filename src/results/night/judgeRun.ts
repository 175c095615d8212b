/** The end of a night: finds the baseline, judges every arm, writes the artifacts and runs `run.on_finish`. */

import { VERSION } from '../../base/files/packageFile.ts';
import { pathInside } from '../../base/files/pathInside.ts';
import { pathName } from '../../base/text/fileName.ts';
import { exportSummary } from '../../report/exportSummary.ts';
import type { GateResult } from '../../report/gate/gate.ts';
import type { GatePolicy } from '../../report/gate/rules.ts';
import { RESAMPLING_SEED } from '../../report/measure/summary.ts';
import { NIGHT_ERROR } from '../../report/statistics/nightTests.ts';
import type { Caller } from '../../run/caller.ts';
import { withRunLock } from '../../run/control/lock.ts';
import { createNotifier, warningTo } from '../../run/control/notify.ts';
import type { RunEvent } from '../../run/events.ts';
import { plannedConfig } from '../../run/plan/planRecord.ts';
import { exportRecord } from '../../run/record/exportRun.ts';
import { pricesOfRun } from '../../run/record/tokenPrices.ts';
import { refuseShard, requireRun } from '../../run/resultsRoot.ts';
import { type RunOutcome, workOn } from '../../run/run.ts';
import { reportData } from '../../run/standing.ts';
import { UserError } from '../../run/userError.ts';
import type { Store } from '../../store/open.ts';
import { remeasurementsOfRun } from '../../store/records/baselines.ts';
import {
  armsOf,
  insertRun,
  instancesOf,
  type RunRow,
  runByName,
  spentNano,
  storedManifest,
} from '../../store/records/runs.ts';
import { fixedTest, type NamedSide, sidesOfRun } from '../compareSources.ts';
import {
  findBaseline,
  type Gated,
  type PassedOver,
  REMEASURE_DEFAULT,
  runFirstNight,
  runGate,
  writeArtifacts,
} from './gateRun.ts';

export interface NightOptions {
  /** Results root. */
  readonly results: string;
  /** The graded run to judge: name, unique prefix, or "last". */
  readonly run: string;
  /** "last" (the newest comparable run), a baseline's name, or a run. */
  readonly baseline: string;
  readonly policy?: GatePolicy | undefined;
  /** Instances that newly broke are run again this many times before the verdict, with those that got fixed where many broke; default 3. */
  readonly remeasure?: number | undefined;
  /** The verdict of a night without a baseline; default: its limits alone decide. */
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
  /** The verdicts without a baseline: each arm by the limits that need none. */
  readonly first: readonly FirstVerdict[];
  /** The exit code as for the command: 0 within policy, 1 regressed, 3 not all could be measured again. */
  readonly exitCode: 0 | 1 | 3;
}

export interface NightHooks {
  /** An arm is judged; the commands of `run.on_finish` come after it. */
  readonly judged?: (verdict: ArmVerdict) => void;
  readonly remeasured?: (outcome: RunOutcome) => void;
}

/** Judges a run that is graded and whose lock is released. */
export async function judgeRun(
  store: Store,
  options: NightOptions,
  caller: Caller,
  hooks: NightHooks = {},
): Promise<NightVerdict> {
  const { results: root, policy = {}, remeasure: epochs = REMEASURE_DEFAULT } = options;
  const { env, tell } = caller;
  const run = requireRun(store, options.run);
  refuseShard(run, 'a gate judges whole runs');
  const { baseline, unchosen, passedOver, accepted } = findBaseline(store, options.baseline, run);
  const sides = sidesOfRun(store, run);
  const measuring = (arm: string) =>
    epochs === 0
      ? undefined
      : async (ids: readonly string[]) => {
          const ended = (outcome: RunOutcome) => hooks.remeasured?.(outcome);
          await remeasure({ store, root, run, arm, ids, epochs, ended }, caller);
        };
  if (!baseline) {
    const first: FirstVerdict[] = [];
    for (const b of sides) {
      const required = options.withoutBaseline === 'fail';
      const result = await runFirstNight(
        store,
        b,
        { ...policy, again: epochs },
        required,
        measuring(b.from!.arm),
      );
      const found = { result, past: [], passedOver };
      const artifacts = await writeArtifacts(folderOf(root, run, b), b, found, env);
      first.push({ arm: b.from!.arm, result, artifacts });
    }
    const passed = first.every(({ result }) => result.passed);
    return { baseline: null, passedOver, arms: [], first, exitCode: passed ? 0 : 1 };
  }
  const referenceFor = referencesIn(sidesOfRun(store, baseline));
  const testedFor =
    unchosen && unchosen.id !== baseline.id ? referencesIn(sidesOfRun(store, unchosen)) : referenceFor;
  // Every arm is a chance of a false alarm: they share the error rate of the night.
  const alpha = (policy.alpha ?? NIGHT_ERROR) / sides.filter((b) => referenceFor(b.from!.arm)).length;
  const arms: ArmVerdict[] = [];
  for (const b of sides) {
    const { arm } = b.from!;
    const a = referenceFor(arm);
    if (!a) {
      tell({ level: 'warning', text: `${baseline.name} has no arm ${arm}; it is not judged` });
      continue;
    }
    const again = measuring(arm);
    const gated = await runGate({
      a,
      b,
      tested: testedFor(arm),
      store,
      policy: { ...policy, alpha, again: epochs },
      tell,
      passedOver,
      record: true,
      test: fixedTest(b) ?? 'exact',
      seed: RESAMPLING_SEED,
      since: accepted,
      ...(again && { remeasure: again }),
    });
    const artifacts = await writeArtifacts(folderOf(root, run, b), b, gated, env);
    const { verdict, passed, line, broken, drop, p } = gated.result;
    const of = { run: run.name, arm, baseline: a.side.label };
    const said = { verdict, passed, exitCode: gated.exitCode, line, broken, drop, p, passedOver };
    const judged: ArmVerdict = { ...gated, arm, artifacts, event: { type: 'gate', ...of, ...said } };
    hooks.judged?.(judged);
    const notifier = createNotifier(plannedConfig(run).run, warningTo(tell));
    notifier.listener(judged.event);
    await notifier.settle();
    arms.push(judged);
  }
  const codes = arms.map(({ exitCode }) => exitCode);
  const dir = pathInside(root, run.name);
  // The verdicts above are of one arm each.
  if (arms.length > 1) await exportSummary(reportData(store, run.id)!, dir, pricesOfRun);
  await exportRecord({ store, run, dir, version: VERSION });
  const exitCode = codes.includes(1) ? 1 : codes.includes(3) ? 3 : 0;
  return { baseline: baseline.name, passedOver, arms, first: [], exitCode };
}

const referencesIn =
  (sides: readonly NamedSide[]) =>
  (arm: string): NamedSide | undefined =>
    sides.find((a) => a.from!.arm === arm) ?? (sides.length === 1 ? sides[0] : undefined);

const folderOf = (root: string, run: RunRow, { from }: NamedSide): string =>
  pathInside(root, run.name, from!.data.arms.length > 1 ? pathName(from!.arm) : '');

interface RemeasureRequest {
  readonly store: Store;
  readonly root: string;
  readonly run: RunRow;
  readonly arm: string;
  readonly ids: readonly string[];
  readonly epochs: number;
  /** Called with the outcome of the new run. */
  readonly ended?: (outcome: RunOutcome) => void;
}

/** The rest of the run's budget, which covers the whole night. Null without a budget. */
function budgetLeft(store: Store, run: RunRow): number | null {
  if (run.budget_nano === null) return null;
  const runs = [run, ...remeasurementsOfRun(store, run.name)];
  return run.budget_nano - runs.reduce((sum, r) => sum + spentNano(store, r.id).committedNano, 0);
}

/** Undefined, with a warning, when the budget of the run leaves nothing for it. */
export async function remeasure(request: RemeasureRequest, caller: Caller): Promise<RunRow | undefined> {
  const { store, root, run, ids, epochs } = request;
  const planned = plannedConfig(run);
  const arm = planned.arms.find((a) => a.name === request.arm);
  if (run.imported === 1 || !arm)
    throw new UserError(`${run.name} cannot be measured again: swebatch did not configure it`, {
      next: { do: 'skip_remeasuring' },
    });
  const left = budgetLeft(store, run);
  if (left !== null && left <= 0) {
    caller.tell({
      level: 'warning',
      text: `the budget of ${run.name} is spent; nothing is measured again`,
    });
    return undefined;
  }
  // on_finish is for the end of the night and its verdict, not for this run.
  const { on_finish: _quiet, ...settings } = planned.run;
  const config = { ...settings, epochs };
  const grading = { ...planned.grading, enabled: true };
  const wanted = new Set(ids);
  const name = freeName(store, run.name);
  const createdAt = new Date().toISOString();
  const { id: _id, status: _status, finished_at: _end, ...recorded } = run;
  const again = insertRun(store, {
    run: {
      ...recorded,
      name,
      created_at: createdAt,
      config: JSON.stringify({ run: config, grading, arms: [arm] }),
      manifest: JSON.stringify({
        ...storedManifest(run),
        run_id: name,
        created_at: createdAt,
        remeasures: { run: run.name, arm: arm.name, instances: ids, epochs },
      }),
      budget_nano: left,
      emit_empty: 0,
      imported: 0,
    },
    arms: armsOf(store, run.id)
      .filter((a) => a.name === arm.name)
      .map((a) => ({ name: a.name, model: a.model, config: a.config })),
    instances: instancesOf(store, run.id)
      .filter((i) => wanted.has(i.instance_id))
      .map(({ id: _id, run_id: _run, position: _position, ...row }) => row),
    epochs,
  });
  caller.tell({ level: 'info', text: `run ${again.name}: ${ids.length} instance(s) x ${epochs}` });
  const outcome = await withRunLock({ store, root, runName: again.name, tell: caller.tell }, () =>
    workOn({ store, root, row: again, config, grading, arms: [arm] }, caller),
  );
  request.ended?.(outcome);
  return runByName(store, again.name)!;
}

function freeName(store: Store, name: string): string {
  for (let n = 1; ; n++) {
    const candidate = `${name}.again-${n}`;
    if (!runByName(store, candidate)) return candidate;
  }
}
