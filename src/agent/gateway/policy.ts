/** What a program may ask for, and the bytes that are asked instead. Pure. */

import type { IncomingHttpHeaders } from 'node:http';
import type { DialectName } from '../../model/dialects/dialects.ts';
import { asObject } from '../../model/dialects/shapes.ts';
import type { Refusal } from './errorBodies.ts';
import type { GatewayConfig } from './gatewayConfig.ts';
import { AmbiguousJson, holdsTooMuch, type Span, spansOf, spliced } from './jsonSpans.ts';
import { fetchedByProvider, fieldsLookedAt, stateAtProvider, toolsAtProvider } from './providerTools.ts';
import type { Operation } from './routes.ts';

export interface Policy {
  readonly config: GatewayConfig;
  /** The model's id over the wire, and its name in the configuration: a program may use either. */
  readonly model: string;
  readonly name: string;
}

export interface Asked {
  readonly dialect: DialectName;
  readonly operation: Operation;
  /** From the address; null where the body names the model. */
  readonly model: string | null;
  readonly body: Buffer;
}

/** With what the policy does not look at. */
export interface Ask extends Asked {
  readonly query: string;
  readonly headers: IncomingHttpHeaders;
}

export interface Allowed {
  readonly ok: true;
  readonly body: Buffer;
  /** As the program wrote it. */
  readonly request: Readonly<Record<string, unknown>>;
  readonly operation: Operation;
  readonly modelAsked: string;
  readonly model: string;
  readonly maxOutput: number | null;
  readonly hasTools: boolean;
  /** What runs at the provider, by name. */
  readonly stripped: readonly string[];
  /** Fields that nobody here knows. */
  readonly unknown: readonly string[];
}

export interface Refused {
  readonly ok: false;
  readonly refusal: Refusal;
  readonly message: string;
  /** For the record; null where the request was only broken. */
  readonly note: string | null;
}

const broken = (message: string): Refused => ({ ok: false, refusal: 'bad_request', message, note: null });
const forbidden = (refusal: Refusal, message: string): Refused => ({
  ok: false,
  refusal,
  message,
  note: message,
});

function parse(
  bytes: Buffer,
): { request: Record<string, unknown>; spans: ReadonlyMap<string, Span> } | Refused {
  let request: Record<string, unknown> | null;
  if (holdsTooMuch(bytes)) return broken('the request holds more values than any conversation has');
  try {
    request = asObject(JSON.parse(bytes.toString('utf8')));
  } catch (error) {
    return broken(`the request is no JSON: ${(error as Error).message.slice(0, 200)}`);
  }
  if (!request) return broken('the request is no JSON object');
  try {
    return { request, spans: spansOf(bytes) };
  } catch (error) {
    if (!(error instanceof AmbiguousJson)) throw error;
    return forbidden('bad_request', `the request can be read in two ways: ${error.message}`);
  }
}

function modelFor({ config, model, name }: Policy, asked: string): string | null {
  if (asked === model || asked === name) return model;
  return Object.hasOwn(config.models, asked) ? config.models[asked]! : null;
}

function maxOutputOf(request: Readonly<Record<string, unknown>>): number | null {
  const generation = asObject(request.generationConfig) ?? asObject(request.generation_config);
  const limits = [
    request.max_output_tokens,
    request.max_completion_tokens,
    request.max_tokens,
    generation?.maxOutputTokens,
  ];
  const limit = limits.find((value) => typeof value === 'number' && Number.isFinite(value));
  return typeof limit === 'number' ? limit * answersAsked(request.n ?? generation?.candidateCount) : null;
}

/** Each is written, and paid, by itself. */
const answersAsked = (count: unknown): number =>
  typeof count === 'number' && Number.isFinite(count) && count > 1 ? count : 1;

const MOST_NAMED = 8;
/** In the record of a call. */
const MOST_KEPT = 50;

/** A request may name as many as fit into it. */
export function named(names: readonly string[]): string {
  const unique = [...new Set(names)];
  const shown = unique.slice(0, MOST_NAMED).map((name) => name.slice(0, 60));
  return shown.join(', ') + (unique.length > MOST_NAMED ? ` and ${unique.length - MOST_NAMED} more` : '');
}

/** A choice that names what was taken out is a request that cannot be met any more. */
function forcesTool(request: Readonly<Record<string, unknown>>, names: readonly string[]): boolean {
  const choice = asObject(request.tool_choice);
  return choice !== null && [choice.type, choice.name].some((word) => names.includes(String(word)));
}

const DEPENDENT = ['tools', 'tool_choice', 'parallel_tool_calls', 'toolConfig', 'tool_config'];

/** The body without what runs at the provider and what nobody knows. Only what must change does. */
function without(
  bytes: Buffer,
  request: Record<string, unknown>,
  spans: ReadonlyMap<string, Span>,
  found: ReturnType<typeof toolsAtProvider>,
  unknown: readonly string[],
): Buffer {
  const fields = [...found.fields, ...unknown];
  if (fields.length === 0 && found.tools === null) return bytes;
  const empty = found.tools?.length === 0;
  if (fields.length === 0 && !empty && found.tools)
    return spliced(bytes, [{ span: spans.get('tools')!, text: JSON.stringify(found.tools) }]);
  const kept = { ...request, ...(found.tools && { tools: found.tools }) };
  const out = new Set([...fields, ...(empty ? DEPENDENT : [])]);
  return Buffer.from(
    JSON.stringify(Object.fromEntries(Object.entries(kept).filter(([name]) => !out.has(name)))),
  );
}

/** What no change to the request would mend. */
function refusalOf(
  { config }: Policy,
  dialect: DialectName,
  request: Record<string, unknown>,
): Refused | null {
  const state = stateAtProvider(dialect, request);
  if (state.length > 0)
    return forbidden(
      'bad_request',
      `${state.join(', ')}: requests must be whole, nothing is kept at the provider`,
    );
  const fetched = fetchedByProvider(dialect, request);
  if (fetched !== null)
    return forbidden(
      'bad_request',
      `the provider would fetch something (${fetched.slice(0, 60)}): send the bytes themselves`,
    );
  const { names } = toolsAtProvider(dialect, request);
  if (names.length > 0 && (config.provider_tools === 'refuse' || forcesTool(request, names)))
    return forbidden('bad_request', `tools that run at the provider are refused: ${named(names)}`);
  return null;
}

export function judge(policy: Policy, asked: Asked): Allowed | Refused {
  const parsed = parse(asked.body);
  if ('ok' in parsed) return parsed;
  const { request, spans } = parsed;
  const { dialect } = asked;
  const name = asked.model ?? request.model;
  if (typeof name !== 'string') return broken('the request names no model');
  const model = modelFor(policy, name);
  if (model === null)
    return forbidden(
      'not_found',
      `the model "${name.slice(0, 100)}" is not this arm's: ask for "${policy.model}", or name it in gateway.models`,
    );
  const refusal = refusalOf(policy, dialect, request);
  if (refusal !== null) return refusal;
  const found = toolsAtProvider(dialect, request);
  const unknown = unknownFields(dialect, request, fieldsLookedAt(dialect));
  const body = without(asked.body, request, spans, found, unknown);
  // `functions` is the older form of chat.
  const tools = [found.tools ?? request.tools, request.functions];
  return {
    ok: true,
    body: renamed(body, asked.model === null && model !== name ? model : null),
    request,
    operation: asked.operation === 'generate' && request.stream === true ? 'stream' : asked.operation,
    modelAsked: name,
    model,
    maxOutput: maxOutputOf(request),
    hasTools: tools.some((list) => Array.isArray(list) && list.length > 0),
    stripped: [...new Set(found.names)].slice(0, MOST_KEPT),
    unknown,
  };
}

const renamed = (body: Buffer, model: string | null): Buffer =>
  model === null ? body : spliced(body, [{ span: spansOf(body).get('model')!, text: JSON.stringify(model) }]);

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
function unknownFields(
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
