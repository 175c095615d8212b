/** What a program may ask for, and the bytes that are asked instead. Pure. */
import type { IncomingHttpHeaders } from 'node:http';
import type { DialectName } from '../model/dialects/dialectName.ts';
import { asObject } from '../model/dialects/shapes.ts';
import type { Refusal } from './errorBodies.ts';
import type { GatewayConfig } from './gatewayConfig.ts';
import { AmbiguousJson, type Span, spansOf, spliced } from './jsonSpans.ts';
import { fetchedByProvider, stateAtProvider, toolsAtProvider } from './providerTools.ts';
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
  readonly stripped: readonly string[];
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
  return typeof limit === 'number' ? limit : null;
}

/** A choice that names what was taken out is a request that cannot be met any more. */
function forcesTool(request: Readonly<Record<string, unknown>>, names: readonly string[]): boolean {
  const choice = asObject(request.tool_choice);
  return choice !== null && [choice.type, choice.name].some((word) => names.includes(String(word)));
}

const DEPENDENT = ['tools', 'tool_choice', 'parallel_tool_calls', 'toolConfig', 'tool_config'];

/** The body without what runs at the provider. Only what must change does. */
function withoutTools(
  bytes: Buffer,
  request: Record<string, unknown>,
  spans: ReadonlyMap<string, Span>,
  found: ReturnType<typeof toolsAtProvider>,
): Buffer {
  const empty = found.tools?.length === 0;
  if (found.fields.length === 0 && !empty && found.tools)
    return spliced(bytes, [{ span: spans.get('tools')!, text: JSON.stringify(found.tools) }]);
  const kept = { ...request, ...(found.tools && { tools: found.tools }) };
  const out = new Set([...found.fields, ...(empty ? DEPENDENT : [])]);
  return Buffer.from(
    JSON.stringify(Object.fromEntries(Object.entries(kept).filter(([name]) => !out.has(name)))),
  );
}

export function judge(policy: Policy, asked: Asked): Allowed | Refused {
  const parsed = parse(asked.body);
  if ('ok' in parsed) return parsed;
  const { request, spans } = parsed;
  const { dialect } = asked;
  const named = asked.model ?? request.model;
  if (typeof named !== 'string') return broken('the request names no model');
  const model = modelFor(policy, named);
  if (model === null)
    return forbidden(
      'not_found',
      `the model "${named.slice(0, 100)}" is not this arm's: ask for "${policy.model}", or name it in gateway.models`,
    );
  const state = stateAtProvider(dialect, request);
  if (state.length > 0)
    return forbidden(
      'bad_request',
      `${state.join(', ')}: requests must be whole, nothing is kept at the provider`,
    );
  const fetched = fetchedByProvider(request);
  if (fetched !== null)
    return forbidden(
      'bad_request',
      `the provider would fetch something (${fetched}): send the bytes themselves`,
    );
  const found = toolsAtProvider(dialect, request);
  if (
    found.names.length > 0 &&
    (policy.config.provider_tools === 'refuse' || forcesTool(request, found.names))
  )
    return forbidden('bad_request', `tools that run at the provider are refused: ${found.names.join(', ')}`);
  const body = found.names.length > 0 ? withoutTools(asked.body, request, spans, found) : asked.body;
  const tools = found.tools ?? request.tools;
  return {
    ok: true,
    body: renamed(body, asked.model === null && model !== named ? model : null),
    request,
    operation: asked.operation === 'generate' && request.stream === true ? 'stream' : asked.operation,
    modelAsked: named,
    model,
    maxOutput: maxOutputOf(request),
    hasTools: Array.isArray(tools) && tools.length > 0,
    stripped: found.names,
  };
}

const renamed = (body: Buffer, model: string | null): Buffer =>
  model === null ? body : spliced(body, [{ span: spansOf(body).get('model')!, text: JSON.stringify(model) }]);
