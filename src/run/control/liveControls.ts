/** What people ask of a live run: each request is carried out, and answered in a sentence. */

import { errorText } from '../../base/text/errorText.ts';
import { formatCost } from '../../money.ts';
import type { ExitReason } from '../../outcome.ts';
import { setRunBudget } from '../../store/records/runs.ts';
import { leaveOutTrial, trialById } from '../../store/records/trials.ts';
import type { Run } from '../contract.ts';
import { type Ending, StopReason } from '../exit.ts';
import type { PlannedTrial } from '../plannedTrial.ts';
import type { TrialQueue } from '../schedule/trialQueue.ts';
import { type ControlHandlers, createControlInbox } from './controlInbox.ts';
import { ControlRefusal } from './controlRequest.ts';
import type { Pauses } from './pauses.ts';
import type { RecordFailure } from './stop.ts';

interface LiveParts {
  readonly queue: TrialQueue;
  readonly pauses: Pauses;
  readonly cancels: Cancels;
}

/** How soon a request of a person is seen. */
const LOOK_MS = 250;

/** Carries out what people ask of the run, until `end`. */
export function serveControls(
  run: Run,
  { failure, ...parts }: LiveParts & { readonly failure: RecordFailure },
): { end(): void } {
  const { store, row, events, stop } = run;
  const inbox = createControlInbox({
    ...{ store, runId: row.id, events, now: () => new Date() },
    onError: (error) => stop.stopStarting('internal_error', errorText(error)),
  });
  inbox.serve(liveControls(run, parts));
  const look = setInterval(() => failure.guard(() => inbox.look()), LOOK_MS);
  return {
    end() {
      clearInterval(look);
      failure.guard(() => inbox.close());
    },
  };
}

function liveControls(run: Run, { queue, pauses, cancels }: LiveParts): ControlHandlers {
  const { stop, budget, store, row } = run;
  const going = () => {
    if (stop.why)
      throw new ControlRefusal(`the run is stopping already (${stop.why.message}); nothing was changed`);
  };
  return {
    pause() {
      going();
      return pauses.byPerson()
        ? 'paused: nothing new starts, running trials finish'
        : 'it was paused by a person already';
    },
    resume() {
      going();
      const { was, heldBy } = pauses.goOn();
      const others = heldBy.length > 0 ? `; it still waits for: ${heldBy.join(', ')}` : '';
      return was ? `going on${others}` : `no person had paused it${others}`;
    },
    workers(count) {
      going();
      const before = queue.workers();
      queue.setWorkers(count);
      const rest = count < before ? '; running trials finish' : '';
      return count === before ? `it has ${count} slots already` : `${count} slots, before ${before}${rest}`;
    },
    budget(limitNano) {
      going();
      const before = budget.limitNano;
      budget.setLimit(limitNano);
      setRunBudget(store, row.id, limitNano);
      const said = `the budget is ${amount(limitNano)}, before ${amount(before)}; ${formatCost(budget.spent())} spent`;
      if (!budget.exhausted()) return said;
      stop.stopStarting('budget_stopped', `run budget ${amount(limitNano)} reached`);
      return `${said}: the run ends`;
    },
    cancel: (id) => cancelOne(run, cancels, id),
  };
}

const amount = (nano: number | null): string => (nano === null ? 'none' : formatCost(nano));

const nameOf = ({ label }: PlannedTrial): string =>
  `${label.instanceId} (${label.arm}, epoch ${label.epoch})`;

async function cancelOne({ trials, store }: Run, cancels: Cancels, id: string): Promise<string> {
  const trial = chosen(trials, id, (one) => trialById(store, one.id)?.state === 'sealed');
  const { instanceId } = trial.label;
  const again = cancels.has(trial.id);
  if (!cancels.runs(trial.id)) {
    if (again) return `${instanceId} is cancelled already`;
    await cancels.cancel(trial.id);
    leaveOutTrial(store, trial.id, 'cancelled');
    return `${instanceId} had not started; it does not start in this sitting`;
  }
  const reason = await cancels.cancel(trial.id);
  if (reason === 'cancelled') return `${instanceId} is cancelled, and its container is gone`;
  return `${instanceId} ended by itself before it could be cancelled${reason ? `: ${reason}` : ''}`;
}

/** One trial that has not ended; of several the numbers are said. */
function chosen(
  trials: readonly PlannedTrial[],
  id: string,
  isSealed: (trial: PlannedTrial) => boolean,
): PlannedTrial {
  const byName = trials.filter(({ label }) => label.instanceId === id);
  const found = byName.length > 0 ? byName : trials.filter((trial) => String(trial.id) === id);
  if (found.length === 0)
    throw new ControlRefusal(`no instance or trial "${id}" is in this sitting; "swebatch ls RUN" lists them`);
  const open = found.filter((trial) => !isSealed(trial));
  if (open.length === 1) return open[0]!;
  if (open.length === 0) throw new ControlRefusal(`${id} has ended already; nothing was cancelled`);
  const which = open.slice(0, 10).map((trial) => `${trial.id}: ${nameOf(trial)}`);
  throw new ControlRefusal(`${id} is ${open.length} trials; name one by its number: ${which.join('; ')}`);
}

/** Trials that a person takes out of this sitting: one that runs is ended, one that waits does not start. */
type Cancels = ReturnType<typeof createCancels>;

interface Running {
  readonly abort: AbortController;
  readonly over: PromiseWithResolvers<ExitReason | null>;
}

export function createCancels() {
  const cancelled = new Set<number>();
  const running = new Map<number, Running>();
  return {
    has: (trialId: number): boolean => cancelled.has(trialId),
    runs: (trialId: number): boolean => running.has(trialId),
    /** An attempt of the trial, until its environment is gone, so that "cancelled" is said when nothing is left of it. The signal ends it. */
    async during<A extends { readonly ending: Ending }>(
      trialId: number,
      attempt: (cancelled: AbortSignal) => Promise<A | null>,
    ): Promise<A | null> {
      const one = { abort: new AbortController(), over: Promise.withResolvers<ExitReason | null>() };
      running.set(trialId, one);
      let outcome: A | null = null;
      try {
        outcome = await attempt(one.abort.signal);
        return outcome;
      } finally {
        running.delete(trialId);
        one.over.resolve(outcome?.ending.reason ?? null);
      }
    },
    /** Resolves with how the running attempt ended; null at once where none runs, or when its end is not ours to record. */
    async cancel(trialId: number): Promise<ExitReason | null> {
      cancelled.add(trialId);
      const one = running.get(trialId);
      one?.abort.abort(new StopReason('cancelled', 'cancelled by a person'));
      return one ? one.over.promise : null;
    },
  };
}
