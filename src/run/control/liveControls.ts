/**
 * Requests of people to a live run, and the state that it writes down for them. Requests come through the record, because it is the one thing that
 * every terminal, the viewer and this process share, and it outlives all of them. Each is carried out, answered in a sentence, and is an event of
 * the run.
 */

import { errorText } from '../../base/text/errorText.ts';
import { inert } from '../../base/text/inert.ts';
import { formatCost } from '../../money.ts';
import type { ExitReason } from '../../outcome.ts';
import {
  answerControl,
  type ControlRow,
  type LiveState,
  takeControl,
  unansweredControls,
  writeLiveState,
} from '../../store/live/controls.ts';
import type { Store } from '../../store/open.ts';
import { setRunBudget } from '../../store/records/runs.ts';
import { leaveOutTrial, trialById } from '../../store/records/trials.ts';
import type { Run } from '../contract.ts';
import type { RunEvents } from '../events.ts';
import type { Ending } from '../exit.ts';
import { idsMeant } from '../namedTrials.ts';
import type { PlannedTrial } from '../plannedTrial.ts';
import type { TrialQueue } from '../schedule/trialQueue.ts';
import { budgetEnd } from './budget.ts';
import {
  type ControlCommand,
  ControlRefusal,
  type ControlValues,
  REQUEST_HOLDS_MS,
  readControl,
} from './controlRequest.ts';
import type { Pauses } from './pauses.ts';
import { type RecordFailure, StopReason } from './stop.ts';

/** The time within which a request of a person is seen. */
const LOOK_MS = 250;

/** Carries out what people ask of the run, until `end`. */
export function serveControls(
  run: Run,
  {
    queue,
    pauses,
    cancels,
    failure,
  }: { queue: TrialQueue; pauses: Pauses; cancels: Cancels; failure: RecordFailure },
): { end(): void } {
  const { stop, budget, store, row, events } = run;
  const going = () => {
    if (stop.why)
      throw new ControlRefusal(`the run is stopping already (${stop.why.message}); nothing was changed`);
  };
  const inbox = createControlInbox({
    store,
    runId: row.id,
    events,
    now: () => new Date(),
    onError: (error) => stop.stopStarting('internal_error', errorText(error)),
  });
  inbox.serve({
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
      stop.stopStarting('budget_stopped', budgetEnd(limitNano, budget.spent()));
      return `${said}: the run ends`;
    },
    cancel: (id) => cancelOne(run, cancels, id),
  });
  const look = setInterval(() => failure.guard(inbox.look), LOOK_MS);
  return {
    end() {
      clearInterval(look);
      failure.guard(inbox.close);
    },
  };
}

const amount = (nano: number | null): string => (nano === null ? 'none' : formatCost(nano));

async function cancelOne({ trials, store }: Run, cancels: Cancels, id: string): Promise<string> {
  const trial = chosen(trials, id, (one) => trialById(store, one.id)?.state === 'sealed');
  const { instanceId } = trial.label;
  const again = cancels.has(trial.id);
  if (!cancels.runs(trial.id)) {
    if (again) return `${instanceId} is cancelled already`;
    await cancels.cancel(trial.id);
    leaveOutTrial(store, trial.id);
    return `${instanceId} had not started; it does not start in this sitting`;
  }
  const reason = await cancels.cancel(trial.id);
  if (reason === 'cancelled') return `${instanceId} is cancelled, and its container is gone`;
  return `${instanceId} ended by itself before it could be cancelled${reason ? `: ${reason}` : ''}`;
}

/** The trial that is meant and has not ended; of several the numbers are said. */
function chosen(
  trials: readonly PlannedTrial[],
  id: string,
  isSealed: (trial: PlannedTrial) => boolean,
): PlannedTrial {
  const numbered = trials.filter((trial) => String(trial.id) === id);
  const meant = idsMeant(id, new Set(trials.map(({ label }) => label.instanceId)));
  const exact = meant.length === 1 && meant[0] === id;
  const found =
    numbered.length > 0 && !exact ? numbered : trials.filter(({ label }) => meant.includes(label.instanceId));
  if (meant.length > 1 && numbered.length === 0)
    throw new ControlRefusal(`"${id}" names several instances: ${meant.slice(0, 8).join(', ')}`);
  if (found.length === 0)
    throw new ControlRefusal(`no instance or trial "${id}" is in this sitting; "swebatch ls RUN" lists them`);
  const open = found.filter((trial) => !isSealed(trial));
  if (open.length === 1) return open[0]!;
  if (open.length === 0) throw new ControlRefusal(`${id} has ended already; nothing was cancelled`);
  const which = open
    .slice(0, 10)
    .map(
      (trial) => `${trial.id}: ${trial.label.instanceId} (${trial.label.arm}, epoch ${trial.label.epoch})`,
    );
  throw new ControlRefusal(`${id} is ${open.length} trials; name one by its number: ${which.join('; ')}`);
}

/** Trials that a person takes out of this sitting: one that runs is ended, one that waits does not start. */
type Cancels = ReturnType<typeof createCancels>;

export function createCancels() {
  const cancelled = new Set<number>();
  const running = new Map<
    number,
    { abort: AbortController; over: PromiseWithResolvers<ExitReason | null> }
  >();
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

/** Handlers that return what was done, or throw a ControlRefusal with the reason why not. */
type ControlHandlers = {
  readonly [C in ControlCommand]?: (value: ControlValues[C]) => string | Promise<string>;
};

const LOST =
  'the process that had begun with it ended before it answered; "swebatch ls" shows what the run is doing now. Ask again if it is still wanted';
const LATE =
  'it was asked too long ago and nobody waits for the answer; nothing was done. Ask again if it is still wanted';
const ENDING = 'the run is ending; nothing was done';

/** `onError`: the record cannot be written. */
export function createControlInbox({
  store,
  runId,
  events,
  now,
  onError,
}: {
  readonly store: Store;
  readonly runId: number;
  readonly events: RunEvents;
  readonly now: () => Date;
  readonly onError: (error: unknown) => void;
}) {
  let handlers: ControlHandlers = {};
  let first = true;
  const answer = (
    { id, command, argument, asked_by }: ControlRow,
    state: 'done' | 'refused',
    said: string,
  ) => {
    if (!answerControl(store, id, { state, answer: said, at: now().toISOString() })) return;
    events.emit({
      type: 'control',
      command: short(command),
      argument: argument === null ? null : short(argument),
      by: short(asked_by),
      done: state === 'done',
      answer: said,
    });
  };
  const handle = async (row: ControlRow): Promise<string> => {
    const { command, value } = readControl(row.command, row.argument);
    const handler = handlers[command] as ((value: unknown) => string | Promise<string>) | undefined;
    if (!handler) throw new ControlRefusal(`this run cannot ${command}`);
    return handler(value);
  };
  const carryOut = async (row: ControlRow): Promise<void> => {
    try {
      answer(row, 'done', await handle(row));
    } catch (error) {
      if (error instanceof ControlRefusal) answer(row, 'refused', error.message);
      else throw error;
    }
  };
  return {
    /** Carries out requests from now on. */
    serve(given: ControlHandlers) {
      handlers = given;
    },
    /** Looks for requests once. Throws when the record cannot be read. */
    look() {
      // Only this process takes requests, so what is taken before its first look was taken by one that died.
      if (first) for (const row of unansweredControls(store, runId, 'taken')) answer(row, 'refused', LOST);
      first = false;
      for (const row of unansweredControls(store, runId, 'open')) {
        const age = now().getTime() - Date.parse(row.asked_at);
        // The time is a text that any program can write: what is no time is too old.
        if (!(age < REQUEST_HOLDS_MS)) answer(row, 'refused', LATE);
        else if (takeControl(store, row.id)) carryOut(row).catch(onError);
      }
    },
    /** Refuses what is still open. */
    close() {
      for (const state of ['open', 'taken'] as const)
        for (const row of unansweredControls(store, runId, state)) answer(row, 'refused', ENDING);
    },
  };
}

/** Rows are written by any program: an event holds a line of them. */
const short = (value: string): string => inert(value.slice(0, 200));

const EVERY_MS = 2000;

/**
 * Writes down what `swebatch ctl RUN` shows and no table of the record has. Returns what ends it. A state that cannot be written is left out: it is
 * only looked at.
 */
export function keepLiveState({ store, row, config, arms, events }: Run): () => void {
  let slots = config.workers;
  let last = '';
  events.on((event) => {
    if (event.type !== 'control' || !event.done || event.command !== 'workers') return;
    const asked = readControl('workers', event.argument);
    if (asked.command === 'workers') slots = asked.value;
  });
  const write = () => {
    const models = [...arms.values()].flatMap(({ row: arm, modelFactory }) => {
      const load = modelFactory.load?.();
      if (!load) return [];
      const { inFlight, waiting, blockedMs, rateLimited, limit, rpm, tpm } = load;
      const kept = { ...(rpm !== undefined && { rpm }), ...(tpm !== undefined && { tpm }) };
      return [{ arm: arm.name, inFlight, waiting, blockedMs, rateLimited, limit, ...kept }];
    });
    const state: LiveState = { slots, models };
    const text = JSON.stringify(state);
    if (text === last) return;
    last = text;
    try {
      writeLiveState(store, row.id, Date.now(), state);
    } catch {
      // The record says it itself when it cannot be written.
    }
  };
  write();
  const timer = setInterval(write, EVERY_MS);
  timer.unref();
  return () => {
    clearInterval(timer);
    // Work that ended within the last interval is not shown for ever.
    write();
  };
}
