/**
 * The budget of a run. Money is reserved before each call and settled after it, so that the overshoot is at most one call a slot.
 * Money that was spent comes from the ledger: a restart grants no money.
 */
import { createRoom } from '../../base/async/room.ts';
import type { Settle } from '../../model/meteredCall.ts';
import { formatCost, type NanoDollars } from '../../money.ts';
import type { Store } from '../../store/open.ts';
import { type RunRow, spentNano } from '../../store/records/runs.ts';
import type { RunEvents } from '../events.ts';
import { StopReason } from './stop.ts';

export type RunBudget = ReturnType<typeof createBudget>;

/** Money of earlier sittings counts: a restart does not renew the budget. */
export function budgetOf(store: Store, row: RunRow, events: RunEvents): RunBudget {
  const { committedNano } = spentNano(store, row.id);
  const budget = createBudget(row.budget_nano, committedNano, (percent, spentNow) =>
    events.emit({ type: 'budget', percent, spentNano: spentNow, budgetNano: budget.limitNano! }),
  );
  return budget;
}

export function createBudget(
  startLimitNano: NanoDollars | null,
  alreadySpentNano: NanoDollars,
  onThreshold: (percent: number, spentNano: NanoDollars) => void = () => {},
) {
  let limitNano = startLimitNano;
  let limit = limitNano ?? Number.POSITIVE_INFINITY;
  let spent = alreadySpentNano;
  let reserved = 0;
  let stopped = spent >= limit;
  // Without an estimate the dearest call seen so far is the best guess.
  let dearest = 0;
  let thresholds = createThresholds(limitNano, spent, onThreshold);
  /** Set when the call cannot fit, whatever the calls in flight cost. */
  const refusal = (amount: NanoDollars): StopReason | null => {
    if (spent < limit && spent + amount <= limit) return null;
    thresholds.finish(spent);
    stopped = true;
    return reached(limitNano, spent);
  };
  const take = (amount: NanoDollars): Settle => {
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
      if (spent >= limit) stopped = true;
      thresholds.announce(spent);
      room.look(true);
    };
  };
  /** In order of arrival, so that an expensive call is not passed over for ever. */
  const room = createRoom<NanoDollars, Settle>((amount) => {
    const refused = refusal(amount);
    if (refused) throw refused;
    return spent + reserved + amount <= limit ? { share: take(amount) } : { laterMs: undefined };
  });
  const asked = (estimateNano: NanoDollars | null): NanoDollars => {
    const amount = estimateNano ?? dearest;
    const refused = refusal(amount);
    if (refused) throw refused;
    return amount;
  };
  return {
    get limitNano(): NanoDollars | null {
      return limitNano;
    },
    /** Sets the limit from now on; calls that wait are asked again. A limit below what is spent ends the run as the old one would have. */
    setLimit(value: NanoDollars | null): void {
      limitNano = value;
      limit = value ?? Number.POSITIVE_INFINITY;
      stopped = spent >= limit;
      thresholds = createThresholds(value, spent, onThreshold);
      room.look();
    },
    spent: () => spent,
    /** True once no further call fits: nothing new is started. */
    exhausted: () => stopped,
    /** A reservation for calls that cannot wait; other reservations do not refuse them, only money already spent does. */
    reserveNow: (estimateNano: NanoDollars | null): Settle => take(asked(estimateNano)),
    /**
     * Resolves once the call fits beside those in flight, which mostly cost less than their reservation. Rejects with
     * StopReason('budget_stopped') when it can no longer fit, or with the signal's reason. `onWait` is called when it has to wait.
     */
    async reserve(
      estimateNano: NanoDollars | null,
      signal: AbortSignal | undefined,
      onWait: () => void,
    ): Promise<Settle> {
      return room.enter(asked(estimateNano), signal, onWait);
    },
  };
}

const reached = (limitNano: NanoDollars | null, spent: NanoDollars): StopReason =>
  new StopReason(
    'budget_stopped',
    limitNano === null || spent >= limitNano
      ? `the run budget of ${formatCost(limitNano)} is reached: ${formatCost(spent)} spent`
      : `the run budget of ${formatCost(limitNano)} has no room: ${formatCost(spent)} is spent, and the next call could cost more than the ${formatCost(limitNano - spent)} left`,
  );

/** "run budget $0.10 reached", also of a run that ended before it: a call is asked only where its estimate fits. */
export function budgetEnd(limitNano: NanoDollars | null, spent: NanoDollars): string {
  if (limitNano === null || spent >= limitNano)
    return `run budget ${limitNano === null ? '' : `${formatCost(limitNano)} `}reached`;
  return `run budget ${formatCost(limitNano)}: ${formatCost(spent)} spent, and the next call could cost more than the ${formatCost(limitNano - spent)} left`;
}

/** Tells once of each share of the budget that is passed. */
function createThresholds(
  limitNano: NanoDollars | null,
  alreadySpent: NanoDollars,
  tell: (percent: number, spentNano: NanoDollars) => void,
) {
  const passedAt = (percent: number) => ((limitNano ?? Number.POSITIVE_INFINITY) * percent) / 100;
  const ahead = [50, 80, 100].filter((percent) => limitNano !== null && alreadySpent < passedAt(percent));
  return {
    announce(spent: NanoDollars) {
      while (ahead[0] !== undefined && spent >= passedAt(ahead[0])) tell(ahead.shift()!, spent);
    },
    /** The budget is used up although a rest too small for a call is left, so 100 % is announced. */
    finish(spent: NanoDollars) {
      if (ahead.splice(0).includes(100)) tell(100, spent);
    },
  };
}
