/** The harness's folder for one graded prediction: logs/run_evaluation/<run>/<model>/<id>/. */
import { pathInside } from '../../base/files/pathInside.ts';
import type { Redactor } from '../../base/text/redact.ts';
import { instanceFolder, writeInstanceLogs } from '../../formats/harness/logFolders.ts';
import type { EvaluationResult } from '../../grading/gradingFrame.ts';
import type { Store } from '../../store/open.ts';
import type { RunRow } from '../../store/records/runs.ts';
import { partFolder } from './exportRun.ts';

export interface GradedFiles {
  readonly store: Store;
  readonly run: RunRow;
  /** DIR/<run> */
  readonly dir: string;
  readonly arm: string;
  readonly epoch: number;
  readonly model: string;
}

export async function writeGradedFiles(
  target: GradedFiles,
  patch: string,
  result: EvaluationResult,
  redactor: Redactor,
): Promise<void> {
  // The harness leaves no folder for a prediction that it never ran.
  if (result.outcome === 'empty_patch' || result.outcome === 'ungradable') return;
  const part = partFolder(target.store, target.run, target.arm, target.epoch);
  const folder = instanceFolder(
    pathInside(target.dir, part),
    target.run.name,
    target.model,
    result.instanceId,
  );
  const clean = {
    ...result,
    runLog: result.runLog.map((line) => ({ ...line, message: redactor.text(line.message) })),
  };
  await writeInstanceLogs(folder, clean, patch, result.log !== null && redactor.contains(result.log));
}
