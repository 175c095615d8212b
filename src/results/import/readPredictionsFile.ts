/** A file of predictions as a run, with what the harness reported of them: in folders below, or in a run report beside. */
import { readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { parsePredictions } from '../../formats/predictions/readPredictions.ts';
import { readForeignFile } from './foreignFile.ts';
import { kindOfSource } from './lookAtSource.ts';
import {
  type GradedElsewhere,
  instanceOfPrediction,
  type RunReportVerdicts,
  runFromInstanceReports,
  verdictsOfRunReport,
} from './readReports.ts';

export interface PredictionsRun {
  readonly run: GradedElsewhere;
  /** The run report beside them, for the number that it states. */
  readonly report: RunReportVerdicts | null;
}

export function readPredictionsFile(path: string): PredictionsRun {
  const read = parsePredictions(readForeignFile(path), path);
  const predictions = read.ok ? read.predictions : [];
  const instances = predictions.map(({ instance_id: id, model_name_or_path: model, model_patch: patch }) =>
    instanceOfPrediction(id, model, patch ?? ''),
  );
  const wanted = new Set(predictions.map((each) => each.instance_id));
  const below = runFromInstanceReports(dirname(path), wanted);
  const report = runReportBeside(path);
  const verdicts = below.verdicts.size > 0 || !report?.ok ? below.verdicts : report.verdicts;
  const warnings = [...(read.ok ? read.warnings : []), ...below.imported.warnings];
  const problems = read.ok ? [] : read.problems;
  return { run: { imported: { folder: path, instances, warnings, problems }, verdicts }, report };
}

export function runReportBeside(path: string): RunReportVerdicts | null {
  const folder = dirname(path);
  for (const name of readdirSync(folder).sort()) {
    const file = join(folder, name);
    if (!name.endsWith('.json') || name === basename(path) || kindOfSource(file) !== 'run_report') continue;
    const read = verdictsOfRunReport(file);
    if (read.ok) return read;
  }
  return null;
}
