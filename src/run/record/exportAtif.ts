/** Attempts as files of the Agent Trajectory Interchange Format. */
import { writeAtomically } from '../../base/files/atomicWrite.ts';
import { pathInside } from '../../base/files/pathInside.ts';
import { atifOf } from '../../formats/atif/writeAtif.ts';
import { attemptRecords } from '../../store/records/attemptBodies.ts';
import { endedCalls } from '../../store/records/modelCalls.ts';
import { type ExportTarget, partFolder } from './exportRun.ts';

/** Every ended attempt, one at a time. */
export async function exportAtif({ store, run, dir, version }: ExportTarget): Promise<string[]> {
  const written: string[] = [];
  for (const attempt of attemptRecords(store, run.id)) {
    const { instanceId: id, number, final } = attempt;
    const name = `${id}${final ? '' : `.attempt-${number}`}.atif.json`;
    const part = partFolder(store, run, attempt.arm, attempt.epoch);
    const path = pathInside(dir, part, 'trajectories', id, name);
    const document = atifOf({ ...attempt, calls: endedCalls(store, attempt.attemptId) }, version);
    await writeAtomically(path, `${JSON.stringify(document, null, 2)}\n`);
    written.push(path);
  }
  return written;
}
