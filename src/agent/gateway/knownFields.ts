/**
 * The fields that a request may have beside its content. What is not listed is left out: it may choose another model at this arm's price, a
 * dearer class of service, or something to fetch, and its name alone does not say so. A number cannot: it passes. Sources: the references of OpenAI, Anthropic and
 * Google, of vLLM, SGLang, OpenRouter, DeepSeek, DashScope and Z.ai for what they add to chat completions.
 */
import type { DialectName } from '../../model/dialects/dialects.ts';

const words = (text: string): readonly string[] => text.trim().split(/\s+/);

const SAMPLING = words(`
  temperature top_p top_k top_a min_p seed stop frequency_penalty presence_penalty repetition_penalty length_penalty logit_bias logprobs
  top_logprobs min_tokens stop_token_ids ignore_eos skip_special_tokens spaces_between_special_tokens include_stop_str_in_output
  guided_json guided_regex guided_choice guided_grammar structured_outputs do_sample random_seed safe_prompt
`);
const COMMON = words(
  'model stream stream_options tools tool_choice parallel_tool_calls metadata user service_tier',
);
const CACHED = words('prompt_cache_key prompt_cache_retention safety_identifier store');

const KNOWN: Readonly<Record<DialectName, ReadonlySet<string>>> = {
  chat: new Set([
    ...COMMON,
    ...CACHED,
    ...SAMPLING,
    ...words(`
      messages functions function_call max_tokens max_completion_tokens n response_format reasoning reasoning_effort reasoning_format
      reasoning_split include_reasoning thinking enable_thinking thinking_budget preserve_thinking verbosity modalities prediction usage
      chat_template_kwargs cache_control tool_stream think
    `),
  ]),
  responses: new Set([
    ...COMMON,
    ...CACHED,
    ...SAMPLING,
    ...words(`
      input instructions include reasoning text truncation max_output_tokens max_tool_calls client_metadata context_management
      chat_template_kwargs
    `),
  ]),
  messages: new Set([
    ...COMMON,
    ...SAMPLING,
    ...words(`
      messages system max_tokens stop_sequences thinking context_management output_config output_format cache_control
      anthropic_version
    `),
  ]),
  gemini: new Set(
    words(`
      model contents systemInstruction system_instruction tools toolConfig tool_config safetySettings safety_settings generationConfig
      generation_config labels generateContentRequest generate_content_request
    `),
  ),
};

/** Classes of service at the listed price. */
const USUAL_TIERS: ReadonlySet<unknown> = new Set(['auto', 'default', 'standard', 'standard_only', null]);

/** Fields that are left out, by name. `handled` are those that another rule looks at. */
export function unknownFields(
  dialect: DialectName,
  body: Readonly<Record<string, unknown>>,
  handled: readonly string[],
): readonly string[] {
  return Object.keys(body).filter((name) => {
    if (handled.includes(name)) return false;
    if (name === 'service_tier') return !USUAL_TIERS.has(body[name]);
    return !KNOWN[dialect].has(name) && typeof body[name] !== 'number' && body[name] !== null;
  });
}
