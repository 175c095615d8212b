/** Maps exit statuses of mini-swe-agent to exit reasons. */
import type { ExitReason } from '../../outcome.ts';

/** Exception names of litellm, its providers and Python, by what they say about the end. */
const REASONS = new Map<string, ExitReason>(
  Object.entries<ExitReason>({
    Submitted: 'submitted',
    TimeExceeded: 'limit_wall_time',
    RepeatedFormatError: 'format_errors_exceeded',
    ContextWindowExceededError: 'context_window_exceeded',
    ContentPolicyViolationError: 'model_refusal',
    RateLimitError: 'model_unavailable',
    RetryError: 'model_unavailable',
    APIError: 'model_unavailable',
    APIConnectionError: 'model_unavailable',
    InternalServerError: 'model_unavailable',
    ServiceUnavailableError: 'model_unavailable',
    Timeout: 'model_unavailable',
    BadRequestError: 'model_rejected',
    UnsupportedParamsError: 'model_rejected',
    AuthenticationError: 'auth_failed',
    PermissionDeniedError: 'auth_failed',
    NotFoundError: 'model_not_found',
    CalledProcessError: 'env_start_failed',
    TimeoutExpired: 'env_image_pull_failed',
    UndefinedError: 'config_invalid',
    KeyboardInterrupt: 'cancelled',
  }),
);

export function reasonOf(
  status: string | null,
  config: Readonly<Record<string, unknown>>,
  steps: number,
): ExitReason {
  // Version 2 writes '' while the agent works, so this one never recorded its end.
  if (status === null || status === '') return 'cancelled';
  if (status === 'LimitsExceeded') {
    const limit = (config.agent as { step_limit?: unknown } | undefined)?.step_limit;
    return typeof limit === 'number' && limit > 0 && steps >= limit ? 'limit_steps' : 'limit_cost';
  }
  // OpenRouterRateLimitError, RequestyAPIError: the gateways' own exceptions carry their name in front.
  return (
    REASONS.get(status.replace(/^(?:Uncaught )?(?:OpenRouter|Requesty|Portkey)?/, '')) ?? 'internal_error'
  );
}
