/**
 * The closed vocabulary of how an attempt ends and what a grader says.
 * Exit reason (why it ended) and exit class (what that says about the model) are kept apart, because mixing them is
 * how outages come to be scored as wrong answers.
 */

export const EXIT_CLASSES = ['agent', 'limit', 'model', 'infra', 'config', 'cancelled', 'not_run'] as const;
export type ExitClass = (typeof EXIT_CLASSES)[number];

interface ExitReasonFacts {
  readonly class: ExitClass;
  /** A rerun may be worth it: the reason says nothing final about the model. */
  readonly retry: boolean;
  /** One short sentence for people. */
  readonly says: string;
}

export const EXIT_REASONS = {
  submitted: { class: 'agent', retry: false, says: 'the agent submitted its work' },
  limit_steps: { class: 'limit', retry: false, says: 'the step limit was reached' },
  limit_cost: { class: 'limit', retry: false, says: 'the cost limit of the instance was reached' },
  limit_tokens: { class: 'limit', retry: false, says: 'the token limit was reached' },
  limit_wall_time: { class: 'limit', retry: false, says: 'the wall-clock limit was reached' },
  context_window_exceeded: {
    class: 'limit',
    retry: false,
    says: 'the history no longer fits the context window',
  },
  format_errors_exceeded: { class: 'limit', retry: false, says: 'too many malformed replies in a row' },
  empty_responses_exceeded: { class: 'limit', retry: false, says: 'too many empty replies in a row' },
  command_timeouts_exceeded: { class: 'limit', retry: false, says: 'too many commands timed out in a row' },
  env_ended_by_agent: {
    class: 'agent',
    retry: false,
    says: 'the agent ended its own container, in a fresh one too',
  },
  model_refusal: { class: 'model', retry: false, says: 'the model refused' },
  model_unavailable: {
    class: 'infra',
    retry: true,
    says: 'the model could not be reached after all retries',
  },
  model_rejected: { class: 'infra', retry: false, says: 'the provider rejected the request' },
  auth_failed: { class: 'config', retry: false, says: 'authentication at the provider failed' },
  model_not_found: { class: 'config', retry: false, says: 'the provider does not know the model' },
  quota_exhausted: { class: 'config', retry: false, says: 'the account has no quota left' },
  price_missing: { class: 'config', retry: false, says: 'no price is known for the model' },
  config_invalid: { class: 'config', retry: false, says: 'the configuration cannot work' },
  env_image_missing: { class: 'infra', retry: true, says: 'the image does not exist' },
  env_image_pull_failed: { class: 'infra', retry: true, says: 'the image could not be pulled' },
  env_image_build_failed: { class: 'infra', retry: false, says: 'the image could not be built' },
  env_start_failed: { class: 'infra', retry: true, says: 'the container or its setup did not start' },
  env_died: { class: 'infra', retry: true, says: 'the container died' },
  history_unsealed: {
    class: 'infra',
    retry: false,
    says: 'future history could not be removed from the repository',
  },
  disk_full: { class: 'infra', retry: true, says: 'the disk is full' },
  stalled: { class: 'infra', retry: true, says: 'no progress within the deadline of a phase' },
  internal_error: { class: 'infra', retry: true, says: 'a defect in swebatch' },
  budget_stopped: { class: 'not_run', retry: true, says: 'the budget of the run was reached' },
  cancelled: { class: 'cancelled', retry: true, says: 'the run was interrupted' },
  orchestrator_lost: { class: 'cancelled', retry: true, says: 'the swebatch process died' },
} as const satisfies Record<string, ExitReasonFacts>;

export type ExitReason = keyof typeof EXIT_REASONS;

export const exitClassOf = (reason: ExitReason): ExitClass => EXIT_REASONS[reason].class;

/** Classes that count as a result of the model. Trials of other classes can be sealed too, but are no result. */
export const COUNTED_CLASSES: ReadonlySet<ExitClass> = new Set(['agent', 'limit', 'model']);

/** A final statement about the model: counted, exported, graded. */
export const isFinalReason = (reason: ExitReason): boolean => COUNTED_CLASSES.has(exitClassOf(reason));

export const OUTCOMES = [
  'resolved',
  'unresolved',
  'empty_patch',
  'apply_failed',
  'timeout',
  'invalid',
  'infra',
  'ungradable',
] as const;
/** The grader's verdict on a prediction. */
export type Outcome = (typeof OUTCOMES)[number];

export const PATCH_SOURCES = ['submitted', 'captured_at_exit', 'none'] as const;
export type PatchSource = (typeof PATCH_SOURCES)[number];

export const PATCH_STATES = ['ok', 'empty', 'invalid', 'oversized'] as const;
export type PatchState = (typeof PATCH_STATES)[number];
