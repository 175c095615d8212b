/** The harness's run reports of a graded run, `<model>.<run>.json`, one for each arm and epoch, beside its predictions. */

import { writeAtomically } from '../../base/files/atomicWrite.ts';
import { pathInside } from '../../base/files/pathInside.ts';
import { onEngines } from '../../environment/environments.ts';
import { type Leftovers, leftoversOf } from '../../environment/places/leftovers.ts';
import { LOG_ROOT, runMetadataText, runReportName } from '../../formats/harness/logFolders.ts';
import { runReportText } from '../../formats/harness/runReport.ts';
import type { HarnessVersion } from '../../grading/parsers/logParser.ts';
import { type StoredReport, storedReports } from '../../grading/storedReports.ts';
import type { Store } from '../../store/open.ts';
import { armsOf, instancesOf, type RunRow, storedManifest } from '../../store/records/runs.ts';
import { recordedEnvironment } from '../plan/planRecord.ts';
import { partFolder } from './partFolder.ts';

interface WrittenReport extends StoredReport {
  readonly path: string;
}

function splitOf(run: RunRow): string | null {
  const { split } = storedManifest(run);
  return typeof split === 'string' ? split : null;
}

/** The instances that the reports count. */
export interface GradedWhole {
  readonly ids: readonly string[];
  readonly images: readonly string[];
}

/** Undefined where nothing ran on an engine, because the harness leaves these fields out without a client. */
async function leftovers(store: Store, run: RunRow, whole?: GradedWhole): Promise<Leftovers | undefined> {
  const environments = armsOf(store, run.id).flatMap((arm) => recordedEnvironment(arm) ?? []);
  if (!environments.some(onEngines)) return undefined;
  const images = whole?.images ?? instancesOf(store, run.id).map(({ image }) => image);
  return leftoversOf(run, images);
}

/** `whole`: default the run's own instances. */
export async function exportRunReports(
  target: { readonly store: Store; readonly run: RunRow; readonly dir: string },
  harness: HarnessVersion,
  whole?: GradedWhole,
): Promise<WrittenReport[]> {
  const { store, run, dir } = target;
  const left = await leftovers(store, run, whole);
  const written: WrittenReport[] = [];
  for (const part of storedReports(store, run.id, harness, whole?.ids, left)) {
    const folder = pathInside(dir, partFolder(store, run, part.arm, part.epoch));
    const metadata = runMetadataText(run.dataset_source, splitOf(run), new Date(run.created_at));
    await writeAtomically(pathInside(folder, LOG_ROOT, run.name, 'run.json'), metadata);
    const path = pathInside(folder, runReportName(part.model, run.name));
    await writeAtomically(path, runReportText(part.report));
    written.push({ ...part, path });
  }
  return written;
}
