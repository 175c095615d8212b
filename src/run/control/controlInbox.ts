/**
 * Requests to a run that works. They come through the record, because it is the one thing that every terminal, the viewer and this process
 * share, and it outlives all of them. Each is answered with what was done, and is an event of the run.
 */
import { inert } from '../../base/text/inert.ts';
import {
  answerControl,
  type ControlRow,
  takeControl,
  unansweredControls,
} from '../../store/live/controls.ts';
import type { Store } from '../../store/open.ts';
import type { RunEvents } from '../events.ts';
import { type ControlCommand, ControlRefusal, type ControlValues, readControl } from './controlRequest.ts';

/** Each returns what was done, or throws a ControlRefusal with the reason why not. */
export type ControlHandlers = {
  readonly [C in ControlCommand]?: (value: ControlValues[C]) => string | Promise<string>;
};

/** Who asks waits so long, and then takes the request back: what is older surprises everybody. */
export const REQUEST_HOLDS_MS = 60_000;

export interface ControlInbox {
  /** Carries out requests from now on; later handlers join earlier ones. */
  serve(handlers: ControlHandlers): void;
  /** Looks for requests once. Throws when the record cannot be read. */
  look(): void;
  /** Refuses what is still open. */
  close(): void;
}

export interface ControlInboxPorts {
  readonly store: Store;
  readonly runId: number;
  readonly events: RunEvents;
  readonly now: () => Date;
  /** The record cannot be written. */
  readonly onError: (error: unknown) => void;
}

const LOST =
  'the process that had begun with it ended before it answered; "swebatch ls" shows what the run is doing now. Ask again if it is still wanted';
const LATE =
  'it was asked too long ago and nobody waits for the answer; nothing was done. Ask again if it is still wanted';
const ENDING = 'the run is ending; nothing was done';

export function createControlInbox({ store, runId, events, now, onError }: ControlInboxPorts): ControlInbox {
  let handlers: ControlHandlers = {};
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
  const carryOut = async (row: ControlRow): Promise<void> => {
    try {
      answer(row, 'done', await handle(handlers, row));
    } catch (error) {
      if (error instanceof ControlRefusal) answer(row, 'refused', error.message);
      else throw error;
    }
  };
  let first = true;
  return {
    serve: (more) => {
      handlers = { ...handlers, ...more };
    },
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
    close() {
      for (const state of ['open', 'taken'] as const)
        for (const row of unansweredControls(store, runId, state)) answer(row, 'refused', ENDING);
    },
  };
}

/** Rows are written by any program: an event holds a line of them. */
const short = (value: string): string => inert(value.slice(0, 200));

async function handle(handlers: ControlHandlers, row: ControlRow): Promise<string> {
  const { command, value } = readControl(row.command, row.argument);
  const handler = handlers[command] as ((value: unknown) => string | Promise<string>) | undefined;
  if (!handler) throw new ControlRefusal(`this run cannot ${command}`);
  return handler(value);
}
