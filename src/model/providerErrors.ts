/**
 * Errors of providers, by their codes and in their own sentences: one table, each row with its provider and where its words were
 * found. A row of `context`, `refusal` or `badCall` is a statement about the model and counts against it, so only a code or a sentence that is known
 * whole stands there: a word like "context_window" is also in the name of a parameter. An error that no row knows is nobody's fault.
 */

import { isMentioned, isSaid } from './saidItself.ts';

export type Meaning = keyof typeof TABLE;

interface Row {
  readonly of: string;
  readonly source: string;
  /** Codes and types, in small letters; `*` stands for any letters. */
  readonly codes?: string;
  /** Wordings in small letters, with straight apostrophes, of any numbers. */
  readonly says?: readonly RegExp[];
  /** Spent also where the code beside it is that of a rate limit: no wait of minutes helps. */
  readonly spent?: boolean;
}

/** Clients and gateways that know many providers. */
const LITELLM = 'litellm, exception_mapping_utils.py';
const PI = 'pi, packages/ai/src/utils/overflow.ts';
const HERMES = 'hermes-agent, error classifier';
const [GROQ, ZAI] = ['console.groq.com/docs/errors', 'docs.z.ai/api-reference/api-code'];
const MINIMAX = 'platform.minimax.io/docs/api-reference/errorcode';
const ARK = 'volcengine.com/docs/82379/1299023 and 1099476';
const KIMI = 'platform.kimi.com/docs/api/errors';
/** Answers of providers themselves, kept as tests. */
const SEEN = 'tests/model/faults';
const DASHSCOPE = 'help.aliyun.com/en/model-studio/error-code';

/** vLLM's rest for the answer, where nobody asked for a length: less than nothing. */
export const LESS_THAN_NOTHING = /max_(?:completion_)?tokens must be at least 1, got -\d/;

const TABLE = {
  /** The conversation is too long for the model. */
  context: [
    {
      of: 'many: what was sent is longer than the window, the context or the model',
      source: `${LITELLM}; openclaw, tests of its error classifier; opencode#50574`,
      says: [
        /(?:request|input|prompt|messages?|conversation|(?:requested )?token)(?: (?:size|length|tokens?|count|token (?:length|count)))?(?: \(?[\d,]{1,15}(?: tokens)?\)?)? (?:exceeds?|is longer than|(?:is )?too (?:long|large) for) (?:the |this |your )?(?:available |maximum |max |allowed ){0,2}(?:model(?:'s)? )?(?:available |maximum |max |allowed ){0,2}(?:context (?:window|length|size)|model\b)/,
        /total length of all messages is too long/,
        /tokens in request more than max tokens allowed/,
        /input token count \+ max_tokens parameter must be less than the context length/,
      ],
    },
    {
      of: 'OpenAI, Azure, DeepSeek, vLLM, SGLang, OpenRouter, Cloudflare',
      source: LITELLM,
      codes: 'context_length_exceeded context_window_exceeded contextwindowexceedederror',
      says: [
        /maximum context length is \d/,
        /model's maximum context length has been exceeded/,
        /^(?:the )?context (?:length|window) (?:\([\d,]{1,15} tokens\) )?(?:has been |is |was )?exceeded\b/,
        /input tokens exceed the configured limit of \d/,
        /^(?:litellm\.badrequesterror: )?litellm\.contextwindowexceedederror:/,
      ],
    },
    {
      of: 'Anthropic, also at Bedrock and Vertex AI',
      source: LITELLM,
      codes: 'request_too_large',
      says: [
        /prompt is too long: \d/,
        /^(?:the |your )?(?:prompt|input) is too long\.?$/,
        /input length and `?max_tokens`? exceed context limit: \d/,
      ],
    },
    {
      of: "Google's own, Vertex AI",
      source: LITELLM,
      says: [
        /input (?:token count )?(?:\(?\d{0,12}\)? ?)?exceeds the maximum number of (?:input )?tokens\b/,
        /(?:unable to submit request because the )?input token count is \d{1,12} but (?:the )?model only supports up to \d/,
      ],
    },
    {
      of: 'xAI',
      source: PI,
      says: [
        /maximum prompt length is \d{1,12} but the request contains \d/,
        /\[input_too_large\] current message \(\d{1,12} tokens\) exceeds budget/,
      ],
    },
    {
      of: 'Ollama, oMLX',
      source: PI,
      says: [
        /prompt (?:is )?too long; exceeded (?:max )?context length/,
        /input length exceeds (?:the |maximum )?context length/,
        /prompt too long: \d{1,12} tokens exceeds max context window of \d/,
      ],
    },
    {
      of: 'vLLM in older and newer versions',
      source: HERMES,
      says: [
        /prompt \((?:total )?length \d{1,12}\) is (?:too long|longer than the maximum model length)/,
        /model's context length is only \d/,
        /prompt length \d{1,12} exceeds the max_model_len/,
        LESS_THAN_NOTHING,
      ],
    },
    {
      of: 'tabbyAPI',
      source: 'tabbyAPI, common/errors.py; SillyTavern#3543',
      says: [
        /prompt length \d{1,12} exceeds the available context size/,
        /^initial job allocation requires \d{1,12} cache tokens, which exceeds the available context size/,
        /request length \d{1,12}(?: \+ \d{1,12})? is greater than max_seq_len \d/,
      ],
    },
    {
      of: 'SGLang',
      source: 'sglang#4048; pi',
      says: [
        /input \(\d{1,12} tokens\) is longer than the model's context length/,
        /input length \(\d{1,12} tokens\) exceeds the maximum allowed length \(\d/,
      ],
    },
    {
      of: 'llama.cpp, LM Studio, ds4',
      source: PI,
      codes: 'exceed_context_size_error',
      says: [
        /request (?:\(\d{1,12} tokens\) )?exceeds the available context size/,
        /requested tokens \(\d{1,12}\) exceed context window of \d/,
        /trying to keep the first \d{1,12} tokens when context the overflows/,
        /(?:number of tokens to keep from the )?initial prompt is greater than the context length/,
        /input length \d{1,12} exceeds context length \d/,
        /prompt has [\d,]{1,15} tokens?, but the configured context size is \d/,
      ],
    },
    {
      of: 'Mistral; Groq and Cerebras beside their code; Poolside through OpenRouter',
      source: PI,
      says: [
        /prompt contains \d{1,12} tokens(?: and \d{1,12} draft tokens)?, too large for model with \d{1,12} maximum context length/,
        /^please reduce the length of the messages or completion/,
        /input length [\d,]{1,15}(?: tokens)? exceeds (?:the )?maximum allowed input length of [\d,]{1,15} tokens?/,
      ],
    },
    {
      of: 'Together, TGI',
      source: LITELLM,
      says: [
        /`inputs` tokens \+ `max_new_tokens` must be <= \d/,
        /`inputs` must have less than \d{1,12} tokens\. given: \d/,
      ],
    },
    {
      of: 'Bedrock, Amazon Nova',
      source: LITELLM,
      says: [
        /input is too long for requested model/,
        /too many input tokens\. max input tokens: \d/,
        /input tokens exceeded: number of input tokens exceeds maximum length/,
      ],
    },
    { of: 'Fireworks', source: PI, says: [/prompt is too long: \d{1,12}, model maximum context length: \d/] },
    {
      of: 'Moonshot',
      source: KIMI,
      says: [/exceeded model token limit ?: \d/, /^input token length too long/],
    },
    {
      of: 'MiniMax',
      source: MINIMAX,
      codes: 'base_resp_1039',
      says: [/^invalid params, context window exceeds limit/],
    },
    { of: 'Z.ai', source: ZAI, codes: '1261', says: [/^prompt exceeds max length$/] },
    {
      of: 'DashScope',
      source: DASHSCOPE,
      codes: 'inputtoolong',
      says: [/range of input length should be \[\d/, /^total message token length exceeds? model limit/],
    },
    {
      of: 'Cohere',
      source: LITELLM,
      says: [/^too many tokens: (?:total number of tokens|size limit exceeded)/],
    },
    {
      of: 'Snowflake',
      source: 'docs.snowflake.com, Cortex REST API',
      says: [/^max tokens of \d{1,12} exceeded/],
    },
    {
      of: "GitHub's models and Copilot",
      source: PI,
      codes: 'tokens_limit_reached model_max_prompt_tokens_exceeded',
      says: [
        /prompt token count of \d{1,12} exceeds the limit of \d/,
        /^request body too large for \S{1,100} model\. max size: \d{1,12} tokens/,
      ],
    },
    {
      of: 'SambaNova',
      source: 'OpenHands#9252',
      says: [/^the maximum context length of \S{1,100} is \d{1,12}\. however, answering your request will/],
    },
    {
      of: 'watsonx',
      source: 'agno, test of agno.models.ibm',
      says: [
        /^(?:invalid input argument for model \S{1,100}: )?the number of input tokens \d{1,12} cannot exceed the total tokens limit \d/,
      ],
    },
    {
      of: 'Cloudflare',
      source: 'models.dev#4422; clients of Workers AI, code 5021',
      says: [
        /estimated number of input and maximum output tokens \(\d{1,12}\) exceeded this model context window limit \(\d/,
      ],
    },
    {
      of: 'SiliconFlow',
      source: 'dify#19394, continue#10993',
      says: [
        /length of prompt_tokens \(\d{1,12}\) must be less than max_seq_len \(\d/,
        /max_total_tokens \(\d{1,12}\) must be less than or equal to max_seq_len \(\d/,
      ],
    },
    {
      of: 'Ark',
      source: `${ARK}; QwenPaw#272, deer-flow#549`,
      codes: 'outofcontexterror',
      says: [
        /total tokens of image and text exceed max message tokens/,
        /^input length \d{1,12} exceeds the maximum length \d/,
      ],
    },
    {
      of: 'DeepInfra',
      source: 'langchain#25671',
      says: [/requested input length \d{1,12} exceeds maximum input length \d/],
    },
    {
      of: 'TensorRT-LLM',
      source: 'TensorRT-LLM#9277, tensorrtllm_backend#141',
      says: [
        /the sum of prompt length \(\d{1,12}(?:\.\d{1,3})?\), query length \(\d{1,12}\) should not exceed max_num_tokens/,
        /prompt length \(\d{1,12}\) exceeds maximum (?:sequence|input) length \(\d/,
      ],
    },
    {
      of: 'Baidu',
      source: 'cloud.baidu.com/doc/qianfan-api/s/Om9b4yj3w',
      codes: 'tokens_too_long characters_too_long',
    },
  ],
  /** The provider or the model will not answer this. */
  refusal: [
    {
      of: 'OpenAI',
      source: LITELLM,
      codes: `content_policy_violation content_policy invalid_prompt moderation_blocked safety refusal content_filtered
        guardrail_intervened`,
      says: [
        /prompt was flagged as potentially violating our usage policy/,
        /rejected (?:as a result of|by) (?:our|the) safety system/,
        /limited access to this content for safety reasons/,
        /^litellm\.contentpolicyviolationerror:/,
      ],
    },
    {
      of: "OpenAI's classifiers of what is asked",
      source: 'litellm, exception_mapping_utils.py (cyber_policy); openai-ruby, SessionTurnError::Code',
      codes: 'cyber_policy bio_policy misalignment_policy_violation',
      says: [/this (?:request|content) (?:has been|was) flagged for possible cybersecurity risk/],
    },
    {
      of: 'Azure',
      source: LITELLM,
      codes: 'content_filter responsibleaipolicyviolation',
      says: [
        /prompt triggering azure openai's content management policy/,
        /prompt triggering (?:microsoft's|the) content management policy/,
      ],
    },
    {
      of: 'Anthropic',
      source: `${LITELLM}; ${SEEN}`,
      says: [
        /output blocked by content filtering policy/,
        /^(?:[a-z]{1,20} ){1,3}is unable to respond to this request, which appears to violate our usage policy/,
      ],
    },
    {
      of: 'OpenRouter',
      source: SEEN,
      says: [/(?:requires moderation and your )?input was flagged (?:for|by) /],
    },
    {
      of: "Google's own, Vertex AI",
      source: LITELLM,
      says: [
        /(?:prompt contains sensitive words that |prompt |request )violates? google's responsible ai practices/,
      ],
    },
    {
      of: 'DeepSeek',
      source: 'DeepSeek-V2#30, BettaFish#108',
      says: [/^content exists risk$/],
    },
    {
      of: 'xAI',
      source: SEEN,
      says: [/^content violates usage guidelines/],
    },
    {
      of: 'DashScope',
      source: DASHSCOPE,
      codes: 'data_inspection_failed datainspectionfailed',
      says: [/^(?:<\d+> )?(?:input|output) (?:text )?data may contain inappropriate content/],
    },
    {
      of: 'Moonshot',
      source: KIMI,
      says: [/^the request was rejected because it was considered high risk/],
    },
    {
      of: 'MiniMax',
      source: MINIMAX,
      codes: 'base_resp_1026 base_resp_1027',
      says: [/^(?:input|output) new_sensitive/],
    },
    {
      of: 'Z.ai',
      source: ZAI,
      codes: '1301',
      says: [
        /^system detected potentially unsafe or sensitive content/,
        /^系统检测到输入或生成内容可能包含不安全或敏感内容/,
      ],
    },
    {
      of: 'Ark',
      source: ARK,
      codes: '*sensitivecontentdetected *sensitivecontentdetected.* *textriskdetection',
    },
  ],
  /** The model called a tool so that its server could not read it. */
  badCall: [
    {
      of: 'Groq',
      source: GROQ,
      codes: 'tool_use_failed output_parse_failed',
      says: [/^failed to call a function\. please adjust your prompt/, /^tool call validation failed:/],
    },
    {
      of: 'Ollama',
      source: 'ollama#12064, ollama#17638',
      says: [/^error parsing tool call: /, /^\{"error parsing tool call":/],
    },
    {
      of: 'llama.cpp',
      source: 'llama.cpp#24644, llama.cpp#25510',
      says: [/^failed to parse input at pos \d/, /^failed to parse tool call arguments as json/],
    },
  ],
  /** Nothing is left of what the account may spend: no wait of minutes helps. */
  quota: [
    {
      of: 'many: the limit of a day, a week or a month is met',
      source: 'screenpipe#4594, OmniRoute#12252 and #1772, copilot-cli#730, hermes-agent#93455',
      says: [
        /^(?:you(?:'ve| have)|your (?:[a-z]{1,30} ){1,2}has|this request would) (?:exceed(?:ed)?|hit|reached|used up|exhausted) (?:your|its|the|this) (?:[\w']{1,30} )?(?:daily|weekly|monthly)(?: [\w-]{1,30})? (?:quota|limit|cap|budget|credits)\b/,
        /^(?:daily|weekly|monthly|subscription)(?: [\w-]{1,30})? (?:quota|limit|cap|budget|credits) (?:was |has been |is )?(?:reached|exceeded|exhausted)\b/,
        /you are using a trial key, which is limited to [\d,]{1,15} api calls \/ month/,
        /you're out of extra usage/,
      ],
      spent: true,
    },
    {
      of: 'OpenAI and those that speak like it',
      source: 'developers.openai.com/api/docs/guides/error-codes',
      codes: `insufficient_quota billing_hard_limit_reached billing_not_active insufficient_credits insufficient_balance credit_balance_exhausted
        organization_spend_limit_exceeded project_spend_limit_exceeded organization_usage_limit_exceeded`,
      says: [/insufficient (?:credits|balance|funds|quota)/, /exceeded your current quota/],
    },
    {
      of: 'ChatGPT plans',
      source: 'pi#4172, codegraff2#90',
      codes: 'usage_limit_reached usage_not_included',
      spent: true,
    },
    {
      of: 'Anthropic',
      source: "issues 2127 and 38035 of Anthropic's own agent",
      codes: 'credit_balance_too_low',
      says: [/credit balance is too low/, /^you have reached your specified (?:workspace )?api usage limits/],
      spent: true,
    },
    {
      of: 'Bedrock',
      source: 'Ivy-Tendril#1756, agent-book#29; litellm, bedrock/realtime/handler.py',
      codes: 'servicequotaexceededexception',
      says: [/^too many tokens per day\b/],
      spent: true,
    },
    {
      of: 'OpenRouter',
      source: 'openclaw#147546',
      says: [/^rate limit exceeded: free-models-per-day/],
      spent: true,
    },
    {
      of: 'DashScope',
      source: `${DASHSCOPE} and coding-plan-faq`,
      codes: 'arrearage allocationquota.freetieronly',
      says: [
        /please make sure your account is in good standing/,
        /^(?:hour|week|month) allocated quota exceeded/,
      ],
      spent: true,
    },
    {
      of: 'Ark',
      source: ARK,
      codes: 'accountoverdueerror setlimitexceeded operationdenied.serviceoverdue invalidsubscription',
      says: [
        /^the request failed because your account has an overdue balance/,
        /^your account \S{1,100} has exhausted its free trial quota/,
        /^you have exceeded the (?:5-hour|weekly|monthly) usage quota/,
      ],
      spent: true,
    },
    {
      of: 'litellm',
      source: 'litellm, exceptions.py (BudgetExceededError)',
      codes: 'budget_exceeded',
      says: [/budget has been exceeded! current cost: /, /^exceeded(?:token)?budget: /],
      spent: true,
    },
    {
      of: 'xAI',
      source: 'continue#10373, warp#14863',
      says: [
        /has either used all available credits or reached its monthly spending limit/,
        /team doesn't have any credits or licenses yet/,
      ],
      spent: true,
    },
    {
      of: 'OpenRouter, a key that has a limit',
      source: 'RooCode#515, inspector#1287',
      says: [/^key limit exceeded\b/],
      spent: true,
    },
    {
      of: 'Fireworks',
      source: 'pollinations#12136, wayland#545',
      says: [/^account \S{1,100} is suspended, possibly due to reaching the monthly spending limit/],
      spent: true,
    },
    {
      of: "Cerebras and Anthropic's older plans",
      source: 'AI-Scientist#115; answers of Cerebras kept by its clients',
      says: [
        /^(?:tokens|requests) per (?:day|month) limit exceeded/,
        /^number of request tokens has exceeded your (?:daily|monthly) rate limit/,
      ],
      spent: true,
    },
    {
      of: "Google's own",
      source: 'ai.google.dev, billing; answers kept by its clients',
      says: [
        /^(?:[\w.-]{1,30} ){1,6}doesn't have a free quota tier/,
        /^your prepayment credits are depleted/,
      ],
      spent: true,
    },
    {
      of: 'SiliconFlow',
      source: 'docs.siliconflow.cn, error codes; answers kept by its clients',
      codes: '30001',
      says: [/account balance is insufficient/],
      spent: true,
    },
    {
      of: 'Novita',
      source: 'novita.ai/docs/guides/error; answers kept by its clients',
      codes: 'not_enough_balance',
      says: [/^not enough balance\b/],
      spent: true,
    },
    {
      of: 'Hugging Face',
      source: 'answers of its router, kept by its clients',
      says: [/^you have exceeded your monthly included credits/],
      spent: true,
    },
    {
      of: 'one-api and new-api',
      source: 'one-api, middleware and relay; new-api',
      codes: 'insufficient_user_quota pre_consume_token_quota_failed',
      says: [/^用户额度不足/, /^账户余额不足|^余额不足/, /^该令牌额度已用尽/],
      spent: true,
    },
    { of: 'MiniMax', source: MINIMAX, codes: 'base_resp_1008 base_resp_2056 insufficient_balance_error' },
    {
      of: 'Moonshot',
      source: KIMI,
      codes: 'exceeded_current_quota_error',
      says: [/request reached (?:max )?organization [tr]pd rate limit/],
      spent: true,
    },
    { of: 'Z.ai', source: ZAI, codes: '1113 1304 1308 1309 1310' },
  ],
  auth: [
    {
      of: 'all',
      source: LITELLM,
      codes: `invalid_api_key incorrect_api_key api_key_invalid invalid_authentication invalid_authentication_error account_deactivated
        account_suspended access_terminated failed_to_auth expired_key base_resp_1004 base_resp_2049`,
      says: [
        /api[ _-]?key (?:not valid|is invalid|expired)/,
        /(?:invalid|incorrect|missing) (?:api[ _-]?key|authentication|credentials)/,
        /method doesn't allow unregistered callers/,
        /^user location is not supported/,
      ],
    },
    {
      of: 'Amazon',
      source: 'docs.aws.amazon.com, Common Error Types',
      codes: `invalidsignatureexception unrecognizedclientexception expiredtokenexception missingauthenticationtokenexception
        incompletesignatureexception invalidclienttokenid optinrequired`,
    },
    {
      of: 'Anthropic',
      source: "code.claude.com/docs, errors of Anthropic's own agent",
      says: [/^this organization has been disabled/],
    },
  ],
  noModel: [
    {
      of: 'all',
      source: LITELLM,
      codes: `model_not_found model_not_available deploymentnotfound modelnotfound unknown_model model_not_exist model_decommissioned
        model_deprecated model_access_denied model_not_supported model_deactivated model_is_deactivated`,
      says: [
        /\bmodels?:? (?:id )?(?:\S{1,200} )?(?:does not exist|not exist\b|(?:is |was |has been )?(?:not found|not supported|no longer (?:supported|available)|not available|not a valid|decommissioned|deprecated|deactivated|retired|discontinued))/,
        /requested model (?:does not exist|(?:is |was )?not (?:found|supported|available))/,
        /^\S{1,200} is not a valid model/,
        /(?:invalid|unknown|no such) model/,
        /model identifier is invalid/,
        /invocation of model id \S{1,200} with on-demand throughput isn.t supported/,
        /model id: \S{1,200} has no provider supported/,
      ],
    },
  ],
  rate: [
    {
      of: 'all',
      source: LITELLM,
      // A quota that is whole again in a moment is a rate.
      says: [/per[ _-]?(?:second|minute|hour)/, /\b[rt]pm\b/],
    },
  ],
  /** A rate, told with the status of something else. */
  throttled: [
    {
      of: 'DashScope through OpenRouter, Google, gateways',
      source: 'opencode#21355; hermes-agent, tests of its error classifier',
      says: [
        /^(?:the |your |user )?rate limit (?:is |was |has been )?(?:exceeded|reached)\b/,
        /request rate increased too quickly/,
        /too many (?:concurrent )?requests/,
      ],
    },
  ],
  outage: [
    {
      of: 'OpenAI, gateways',
      source: LITELLM,
      says: [
        /^the server had an error (?:while )?processing your request/,
        /^internal (?:server )?error\b/,
        /^(?:the )?(?:model|engine|server|service|upstream) (?:is |are )?(?:currently |temporarily )?(?:overloaded|unavailable)/,
        /^overloaded\b/,
      ],
    },
  ],
  /** One request larger than the account may send in a minute: no wait makes it fit. */
  tooLargeForRate: [{ of: 'OpenAI, Groq', source: LITELLM, says: [/request too large/] }],
} as const satisfies Readonly<Record<string, readonly Row[]>>;

/** Codes and types that say no more than a status does: they count where no status says more, and never against one. */
const IMPLIED: Readonly<Record<number, string>> = {
  400: 'invalid_request_error invalid_request invalid_argument badrequesterror bad_request failed_precondition validationexception',
  401: 'authentication_error unauthenticated unauthorized',
  402: 'billing_error payment_required',
  403: 'permission_error permission_denied forbidden accessdeniedexception',
  404: 'not_found_error not_found resourcenotfoundexception',
  424: 'modelerrorexception modelstreamerrorexception',
  429: 'rate_limit_error rate_limit_exceeded too_many_requests resource_exhausted throttlingexception base_resp_1002 base_resp_1041',
  500: 'server_error internal_error internal_server_error api_error internal internalserverexception base_resp_1000 base_resp_1001 base_resp_1024 base_resp_1033',
  502: 'bad_gateway',
  503: 'service_unavailable unavailable modelnotreadyexception serviceunavailableexception',
  504: 'timeout_error deadline_exceeded modeltimeoutexception',
  529: 'overloaded_error engine_overloaded engine_overloaded_error',
};

const STATUS = new Map(
  Object.entries(IMPLIED).flatMap(([status, words]) =>
    words.split(' ').map((word) => [word, Number(status)] as const),
  ),
);

const entries = Object.entries(TABLE) as [Meaning, readonly Row[]][];

/** No code in the table is half as long. */
const LONGEST_CODE = 100;

const CODES = new Map<string, Meaning>();
const PATTERNS: (readonly [RegExp, Meaning])[] = [];
for (const [meaning, rows] of entries)
  for (const code of rows.flatMap(({ codes }) => codes?.split(/\s+/) ?? [])) {
    const pattern = code.replaceAll('.', '\\.').replaceAll('*', '[a-z]{0,40}');
    if (pattern === code) CODES.set(code, meaning);
    else PATTERNS.push([new RegExp(`^${pattern}$`), meaning]);
  }

const smallCode = (word: string | null | undefined): string =>
  !word || word.length > LONGEST_CODE ? '' : word.toLowerCase();

/** The meaning of a code or a type of a provider; null where nobody knows it, or where it says no more than a status. */
export function codeMeans(word: string | null | undefined): Meaning | null {
  const code = smallCode(word);
  if (code === '') return null;
  return CODES.get(code) ?? PATTERNS.find(([pattern]) => pattern.test(code))?.[1] ?? null;
}

/** The status that a code or a type stands for. */
export const statusMeant = (word: string | null | undefined): number | null =>
  STATUS.get(smallCode(word)) ?? null;

const wordingsOf = (rows: readonly Row[]): readonly RegExp[] => rows.flatMap(({ says }) => says ?? []);
const WORDINGS = new Map(entries.map(([meaning, rows]) => [meaning, wordingsOf(rows)]));
const SPENT = wordingsOf((TABLE.quota as readonly Row[]).filter(({ spent }) => spent));

/** Whether the provider itself says it: a quotation of a message, a path or the name of a parameter says nothing. */
export const says = (message: string, meaning: Meaning): boolean => isSaid(message, WORDINGS.get(meaning)!);

export const saysSpent = (message: string): boolean => isSaid(message, SPENT);
export const mentions = (message: string, meaning: Meaning): boolean =>
  isMentioned(message, WORDINGS.get(meaning)!);
