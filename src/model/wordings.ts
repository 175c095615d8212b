/**
 * What providers say where no field says it, in their own sentences. A statement about the model (its context is full, it refused) ends
 * an instance as a result, so only a sentence that is known whole counts: a word like "context_window" is also in the name of a parameter.
 */

const LESS_THAN_NOTHING = /max_(?:completion_)?tokens must be at least 1, got -\d/;

/** Each with its origin; the numbers are whatever they are. */
const CONTEXT_WORDING: readonly RegExp[] = [
  // OpenAI, Azure, DeepSeek, vLLM, SGLang; OpenRouter says "this endpoint's".
  /maximum context length (?:is|of) \d/,
  /model's maximum context length has been exceeded/,
  /input tokens exceed the configured limit of \d/,
  // OpenAI's Responses.
  /input exceeds the context window of this model/,
  // Anthropic, also at Bedrock and Vertex AI.
  /prompt is too long: \d/,
  /input length and `?max_tokens`? exceed context limit: \d/,
  // Gemini; Vertex AI.
  /input token count (?:\(?\d{0,12}\)? ?)?exceeds the maximum number of tokens allowed/,
  /input token count is \d{1,12} but (?:the )?model only supports up to \d/,
  // xAI.
  /maximum prompt length is \d{1,12} but the request contains \d/,
  /\[input_too_large\] current message \(\d{1,12} tokens\) exceeds budget/,
  // Ollama; oMLX.
  /prompt (?:is )?too long; exceeded (?:max )?context length/,
  /input length exceeds (?:the |maximum )?context length/,
  /prompt too long: \d{1,12} tokens exceeds max context window of \d/,
  // vLLM in older and newer versions.
  /prompt \((?:total )?length \d{1,12}\) is (?:too long|longer than the maximum model length)/,
  /model's context length is only \d/,
  /prompt length \d{1,12} exceeds the max_model_len/,
  // What vLLM has left for the answer, where nobody asked for a length: less than nothing.
  LESS_THAN_NOTHING,
  // SGLang.
  /input \(\d{1,12} tokens\) is longer than the model's context length/,
  // llama.cpp.
  /request (?:\(\d{1,12} tokens\) )?exceeds the available context size/,
  // LM Studio.
  /context the overflows|initial prompt is greater than the context length/,
  /input length \d{1,12} exceeds context length \d/,
  // Mistral.
  /too large for model with \d{1,12} maximum context length/,
  // Groq and Cerebras, beside their code.
  /^please reduce the length of the messages or completion/,
  // Together, TGI.
  /`inputs` tokens \+ `max_new_tokens` must be <= \d/,
  /`inputs` must have less than \d{1,12} tokens\. given: \d/,
  // Bedrock.
  /input is too long for requested model/,
  /too many input tokens\. max input tokens: \d/,
  // Amazon Nova.
  /input tokens exceeded: number of input tokens exceeds maximum length/,
  // Fireworks.
  /prompt is too long: \d{1,12}, model maximum context length: \d/,
  // Moonshot; MiniMax; Z.ai; DashScope; Cohere; GitHub's models.
  /exceeded model token limit: \d/,
  /^invalid params, context window exceeds limit/,
  /^prompt exceeds max length$/,
  /range of input length should be \[\d/,
  /^too many tokens: (?:total number of tokens|size limit exceeded)/,
  /prompt token count of \d{1,12} exceeds the limit of \d/,
  // litellm, which gives the error of another a name of its own.
  /^(?:litellm\.badrequesterror: )?litellm\.contextwindowexceedederror:/,
];

const REFUSAL_WORDING: readonly RegExp[] = [
  // OpenAI.
  /prompt was flagged as potentially violating our usage policy/,
  /rejected (?:as a result of|by) (?:our|the) safety system/,
  /limited access to this content for safety reasons/,
  // Azure.
  /prompt triggering azure openai's content management policy/,
  /prompt triggering (?:microsoft's|the) content management policy/,
  // Anthropic.
  /output blocked by content filtering policy/,
  /appears to violate our usage policy/,
  // OpenRouter.
  /input was flagged (?:for|by) /,
  // Gemini and Vertex AI.
  /violate[sd]? google's responsible ai practices/,
  // xAI.
  /^content violates usage guidelines/,
  // DeepSeek; DashScope; Moonshot; MiniMax.
  /^content exists risk$/,
  /^(?:<\d+> )?(?:input|output) data may contain inappropriate content/,
  /^the request was rejected because it was considered high risk/,
  /^(?:input|output) new_sensitive/,
  // litellm.
  /^litellm\.contentpolicyviolationerror:/,
];

const AUTH_WORDING = [
  /api[ _-]?key (not valid|is invalid|expired)/,
  /(invalid|incorrect|missing) (api[ _-]?key|authentication|credentials)/,
];
const MODEL_WORDING = [
  /model .*(does not exist|not found|is not supported|not available|not a valid)/,
  /(not a valid|invalid|unknown|no such) model/,
  /model identifier is invalid/,
  /on-demand throughput isn.t supported/,
];
const QUOTA_WORDING = [
  /credit balance is too low/,
  /insufficient (credits|balance|funds|quota)/,
  /exceeded your current quota/,
];

/** A quota that is whole again in a moment is a rate. */
const RATE_WORDING = [/per[ _-]?(second|minute|hour)/, /\b[rt]pm\b/];

const WORDINGS = {
  context: CONTEXT_WORDING,
  refusal: REFUSAL_WORDING,
  auth: AUTH_WORDING,
  model: MODEL_WORDING,
  quota: QUOTA_WORDING,
  rate: RATE_WORDING,
  // One request larger than the account may send in a minute: no wait makes it fit.
  tooLargeForRate: [/request too large/],
} as const;

/** A body of megabytes says in its first lines what it is about. */
const CHARACTERS = 4000;

/** Gateways put the name of what they were told in front: `litellm.BadRequestError: OpenAIException - prompt is too long: …`. */
const RELAYED = /^(?:litellm\.badrequesterror: )?(?:\w{1,40}exception - |error code: \d{3} - )/;

export function says(message: string, what: keyof typeof WORDINGS): boolean {
  const text = message.slice(0, CHARACTERS).toLowerCase().replaceAll('’', "'").trim();
  const inner = text.replace(RELAYED, '');
  return WORDINGS[what].some((wording) => wording.test(text) || (inner !== text && wording.test(inner)));
}

const number = (text: string | undefined): number => (text === undefined ? Number.NaN : Number(text));

/**
 * Servers speak of the context also where the answer alone is asked to be longer than all of it, or longer than the model writes: that
 * is a setting, whatever the conversation.
 */
export function asksTooMuch(message: string): boolean {
  const text = message.slice(0, CHARACTERS);
  const context = number(/context length(?: is|:| of) (\d{1,12})/.exec(text)?.[1]);
  const asked = number(
    /tokens'? is too large: (\d{1,12})/.exec(text)?.[1] ??
      /\bin (?:the|your) (?:messages|prompt)[,;] (\d{1,12}) (?:in|for) the completion/.exec(text)?.[1],
  );
  if (asked >= context) return true;
  if (LESS_THAN_NOTHING.test(text)) return false;
  const begins = /^['"`]?max_(?:completion_|output_|new_)?tokens\b/.test(text);
  return begins && !/\d input tokens|\bprompt\b|\bmessages\b/.test(text);
}
