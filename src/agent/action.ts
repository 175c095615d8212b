/** What a reply can ask for: a command to run, or a call that cannot run and still needs its answer. */

/** A command to run. */
export interface Action {
  readonly command: string;
  readonly callId?: string;
  /** Python's name for the kind of value that came where text belongs: version 2 lets the engine's command line refuse it. */
  readonly notText?: string;
}
/** A tool call that cannot run, and why: it still needs its answer. */
interface Refused {
  readonly callId: string;
  readonly error: string;
}
export type Call = Action | Refused;
export const isAction = (call: Call): call is Action => 'command' in call;
