/**
 * The ends of replies, in the words of chat completions, which the agent and the reports know. One table for all dialects: gateways speak one and
 * pass on the words of another (Bedrock's `guardrail_intervened` in Messages). A word that is new stays as it is.
 */

/** Finish reasons by litellm's table (core_helpers.py, _FINISH_REASON_MAP), Bedrock's, Google's, Mistral's and Z.ai's documents. */
const WORDS: Readonly<Record<string, string>> = {
  stop: 'stop eos eos_token stop_sequence end_turn complete',
  length: 'length max_tokens max_output_tokens model_length',
  tool_calls: 'tool_calls tool_call tool_use',
  content_filter: `content_filter content_filtered refusal sensitive safety image_safety recitation blocklist prohibited_content spii
    error_toxic guardrail_intervened language jailbreak model_armor`,
  model_context_window_exceeded:
    'model_context_window_exceeded context_window_exceeded context_length_exceeded',
};

/** `contentFiltered` is `content_filtered`. */
const bare = (word: string): string => word.toLowerCase().replaceAll(/[-_ ]/g, '');

const FINISH: ReadonlyMap<string, string> = new Map(
  Object.entries(WORDS).flatMap(([word, others]) =>
    others.split(/\s+/).map((other) => [bare(other), word] as const),
  ),
);

export const finishOf = (reason: string | null): string | null =>
  reason === null ? null : (FINISH.get(bare(reason.slice(0, 60))) ?? reason);

/** Z.ai's and Anthropic's word. */
export const TOO_LONG_END = 'model_context_window_exceeded';
