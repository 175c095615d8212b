/**
 * The budget of a run. Money is reserved before each call and settled after it, so that the overshoot is at most one call a slot;
 * what was spent comes from the ledger, so a restart grants nothing (runners.md section 3, gap 1).
 */
import { formatCost, type NanoDollars } from '../money.ts';
import { StopReason } from './exit.ts';

export interface RunBudget {
  readonly limitNano: NanoDollars | null;
  spent(): NanoDollars;
  /** True once no further call fits: nothing new is started. */
  exhausted(): boolean;
  /** Throws StopReason('budget_stopped') when the call does not fit. Returns what to settle it with. */
  reserve(estimateNano: NanoDollars | null): (costNano: NanoDollars | null) => void;
}

export function createBudget(
  limitNano: NanoDollars | null,
  alreadySpentNano: NanoDollars,
  onThreshold: (percent: number, spentNano: NanoDollars) => void = () => {},
): RunBudget {
  let spent = alreadySpentNano;
  let reserved = 0;
  let stopped = limitNano !== null && spent >= limitNano;
  // Without an estimate the dearest call seen so far is the best guess.
  let dearest = 0;
  const thresholds = [50, 80, 100].filter((p) => limitNano !== null && spent < (limitNano * p) / 100);
  const announce = () => {
    while (limitNano !== null && thresholds[0] !== undefined && spent >= (limitNano * thresholds[0]) / 100)
      onThreshold(thresholds.shift()!, spent);
  };
  return {
    limitNano,
    spent: () => spent,
    exhausted: () => stopped,
    reserve(estimateNano) {
      const amount = estimateNano ?? dearest;
      if (limitNano !== null && (spent >= limitNano || spent + reserved + amount > limitNano)) {
        stopped = true;
        // The budget ends here, though a rest too small for a call is left: who waits for 100 % must hear of it.
        if (thresholds.splice(0).includes(100)) onThreshold(100, spent);
        throw new StopReason(
          'budget_stopped',
          `the run budget of ${formatCost(limitNano)} is reached: ${formatCost(spent)} spent`,
        );
      }
      reserved += amount;
      let open = true;
      return (costNano) => {
        if (!open) return;
        open = false;
        reserved -= amount;
        // An unknown cost counts as its estimate here; in the ledger it stays NULL.
        const cost = costNano ?? amount;
        dearest = Math.max(dearest, cost);
        spent += cost;
        if (limitNano !== null && spent >= limitNano) stopped = true;
        announce();
      };
    },
  };
}
