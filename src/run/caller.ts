/** Everything that the service gets from its caller instead of the process: variables, the working directory, and where notices go. */
import type { Redactor } from '../base/text/redact.ts';
import { createStopLadder, type StopLadder } from './control/stop.ts';
import type { RunEvents } from './events.ts';

/** The caller's environment, or a record of its own. */
export type Variables = Readonly<Record<string, string | undefined>>;

/** A sentence for people beside the result. */
export interface Notice {
  readonly level: 'info' | 'note' | 'warning';
  readonly text: string;
}
export type Tell = (notice: Notice) => void;

export interface Caller {
  /** Keys of providers, the address of the engine, proxies, the hub's settings. */
  readonly env: Variables;
  /** Relative paths of the configuration start here. */
  readonly cwd: string;
  readonly tell: Tell;
  /** Goes into the manifest: how the run was asked for. */
  readonly command?: readonly string[] | undefined;
  /** Called as soon as the secrets are known. */
  readonly keepSecret?: (redactor: Redactor) => void;
  /** Called when work on a run begins. */
  readonly attend?: (work: Work) => Attendant;
}

/** Trials or gradings of a run, from the first event to the last. */
export interface Work {
  readonly run: string;
  readonly root: string;
  readonly workers: number;
  readonly events: RunEvents;
  readonly stop: StopLadder;
}

/** A display or another observer of the work. */
export interface Attendant {
  /** The third interrupt: the process should end at once. */
  exitNow?(): void;
  /** A sentence that must not disturb what is shown. */
  say?(text: string): void;
  /** The number of predictions that will be graded now. */
  toGrade?(count: number): void;
  /** Interrupts have no effect from now on; commands of `run.on_finish` may still run. */
  over?(): void;
  /** Nothing more happens. */
  end?(): void;
}

/** The work with a stop ladder, and the attendant that the caller sends to it. The third interrupt is the attendant's matter. */
export function attended(
  { attend }: Pick<Caller, 'attend'>,
  work: Omit<Work, 'stop'>,
  { onInterrupt, graceS }: { readonly onInterrupt: 'finish' | 'capture'; readonly graceS: number },
): { readonly stop: StopLadder; readonly attendant: Attendant } {
  let attendant: Attendant = {};
  const stop = createStopLadder({ onInterrupt, graceS, exitNow: () => attendant.exitNow?.() });
  attendant = attend?.({ ...work, stop }) ?? attendant;
  return { stop, attendant };
}

/** Treats an empty variable as unset. */
export const variable = (env: Variables, name: string): string | undefined => env[name] || undefined;
