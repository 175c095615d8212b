/** `evaluate preds.json | all_preds.jsonl | gold`: predictions become an imported run and are graded like any other. */
import { readFileSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import { sha256 } from '../../base/sha256.ts';
import { fileErrorText } from '../../base/text/errorText.ts';
import { runConfigSchema } from '../../config/configSchema.ts';
import type { SuiteConfig } from '../../config/suiteConfig.ts';
import { type Dataset, headOf, type LoadedRow } from '../../dataset/dataset.ts';
import { imageOf } from '../../dataset/instance.ts';
import { environmentConfigSchema } from '../../environment/environments.ts';
import { type Prediction, parsePredictions } from '../../formats/predictions.ts';
import type { GradingConfig } from '../../grading/gradingConfig.ts';
import { recordPredictions, unknownIds } from '../../grading/recordPredictions.ts';
import { beginRun } from '../../run/begin.ts';
import type { Caller, Tell } from '../../run/caller.ts';
import { withRunLock } from '../../run/control/lock.ts';
import { preflight } from '../../run/plan/preflight.ts';
import { resolveConfig } from '../../run/plan/resolveConfig.ts';
import { plan } from '../../run/plan.ts';
import type { GradedWhole } from '../../run/record/runReports.ts';
import { hasBegun, makeAndOpen, refuseRunName, requireRun } from '../../run/resultsRoot.ts';
import { UserError } from '../../run/userError.ts';
import type { Store } from '../../store/open.ts';
import { type Calibrated, calibration } from '../../store/records/evaluations.ts';
import type { RunRow } from '../../store/records/runs.ts';
import {
  type DatasetChoice,
  type EvaluateOptions,
  type Evaluation,
  evaluationOf,
  gradeRun,
  gradingConfig,
  requireParsers,
  requireSubset,
  wantedIds,
} from './gradeRun.ts';

export interface EvaluatePredictionsOptions extends EvaluateOptions {
  /** A predictions file of any tool, or "gold". */
  readonly predictions: string;
  /** The dataset that they were made for. */
  readonly dataset: DatasetChoice;
  /** Name of the run that they become; default: one from the file and the dataset. */
  readonly name?: string | undefined;
  /** Configuration files and `key.path=value`: of predictions the section `suite` counts. */
  readonly config?: readonly string[] | undefined;
  /** Times that each task of gold is solved anew and graded. A task that is not always resolved is flaky. */
  readonly repeat?: number | undefined;
}

function predictionsOf(target: string, rows: readonly LoadedRow[], tell: Tell): readonly Prediction[] {
  let bytes: Uint8Array;
  try {
    // A device never ends (observed: tests/cli/words/mistakes.test.ts).
    if (!statSync(target).isFile()) throw new Error('it is not a file');
    bytes = readFileSync(target);
  } catch (error) {
    throw new UserError(`${target} cannot be read: ${fileErrorText(error)}`);
  }
  const read = parsePredictions(bytes, target);
  if (!read.ok) throw new UserError(read.problems.join('\n'));
  for (const warning of read.warnings) tell({ level: 'warning', text: warning });
  const unknown = unknownIds(read.predictions, new Set(rows.map((row) => headOf(row).instance_id)));
  if (unknown.length > 0)
    throw new UserError(
      `${target}: ${unknown.length} prediction(s) are for instances that the dataset does not have: ${unknown.slice(0, 5).join(', ')}${unknown.length > 5 ? ', …' : ''}`,
      { hint: 'name the dataset that the predictions were made for' },
    );
  return read.predictions;
}

/** Predictions from the same file for the same rows land in the same run, so that a second call goes on with the first. */
const defaultName = (target: string, dataset: Dataset): string => {
  const stem = basename(target).replace(/\.(json|jsonl|ndjson)$/, '');
  const tag = sha256([target, dataset.source, dataset.split, dataset.fileHash].join('\0')).slice(0, 8);
  return `evaluate-${stem.replace(/[^A-Za-z0-9_.-]/g, '_')}-${tag}`;
};

export interface PredictionsEvaluation extends Evaluation {
  /** The passes of these instances' gold patches on this machine, now and before; empty for other predictions. */
  readonly calibration: readonly Calibrated[];
}

export async function evaluatePredictions(
  options: EvaluatePredictionsOptions,
  caller: Caller,
): Promise<PredictionsEvaluation> {
  const { predictions: target, results: root } = options;
  if (target === 'gold') return evaluateGold(options, caller);
  const config = gradingConfig(options.grading);
  await requireParsers(config, caller.cwd);
  const { suite } = options.config?.length ? resolveConfig({ config: options.config }, caller) : {};
  const dataset = await requireSubset(options.dataset, caller.env);
  const only = wantedIds(options);
  const predictions = chosenPredictions(target, dataset, only, caller.tell);
  using store = makeAndOpen(root);
  const name = options.name ?? defaultName(target, dataset);
  refuseRunName(name);
  if (!/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/.test(name))
    throw new UserError(`the run name ${name} may have only letters, digits, "_", "." and "-"`, {
      next: { do: 'choose_name' },
    });
  return await withRunLock({ store, root, runName: name, tell: caller.tell }, async () => {
    const run = recordedRun(store, { name, target, dataset, predictions, config, suite });
    const { again = false } = options;
    const whole = wholeOf(dataset, only);
    return {
      ...(await gradeRun({ store, root, run, config, only, again, whole }, caller)),
      calibration: [],
    };
  });
}

function chosenPredictions(
  target: string,
  { rows }: Dataset,
  only: ReadonlySet<string> | undefined,
  tell: Tell,
): readonly Prediction[] {
  const ids = new Set(rows.map((row) => headOf(row).instance_id));
  const strangers = [...(only ?? [])].filter((id) => !ids.has(id));
  if (strangers.length > 0) throw new UserError(`the dataset has no instance ${strangers.join(', ')}`);
  const predictions = predictionsOf(target, rows, tell).filter((p) => !only || only.has(p.instance_id));
  if (predictions.length === 0) throw new UserError('none of the requested instances has a prediction');
  const unpredicted = [...(only ?? [])].filter((id) => !predictions.some((p) => p.instance_id === id));
  if (unpredicted.length > 0) tell({ level: 'warning', text: `no prediction for ${unpredicted.join(', ')}` });
  return predictions;
}

interface Recording {
  readonly name: string;
  readonly target: string;
  readonly dataset: Dataset;
  readonly predictions: readonly Prediction[];
  readonly config: GradingConfig;
  readonly suite?: SuiteConfig | undefined;
}

function recordedRun(store: Store, { name, target, dataset, predictions, config, suite }: Recording): RunRow {
  const { source, revision, split } = dataset;
  const recorded = recordPredictions(store, {
    name,
    predictions,
    rows: new Map(dataset.rows.map((row) => [headOf(row).instance_id, row])),
    dataset: { source, revision },
    config: JSON.stringify({ run: runConfigSchema.parse({}), grading: config, suite, arms: [] }),
    configHash: sha256(JSON.stringify(config)),
    armConfig: JSON.stringify({ environment: environmentConfigSchema.parse({}) }),
    manifest: JSON.stringify({ kind: 'predictions', source: target, dataset: source, split }),
    now: () => new Date(),
  });
  if (!recorded.ok) throw new UserError(recorded.message);
  return recorded.run;
}

function wholeOf({ rows }: Dataset, only: ReadonlySet<string> | undefined): GradedWhole {
  const whole = rows.filter((row) => !only || only.has(headOf(row).instance_id));
  return {
    ids: whole.map((row) => headOf(row).instance_id),
    images: whole.map((row) => imageOf(headOf(row))),
  };
}

// `evaluate gold`: a run of the agent that applies the solutions of tasks, each in the environment where an agent would work, graded like any
// other. The resolved share is how far this machine can be trusted with the dataset.

interface GoldOptions extends EvaluateOptions {
  readonly dataset: DatasetChoice;
  readonly name?: string | undefined;
  readonly config?: readonly string[] | undefined;
  /** Times that each task is solved anew. */
  readonly repeat?: number | undefined;
}

async function evaluateGold(
  options: GoldOptions,
  caller: Caller,
): Promise<Evaluation & { readonly calibration: readonly Calibrated[] }> {
  const { results: root, dataset, instances = [], grading = {}, again = false, repeat = 1 } = options;
  const config = gradingConfig(grading);
  await requireParsers(config, caller.cwd);
  const { subset, split, dataDir } = dataset;
  const planned = await plan(
    {
      ...{ results: root, name: options.name, dataDir, redoExisting: again, config: options.config },
      dataset: {
        ...{ subset, split, skip_unsupported: true },
        ...(instances.length > 0 && { instances: [...instances] }),
      },
      settings: {
        agent: { agent_class: 'oracle' },
        // A task may be solved without a change of its work tree.
        run: { epochs: repeat, workers: config.workers, breaker: { empty_patches: 0 } },
        grading: { ...grading, enabled: true },
      },
    },
    caller,
  );
  const { dataset: of, configHash, selected } = planned.request;
  const tag = sha256(JSON.stringify([of.source, of.split, of.fileHash, of.wanted, configHash])).slice(0, 8);
  const request = { ...planned.request, name: options.name ?? `evaluate-gold-${tag}` };
  await preflight({ ...planned.resolved, selected }, caller, !hasBegun(root, request.name));
  using store = makeAndOpen(root);
  const outcome = await beginRun(store, { ...planned, request }, caller);
  const run = requireRun(store, request.name);
  const lost = outcome.counts.infra ?? 0;
  const ungraded = (outcome.graded?.ungraded ?? 0) + lost;
  const ids = new Set(selected.map((row) => headOf(row).instance_id));
  return {
    ...(await evaluationOf({ store, root, run, config }, ungraded, outcome.interruptedBy)),
    calibration: calibration(store).filter((row) => ids.has(row.instance_id)),
  };
}
