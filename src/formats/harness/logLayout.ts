/** Names in the harness's log folders: `logs/run_evaluation/<run>/<model>/<id>/…`, and the run report beside them. */
import { join } from 'node:path';
import { pathInside } from '../../base/files/pathInside.ts';
import { pythonJson } from '../../base/python/jsonDump.ts';
import { harnessName } from '../../base/text/fileName.ts';

export const LOG_ROOT = join('logs', 'run_evaluation');
export const FILES = {
  patch: 'patch.diff',
  script: 'eval.sh',
  runLog: 'run_instance.log',
  output: 'test_output.txt',
  report: 'report.json',
} as const;

/** Of all instances of a run and a model. */
const _modelLogs = (root: string, run: string, model: string): string =>
  pathInside(root, LOG_ROOT, run, harnessName(model));

export const instanceFolder = (root: string, run: string, model: string, id: string): string =>
  pathInside(root, LOG_ROOT, run, harnessName(model), id);

export const runReportName = (model: string, run: string): string => `${harnessName(model)}.${run}.json`;

/** Of a run report's name; the model's own name may have had "/" where this has "__". */
export const modelInName = (name: string): string => name.split('.').slice(0, -2).join('.') || 'unknown';

/** What the run was graded against, as 5.x keeps it (run.json). */
export const runMetadataText = (dataset: string, split: string | null, createdAt: Date): string =>
  `${pythonJson({ dataset, split, task_repo: null, created_at: createdAt.toISOString().replace(/\.\d+Z$/, '+00:00') }, 2)}\n`;
