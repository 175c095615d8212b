/** What the service needs from outside and never takes itself: variables, the working directory, and somebody to tell. */
import type { Redactor } from '../base/text/redact.ts';

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
  readonly command?: readonly string[];
  /** Called once it is known which values must never be shown. */
  readonly keepSecret?: (redactor: Redactor) => void;
}

/** An empty variable is one that is not set. */
export const variable = (env: Variables, name: string): string | undefined => env[name] || undefined;
