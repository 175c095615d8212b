/** Results of gold patches on this machine, per instance, image and spec, from all evaluations of the model "gold". */
import type { Store } from '../open.ts';
import { all } from '../query.ts';

export type GoldStanding = 'passes' | 'fails' | 'flaky';

export interface Calibrated {
  readonly instance_id: string;
  readonly image_digest: string | null;
  readonly spec_hash: string;
  readonly dialect: string;
  readonly network: string | null;
  readonly standing: GoldStanding;
  readonly resolved: number;
  readonly evaluations: number;
  readonly last_at: string;
}

/**
 * Without evaluations that failed, had no patch or were made elsewhere (imports, regrades). Each set of rules and each network is counted
 * separately, because gold that fails only without the network is not flaky. The newest of an instance comes last.
 */
export function calibration(db: Store): Calibrated[] {
  const rows = all<Omit<Calibrated, 'standing'>>(
    db,
    `SELECT instance_id, image_digest, spec_hash, dialect, network, sum(outcome = 'resolved') AS resolved, count(*) AS evaluations,
       max(started_at) AS last_at
     FROM evaluations WHERE model = 'gold' AND source = 'native' AND outcome NOT IN ('infra', 'ungradable', 'empty_patch')
     GROUP BY instance_id, image_digest, spec_hash, dialect, network ORDER BY instance_id, last_at`,
  );
  return rows.map((row) => ({
    ...row,
    standing: row.resolved === row.evaluations ? 'passes' : row.resolved === 0 ? 'fails' : 'flaky',
  }));
}

/** The latest standing of each instance. Scores are also shown without "fails" and "flaky". */
export const goldStandings = (db: Store): Map<string, Calibrated> =>
  new Map(calibration(db).map((row) => [row.instance_id, row]));
