/** Limits a minute, as headers of answers say them. */
import { allowance } from './retryAfter.ts';

export interface MinuteLimits {
  /** Requests a minute; null is not known. */
  readonly rpm: number | null;
  readonly tpm: number | null;
}

/**
 * The same headers carry limits of a minute and of a day. What was used is whole again after `reset`, evenly, so the period of a limit is
 * reset * limit / used: only what comes to about a minute is one.
 */
export function minuteLimits(headers: Readonly<Record<string, string>>, wallNow: number): MinuteLimits {
  const ofMinute = (counts: string): number | null => {
    const found = allowance(headers, counts, wallNow);
    if (!found || found.limit === null || found.left >= found.limit) return null;
    const periodMs = (found.resetMs * found.limit) / (found.limit - found.left);
    return periodMs >= 45_000 && periodMs <= 75_000 ? found.limit : null;
  };
  return { rpm: ofMinute('requests'), tpm: ofMinute('tokens') };
}
