/** `evaluate preds.json | all_preds.jsonl | gold`: predictions become an imported run and are graded like any other. */
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { runConfigSchema } from '../config/runConfig.ts';
import { imageOf } from '../dataset/instance.ts';
import type { Dataset, LoadedRow } from '../dataset/read/loadDataset.ts';
import { environmentConfigSchema } from '../environment/environmentConfig.ts';
import { type Prediction, parsePredictions } from '../formats/predictions/readPredictions.ts';
import { goldPredictions, unknownIds } from '../grading/goldPredictions.ts';
import { recordPredictions } from '../grading/recordPredictions.ts';
import { databasePath, resultsRoot } from '../service/resultsRoot.ts';
import { withRunLock } from '../service/start/lock.ts';
import { UserError } from '../service/userError.ts';
import { openStore, type Store } from '../store/open.ts';
import { calibration } from '../store/records/calibration.ts';
import { gradeRun } from './evaluateRun.ts';
import type { EvaluateArgs } from './flags/evaluateFlags.ts';
import { gradingOf, loadSubset, parsersOf, wantedIds } from './flags/gradingSettings.ts';
import { EXIT, printData, say, sayNotice } from './terminal/context.ts';
import { table } from './terminal/table.ts';

async function datasetOf(args: EvaluateArgs, target: string): Promise<Dataset> {
  const [source, ...more] = args.subset;
  if (source === undefined)
    throw new UserError(`--subset is missing: ${target} does not say which tests are expected`, {
      hint: `swebatch evaluate ${target} --subset verified`,
    });
  if (more.length > 0) throw new UserError('predictions are graded against one dataset; give --subset once');
  return loadSubset(args, source);
}

function predictionsOf(target: string, rows: readonly LoadedRow[]): readonly Prediction[] {
  if (target === 'gold') {
    const gold = goldPredictions(rows.map((row) => row.instance));
    return gold;
  }
  let bytes: Uint8Array;
  try {
    bytes = readFileSync(target);
  } catch (error) {
    throw new UserError(`${target} cannot be read: ${(error as Error).message}`);
  }
  const read = parsePredictions(bytes, target);
  if (!read.ok) throw new UserError(read.problems.join('\n'));
  for (const warning of read.warnings) say(`warning: ${warning}`);
  const unknown = unknownIds(read.predictions, new Set(rows.map((row) => row.instance.instance_id)));
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
  const tag = createHash('sha256')
    .update([target, dataset.source, dataset.split, dataset.fileHash].join('\0'))
    .digest('hex')
    .slice(0, 8);
  return `evaluate-${stem.replace(/[^A-Za-z0-9_.-]/g, '_')}-${tag}`;
};

export async function evaluatePredictions(args: EvaluateArgs, target: string): Promise<number> {
  const config = gradingOf(args);
  await parsersOf(config);
  const dataset = await datasetOf(args, target);
  const wanted = wantedIds(args);
  const rows = new Map(dataset.rows.map((row) => [row.instance.instance_id, row]));
  const strangers = [...(wanted ?? [])].filter((id) => !rows.has(id));
  if (strangers.length > 0) throw new UserError(`the dataset has no instance ${strangers.join(', ')}`);
  const predictions = predictionsOf(target, dataset.rows).filter((p) => !wanted || wanted.has(p.instance_id));
  if (predictions.length === 0) throw new UserError('none of the instances asked for has a prediction');
  const unpredicted = [...(wanted ?? [])].filter((id) => !predictions.some((p) => p.instance_id === id));
  if (unpredicted.length > 0) say(`warning: no prediction for ${unpredicted.join(', ')}`);

  const root = resultsRoot(args.output);
  mkdirSync(root, { recursive: true });
  const store = openStore(databasePath(root));
  const name = args.runId ?? defaultName(target, dataset);
  if (!/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/.test(name))
    throw new UserError(`--run-id ${name}: use letters, digits, "_", "." and "-" only`);
  try {
    return await withRunLock({ store, root, runName: name, tell: sayNotice }, async () => {
      const environment = environmentConfigSchema.parse({});
      const arm = { environment };
      const grading = config;
      const recorded = recordPredictions(store, {
        name,
        predictions,
        rows,
        dataset: { source: dataset.source, revision: dataset.revision },
        config: JSON.stringify({ run: runConfigSchema.parse({}), grading, arms: [] }),
        configHash: createHash('sha256').update(JSON.stringify(grading)).digest('hex'),
        armConfig: JSON.stringify(arm),
        manifest: JSON.stringify({
          kind: 'predictions',
          source: target,
          dataset: dataset.source,
          split: dataset.split,
        }),
        now: () => new Date(),
      });
      if (!recorded.ok) throw new UserError(recorded.message);
      const whole = dataset.rows.filter((row) => !wanted || wanted.has(row.instance.instance_id));
      const code = await gradeRun({
        store,
        root,
        run: recorded.run,
        config,
        only: wanted,
        again: args.again || args.verifyGold,
        json: args.json,
        whole: {
          ids: whole.map(({ instance }) => instance.instance_id),
          images: whole.map(({ instance }) => imageOf(instance)),
        },
        repeat: args.verifyGold ? (args.repeat ?? 1) : 1,
      });
      if (args.verifyGold && !args.json)
        showCalibration(store, new Set(predictions.map((p) => p.instance_id)));
      return code;
    });
  } finally {
    store.close();
  }
}

function showCalibration(store: Store, ids: ReadonlySet<string>): number {
  const rows = calibration(store).filter((row) => ids.has(row.instance_id));
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
  return EXIT.done;
}
