/** The next step of the caller. A program makes a call or sets an option; the command line names a verb or a flag (context.ts). */
export type NextStep =
  | { readonly do: 'list_runs'; readonly results: string }
  | { readonly do: 'resume_run'; readonly results: string; readonly run: string }
  | { readonly do: 'list_trials'; readonly results: string; readonly run: string }
  | { readonly do: 'grade_run'; readonly results: string; readonly run: string }
  | {
      readonly do:
        | 'start_run'
        | 'name_results'
        | 'name_dataset'
        | 'choose_name'
        | 'allow_change'
        | 'set_baseline'
        | 'find_baseline'
        | 'skip_remeasuring'
        | 'join_shards'
        | 'skip_unsupported'
        | 'skip_grading'
        | 'check_engine';
    };

/** A problem that the caller can act on: wrong input, a missing file, a run that does not exist. Everything else is a defect or a fault. */
export class UserError extends Error {
  override readonly name = 'UserError';
  /** Advice in words that hold for a program and for the command line. */
  readonly hint: string | undefined;
  readonly next: NextStep | undefined;
  constructor(message: string, more: { hint?: string; next?: NextStep } = {}) {
    super(message);
    this.hint = more.hint;
    this.next = more.next;
  }
}
