/** A finding of `doctor`, or of the checks before a run: one thing that was looked at. */
export interface Finding {
  readonly what: string;
  readonly ok: boolean;
  readonly detail: string;
  readonly fix: string | null;
  /** Missing on this machine, now: a plan can be made without it, and the configuration is not wrong. */
  readonly here?: boolean;
}

export const good = (what: string, detail: string): Finding => ({ what, ok: true, detail, fix: null });
export const bad = (what: string, detail: string, fix: string): Finding => ({ what, ok: false, detail, fix });
