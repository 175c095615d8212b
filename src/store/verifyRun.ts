/** The invariants of a run's record, each with a query for rows that break it. */
import { sha256 } from '../base/sha256.ts';
import { EXIT_REASONS } from '../outcome.ts';
import { type Store, statement } from './open.ts';
import { each } from './query.ts';
import type { RunRow } from './records/runs.ts';

const KNOWN_ENDINGS = Object.entries(EXIT_REASONS).map(([reason, facts]) => `'${reason}/${facts.class}'`);

/** The rows that break an invariant, by its name. */
const CHECKS: Readonly<Record<string, string>> = {
  'a sealed trial has exactly one final attempt, and it has ended': `
    SELECT t.id FROM trials t LEFT JOIN attempts f ON f.id = t.final_attempt_id
    WHERE t.run_id = @run AND t.state = 'sealed' AND (f.id IS NULL OR f.state <> 'ended' OR f.trial_id <> t.id)`,
  'an attempt that runs belongs to a trial that runs': `
    SELECT a.id FROM attempts a JOIN trials t ON t.id = a.trial_id WHERE t.run_id = @run AND a.state = 'running' AND t.state <> 'running'`,
  'a trial has at most one running attempt': `
    SELECT t.id FROM attempts a JOIN trials t ON t.id = a.trial_id WHERE t.run_id = @run AND a.state = 'running' GROUP BY t.id HAVING count(*) > 1`,
  'every instance, arm and epoch has its trial (planned = arms x instances x epochs)': `
    SELECT 1 WHERE (SELECT count(*) FROM trials WHERE run_id = @run) <>
    (SELECT count(*) FROM arms WHERE run_id = @run) * (SELECT count(*) FROM instances WHERE run_id = @run) *
    coalesce((SELECT max(epoch) FROM trials WHERE run_id = @run), 1)`,
  'attempts of a trial are numbered 1, 2, 3': `
    SELECT t.id FROM attempts a JOIN trials t ON t.id = a.trial_id WHERE t.run_id = @run GROUP BY t.id HAVING max(a.number) <> count(*)`,
  'messages of an attempt have no gaps': `
    SELECT m.attempt_id FROM messages m JOIN attempts a ON a.id = m.attempt_id JOIN trials t ON t.id = a.trial_id
    WHERE t.run_id = @run GROUP BY m.attempt_id HAVING max(m.seq) - min(m.seq) + 1 <> count(*) OR min(m.seq) <> 0`,
  'no call of an ended attempt is still in flight': `
    SELECT c.id FROM model_calls c JOIN attempts a ON a.id = c.attempt_id JOIN trials t ON t.id = a.trial_id
    WHERE t.run_id = @run AND a.state = 'ended' AND c.state = 'in_flight' AND c.label IS NOT 'grading'`,
  'no cost is negative': `
    SELECT c.id FROM model_calls c JOIN attempts a ON a.id = c.attempt_id JOIN trials t ON t.id = a.trial_id
    WHERE t.run_id = @run AND c.cost_nano < 0`,
  'each verdict is about a patch of an attempt of its trial': `
    SELECT e.id FROM evaluations e WHERE e.run_id = @run AND e.trial_id IS NOT NULL AND NOT EXISTS
    (SELECT 1 FROM attempts a WHERE a.trial_id = e.trial_id AND a.patch_sha256 = e.patch_sha256)`,
  'exit class and exit reason fit each other': `
    SELECT a.id FROM attempts a JOIN trials t ON t.id = a.trial_id WHERE t.run_id = @run AND a.state = 'ended'
    AND a.exit_reason || '/' || coalesce(a.exit_class, '') NOT IN (${KNOWN_ENDINGS.join(', ')})`,
  'a trial is sealed by its newest attempt, and never by one that was cancelled or not run': `
    SELECT t.id FROM trials t JOIN attempts f ON f.id = t.final_attempt_id WHERE t.run_id = @run AND t.state = 'sealed'
    AND (f.exit_class IN ('cancelled', 'not_run', 'config') OR EXISTS (SELECT 1 FROM attempts a WHERE a.trial_id = t.id AND a.number > f.number))`,
  'each call that ended has a cost, or a note that its cost is not known': `
    SELECT c.id FROM model_calls c JOIN attempts a ON a.id = c.attempt_id JOIN trials t ON t.id = a.trial_id
    WHERE t.run_id = @run AND c.state <> 'in_flight' AND c.cost_nano IS NULL AND c.notes = '[]'`,
  'every answered call of a program is in the ledger': `
    SELECT p.call FROM program_calls p JOIN attempts a ON a.id = p.attempt_id JOIN trials t ON t.id = a.trial_id WHERE t.run_id = @run
    AND p.failure IS NULL AND NOT EXISTS (SELECT 1 FROM model_calls c WHERE c.attempt_id = p.attempt_id AND c.call = p.call)`,
  'each answer to a program is a message of the model in its conversation': `
    SELECT p.call FROM program_calls p JOIN attempts a ON a.id = p.attempt_id JOIN trials t ON t.id = a.trial_id
    LEFT JOIN messages m ON m.attempt_id = p.attempt_id AND m.seq = p.reply_message
    WHERE t.run_id = @run AND p.reply_message IS NOT NULL AND m.role IS NOT 'assistant'`,
};

/** Counts attempts whose patch does not have its recorded hash. */
function changedPatches(db: Store, runId: number): number {
  const rows = each(db)<{ patch: string | null; hash: string }>`
    SELECT a.model_patch AS patch, a.patch_sha256 AS hash FROM attempts a JOIN trials t ON t.id = a.trial_id
    WHERE t.run_id = ${runId} AND a.state = 'ended' AND a.patch_sha256 IS NOT NULL`;
  let changed = 0;
  for (const { patch, hash } of rows) if (sha256(patch ?? '') !== hash) changed += 1;
  return changed;
}

export function verifyRun(db: Store, run: RunRow) {
  const integrity = db.pragma('integrity_check(1)', { simple: true });
  const found = (name: string, offenders: number) => ({ name, ok: offenders === 0, offenders });
  const checks = [
    found('the database is intact (integrity_check)', integrity === 'ok' ? 0 : 1),
    found(
      'every row that another one refers to is there (foreign_key_check)',
      (db.pragma('foreign_key_check') as unknown[]).length,
    ),
    found('each patch has the hash that was recorded of it', changedPatches(db, run.id)),
    ...Object.entries(CHECKS).map(([name, sql]) =>
      found(name, statement(db, sql).all({ run: run.id }).length),
    ),
  ];
  return { ok: checks.every((c) => c.ok), checks };
}
