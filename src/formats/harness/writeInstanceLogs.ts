/** Writes the folder of one graded prediction as the harness leaves it. */
import { rm } from 'node:fs/promises';
import { writeAtomically } from '../../base/files/atomicWrite.ts';
import { pathInside } from '../../base/files/pathInside.ts';
import { instanceReportText } from '../reports/instanceReport.ts';
import { FILES } from './logLayout.ts';
import { type RunLogLine, runLogText } from './runLogText.ts';

export interface InstanceLogs {
  readonly script: string;
  readonly runLog: readonly RunLogLine[];
  /** Null when the tests were not started. */
  readonly log: string | null;
  /** Null where the harness writes no report. */
  readonly report: object | null;
}

/**
 * `secretLog`: nobody but the owner may read the log. What an earlier evaluation left and this one did not make is removed: a stale
 * report.json would be believed.
 */
export async function writeInstanceLogs(
  folder: string,
  logs: InstanceLogs,
  patch: string | null,
  secretLog = false,
): Promise<void> {
  const files: readonly (readonly [name: string, content: string | null])[] = [
    [FILES.patch, patch ?? ''],
    [FILES.script, logs.script],
    [FILES.runLog, runLogText(logs.runLog)],
    [FILES.output, logs.log],
    [FILES.report, logs.report && instanceReportText(logs.report)],
  ];
  for (const [name, content] of files) {
    const path = pathInside(folder, name);
    if (content !== null)
      await writeAtomically(path, content, secretLog && name === FILES.output ? 0o600 : 0o666);
    else await rm(path, { force: true });
  }
}
