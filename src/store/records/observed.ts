/** The part of the manifest that is known only later: which models answered, which images ran, what was changed. */

import type { Store } from '../open.ts';
import { all as allRows } from '../query.ts';
import { storedJson } from '../storedJson.ts';

export interface Observed {
  readonly models: readonly {
    asked: string;
    answered: string | null;
    fingerprint: string | null;
    calls: number;
  }[];
  readonly price_versions: readonly string[];
  readonly image_digests: Readonly<Record<string, readonly string[]>>;
  readonly histories: Readonly<Record<string, number>>;
  readonly transports: Readonly<Record<string, number>>;
  readonly dialects: readonly string[];
  /** Trials that took more than one attempt, with why each earlier one ended. */
  readonly tried_again: readonly { arm: string; instance_id: string; epoch: number; ended: string[] }[];
  readonly verdicts: readonly { source: string; network: string | null; count: number }[];
  readonly changes: readonly { at: string; change: unknown }[];
}

const OF_RUN = 'JOIN trials t ON t.id = a.trial_id WHERE t.run_id = ?';

export function observedIn(db: Store, runId: number): Observed {
  const all = <T>(sql: string) => allRows<T>(db, sql, runId);
  const countsOf = (column: string) =>
    Object.fromEntries(
      all<{ name: string; n: number }>(
        `SELECT a.${column} AS name, count(*) AS n FROM attempts a ${OF_RUN} AND a.${column} IS NOT NULL GROUP BY 1 ORDER BY 1`,
      ).map((r) => [r.name, r.n]),
    );
  const images = all<{ id: string; digest: string }>(
    `SELECT DISTINCT i.instance_id AS id, a.image_digest AS digest FROM attempts a JOIN trials t ON t.id = a.trial_id
     JOIN instances i ON i.id = t.instance_pk WHERE t.run_id = ? AND a.image_digest IS NOT NULL ORDER BY i.position`,
  );
  return {
    models: all(
      `SELECT c.model_asked AS asked, c.model_answered AS answered, c.fingerprint, count(*) AS calls
       FROM model_calls c JOIN attempts a ON a.id = c.attempt_id ${OF_RUN} AND c.state = 'ok' GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`,
    ),
    price_versions: all<{ v: string }>(
      `SELECT DISTINCT c.price_version AS v FROM model_calls c JOIN attempts a ON a.id = c.attempt_id ${OF_RUN} AND c.price_version IS NOT NULL ORDER BY 1`,
    ).map((r) => r.v),
    image_digests: Object.fromEntries(
      [...Map.groupBy(images, (r) => r.id)].map(([id, rows]) => [id, rows.map((r) => r.digest)]),
    ),
    histories: countsOf('history'),
    transports: countsOf('transport'),
    dialects: all<{ d: string }>(
      'SELECT DISTINCT dialect AS d FROM evaluations WHERE run_id = ? ORDER BY 1',
    ).map((r) => r.d),
    tried_again: all<{ arm: string; instance_id: string; epoch: number; ended: string }>(
      `SELECT m.name AS arm, i.instance_id, t.epoch, json_group_array(a.exit_reason) AS ended FROM attempts a JOIN trials t ON t.id = a.trial_id
       JOIN arms m ON m.id = t.arm_id JOIN instances i ON i.id = t.instance_pk
       WHERE t.run_id = ? AND a.state = 'ended' AND a.id IS NOT t.final_attempt_id GROUP BY t.id ORDER BY t.position`,
    ).map((r) => ({ ...r, ended: JSON.parse(r.ended) as string[] })),
    verdicts: all(
      'SELECT source, network, count(*) AS count FROM evaluations WHERE run_id = ? GROUP BY 1, 2 ORDER BY 1, 2',
    ),
    changes: all<{ at: string; data: string }>(
      `SELECT at, data FROM events WHERE run_id = ? AND type IN ('config_changed', 'limit_changed') ORDER BY seq`,
    ).map((r) => ({ at: r.at, change: storedJson(r.data) ?? null })),
  };
}
