/**
 * Recovers what a dead process left: its attempts end as orchestrator_lost, their trials are pending again, and calls that may have been
 * billed without a record are counted.
 */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathInside } from '../../base/files/pathInside.ts';
import { trajectoryPath } from '../../formats/miniSweAgent/writeTrajectory.ts';
import { newestBackup } from '../../store/backup.ts';
import { StorageError, type Store } from '../../store/open.ts';
import { abandonCalls } from '../../store/records/modelCalls.ts';
import type { RunRow } from '../../store/records/runs.ts';
import {
  abandonedTrials,
  endAttempt,
  releaseTrial,
  runningAttempts,
  trialsNeverEnded,
} from '../../store/records/trials.ts';
import type { Tell } from '../caller.ts';
import { choosePatch } from '../exit.ts';
import { partFolder } from '../record/partFolder.ts';

/** Call only while holding the run's lock. Says what was recovered. */
export function recover(store: Store, root: string, row: RunRow, tell: Tell): void {
  refuseLostRecords(store, row, pathInside(root, row.name));
  const { trials, possiblyBilled } = recoverRun(store, row.id, new Date().toISOString());
  if (trials === 0) return;
  const billed =
    possiblyBilled > 0 ? `, and ${possiblyBilled} model call(s) were possibly billed without a record` : '';
  tell({
    level: 'note',
    text: `${trials} trial(s) were running when the last process ended; they are pending again${billed}`,
  });
}

/** Call only while holding the run's lock, so that no process works on these trials. */
export function recoverRun(store: Store, runId: number, endedAt: string) {
  let possiblyBilled = 0;
  const abandoned = abandonedTrials(store, runId);
  for (const trial of abandoned) {
    for (const attempt of runningAttempts(store, trial.id)) {
      const billed = abandonCalls(store, attempt.id);
      possiblyBilled += billed;
      const { source, state, modelPatch, sha256 } = choosePatch('submitted', null, null);
      const notes = billed > 0 ? [`${billed} model call(s) possibly billed without a record`] : [];
      endAttempt(
        store,
        attempt.id,
        {
          ended_at: endedAt,
          exit_reason: 'orchestrator_lost',
          exit_status: 'OrchestratorLost',
          error_message: 'the swebatch process ended while this attempt ran',
          patch_source: source,
          patch_state: state,
          model_patch: modelPatch,
          patch_sha256: sha256,
          elapsed_ms: 0,
          working_ms: 0,
          notes: JSON.stringify(notes),
        },
        'again',
      );
    }
    releaseTrial(store, trial.id);
  }
  return { trials: abandoned.length, possiblyBilled };
}

/**
 * T-53: a trajectory is written only after its attempt is durably recorded, so a trajectory without a record means that the database is older: its
 * write-ahead log was deleted, or an earlier copy put back. Continuing would silently run and pay for these trials again.
 */
function refuseLostRecords(store: Store, run: RunRow, dir: string): void {
  const parts = new Map<string, string>();
  const partOf = (arm: string, epoch: number): string => {
    const key = `${epoch} ${arm}`;
    const part = parts.get(key) ?? partFolder(store, run, arm, epoch);
    parts.set(key, part);
    return part;
  };
  const lost = trialsNeverEnded(store, run.id).filter(({ instance_id, arm, epoch }) => {
    const trajectory = trajectoryPath({ instanceId: instance_id, number: 1, final: true });
    const path = pathInside(dir, partOf(arm, epoch), trajectory);
    return existsSync(path) || existsSync(`${path}.gz`);
  });
  if (lost.length === 0) return;
  const ids = lost.map((t) => t.instance_id);
  const some = ids.length > 5 ? `${ids.slice(0, 5).join(', ')} and ${ids.length - 5} more` : ids.join(', ');
  const backup = newestBackup(store.name);
  throw new StorageError(
    'lost',
    `${lost.length} trial(s) of ${run.name} have a trajectory but no record (${some}): ${store.name} is older than the trajectories; its -wal file may have been deleted. ` +
      `${backup ? `The last backup is ${backup}. ` : ''}To run and pay for them again, move their folders out of ${join(dir, 'trajectories')}`,
  );
}
