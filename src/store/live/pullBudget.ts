/**
 * Pulls from one registry, over all engines and processes of a results root. They are requests on an account like those of a model, in the
 * same table: the account is the registry.
 */
import { guarded, type Store } from '../open.ts';
import { all, change } from '../query.ts';
import { countUse, freeAfter, slotAt, type Used } from './rates.ts';

export interface PullAsk {
  readonly registry: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly pulls: number;
  readonly windowMs: number;
}

/** Counts the pull and returns 0, or after how many milliseconds there may be room. */
export function takePull(db: Store, { registry, at, pulls, windowMs }: PullAsk): number {
  const account = `pulls from ${registry}`;
  const work = db.transaction((): number => {
    const from = slotAt(at - windowMs);
    // What a clock of the future wrote would otherwise count for ever.
    const used = all<Used>(
      db,
      'SELECT slot, requests, tokens FROM rate_uses WHERE account = ? AND slot >= ? AND slot <= ? ORDER BY slot',
      account,
      from,
      slotAt(at) + 4,
    );
    const waitMs = freeAfter(used, 'requests', pulls - 1, windowMs, at);
    if (waitMs > 0) return waitMs;
    change(db, 'DELETE FROM rate_uses WHERE account = ? AND slot < ?', account, from);
    countUse(db, account, at, 0);
    return 0;
  });
  return guarded(db, () => work.immediate());
}
