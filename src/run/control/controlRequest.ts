/** Requests to a run while it works: their words, and the value that each takes. Pure. */
import { MOST } from '../../base/plausible.ts';
import { dollarsToNano } from '../../money.ts';

/** The value of each command, as its handler gets it. */
export interface ControlValues {
  pause: null;
  resume: null;
  /** Slots from now on. */
  workers: number;
  /** Nano-dollars of the whole run; null for no limit. */
  budget: number | null;
  /** An instance, or the number of a trial. */
  cancel: string;
}
export type ControlCommand = keyof ControlValues;

/** A request is waited for so long, and then taken back: an older one would surprise everybody. */
export const REQUEST_HOLDS_MS = 60_000;

/** A request that cannot be carried out; the message is the answer. */
export class ControlRefusal extends Error {
  override readonly name = 'ControlRefusal';
}

const none = (word: ControlCommand) => (argument: string | null) => {
  if (argument !== null) throw new ControlRefusal(`${word} takes no value`);
  return null;
};

/** Nano-dollars of a budget; null for none. Throws a ControlRefusal. */
export function budgetIn(argument: string | null): number | null {
  if (argument === 'none') return null;
  const dollars = /^\$?\d{1,7}(?:\.\d{1,9})?$/.test(argument ?? '')
    ? Number(argument!.replace('$', ''))
    : Number.NaN;
  if (!(dollars <= MOST.dollars))
    throw new ControlRefusal('budget takes dollars for the whole run, like 12.50, or "none"');
  return dollarsToNano(dollars);
}

const READERS: { readonly [C in ControlCommand]: (argument: string | null) => ControlValues[C] } = {
  pause: none('pause'),
  resume: none('resume'),
  workers(argument) {
    const count = /^\d{1,6}$/.test(argument ?? '') ? Number(argument) : Number.NaN;
    if (!(count >= 1 && count <= MOST.atOnce))
      throw new ControlRefusal(
        `workers takes a whole number from 1 to ${MOST.atOnce}; "pause" lets nothing new start`,
      );
    return count;
  },
  budget: budgetIn,
  cancel(argument) {
    if (argument === null || argument.trim() === '')
      throw new ControlRefusal('cancel needs an instance, or the number of a trial');
    return argument.trim();
  },
};

const CONTROL_COMMANDS = Object.keys(READERS) as ControlCommand[];

type ReadControl = {
  [C in ControlCommand]: { readonly command: C; readonly value: ControlValues[C] };
}[ControlCommand];

/** Throws a ControlRefusal. A request is read where it is asked and once more by the process: any program can write a row. */
export function readControl(command: string, argument: string | null): ReadControl {
  if (!Object.hasOwn(READERS, command))
    throw new ControlRefusal(`this version knows no such request; it knows ${CONTROL_COMMANDS.join(', ')}`);
  const known = command as ControlCommand;
  return { command: known, value: READERS[known](argument) } as ReadControl;
}
