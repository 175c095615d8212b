/** What each request to a live run does, and the sentence that answers it. */
import { formatCost } from '../../money.ts';
import type { PlannedTrial } from '../plannedTrial.ts';
import type { RunRecord } from '../record/runRecord.ts';
import type { TrialQueue } from '../schedule/trialQueue.ts';
import type { RunBudget } from './budget.ts';
import type { Cancels } from './cancels.ts';
import type { ControlHandlers } from './controlInbox.ts';
import { ControlRefusal } from './controlRequest.ts';
import type { Pauses } from './pauses.ts';
import type { StopLadder } from './stop.ts';

export interface LiveControlPorts {
  readonly trials: readonly PlannedTrial[];
  readonly queue: Pick<TrialQueue, 'workers' | 'setWorkers'>;
  readonly pauses: Pick<Pauses, 'byPerson' | 'goOn'>;
  readonly stop: Pick<StopLadder, 'why' | 'stopStarting'>;
  readonly budget: RunBudget;
  readonly cancels: Cancels;
  readonly record: Pick<RunRecord, 'setBudget' | 'isSealed' | 'leaveOut'>;
}

export function liveControls(ports: LiveControlPorts): ControlHandlers {
  const { queue, pauses, stop, budget, record } = ports;
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
      record.setBudget(limitNano);
      const said = `the budget is ${amount(limitNano)}, before ${amount(before)}; ${formatCost(budget.spent())} spent`;
      if (!budget.exhausted()) return said;
      stop.stopStarting('budget_stopped', `run budget ${amount(limitNano)} reached`);
      return `${said}: the run ends`;
    },
    cancel: (id) => cancelOne(ports, id),
  };
}

const amount = (nano: number | null): string => (nano === null ? 'none' : formatCost(nano));

const nameOf = ({ label }: PlannedTrial): string =>
  `${label.instanceId} (${label.arm}, epoch ${label.epoch})`;

async function cancelOne({ trials, cancels, record }: LiveControlPorts, id: string): Promise<string> {
  const trial = chosen(trials, id, (one) => record.isSealed(one.id));
  const { instanceId } = trial.label;
  const again = cancels.has(trial.id);
  if (!cancels.runs(trial.id)) {
    if (again) return `${instanceId} is cancelled already`;
    await cancels.cancel(trial.id);
    record.leaveOut(trial.id);
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
