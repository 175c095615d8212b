/** The error that a provider describes in a body, whatever its dialect: gateways answer for others in words of their own. */
import { retryAfterMs } from '../../base/async/timer.ts';
import { parsePythonLiteral } from '../../base/python/literal.ts';
import { withoutLabels } from '../saidItself.ts';
import type { ProviderError } from './dialect.ts';
import { asObject, asText } from './shapes.ts';

/** Google's details of an error: when to come back, which quota was met, which field is wrong. */
function googleDetails(details: unknown) {
  let retryMs: number | null = null;
  let code: string | null = null;
  let param: string | null = null;
  for (const detail of Array.isArray(details) ? details : []) {
    const { '@type': type, retryDelay, violations, fieldViolations } = asObject(detail) ?? {};
    if (String(type).endsWith('RetryInfo')) retryMs = retryAfterMs(asText(retryDelay), 0) ?? retryMs;
    // The quota of a day is used up until tomorrow; that of a minute is a rate.
    for (const violation of Array.isArray(violations) ? violations : [])
      if (/Per(?:Day|Week|Month)/.test(asText(asObject(violation)?.quotaId) ?? ''))
        code = 'insufficient_quota';
    for (const violation of Array.isArray(fieldViolations) ? fieldViolations : [])
      param ??= asText(asObject(violation)?.field);
  }
  return { retryMs, code, param };
}

/** FastAPI's words (vLLM, SGLang, Mistral) for a body that does not fit: `[{loc: ['body', 'top_k'], msg: '…'}]`. */
function misfit(detail: unknown): { param: string; message: string } | null {
  const first = asObject(Array.isArray(detail) ? detail[0] : null);
  const message = asText(first?.msg);
  if (!first || message === null || !Array.isArray(first.loc)) return null;
  const param = first.loc.filter((part) => part !== 'body').join('.');
  return param === '' ? null : { param, message: `${param}: ${message}` };
}

const LONGEST_RELAYED = 100_000;
/** litellm tells its own settings behind it. */
const AFTER_RELAYED = /^['"]?\s{0,9}(?:$|\n|\.? ?(?:received model group|litellm retried))/i;

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    try {
      return parsePythonLiteral(text);
    } catch {
      return null;
    }
  }
}

/**
 * A body that a gateway or a client put into its own sentence, as JSON or as Python prints it: `Fireworks_aiException - {"error": …}. Received
 * Model Group=x`. Behind any other words it would be somebody's input.
 */
function relayed(message: string): ProviderError | null {
  if (message.length > LONGEST_RELAYED) return null;
  const text = withoutLabels(message)
    .replace(/^b(?=['"])/, '')
    .replace(/^['"](?=[{[])/, '');
  if (!/^[{[]/.test(text)) return null;
  const end = text.lastIndexOf(text.startsWith('{') ? '}' : ']') + 1;
  return AFTER_RELAYED.test(text.slice(end, end + 200)) ? providerError(parsed(text.slice(0, end))) : null;
}

/** OpenRouter's own words are "Provider returned error"; those of the provider stand beside them, as JSON or as a sentence. */
function upstream(metadata: unknown): Partial<ProviderError> {
  const raw = asObject(metadata)?.raw;
  if (typeof raw !== 'string' || raw === '') return {};
  return relayed(raw) ?? { message: raw };
}

/** `com.amazon.coral.service#ThrottlingException`, where no header says it. */
const amazonCode = ({ __type }: Record<string, unknown>): string | null =>
  asText(__type)?.split('#').at(-1) ?? null;

/** MiniMax's own, which also comes with a 200: `{base_resp: {status_code: 1008, status_msg: '…'}}`. */
function baseResponse(outer: Record<string, unknown>): ProviderError | null {
  const { status_code, status_msg } = asObject(outer.base_resp) ?? {};
  if (!status_code) return null;
  const message = asText(status_msg) ?? `base_resp ${status_code}`;
  return { status: null, code: `base_resp_${status_code}`, type: null, message, param: null, retryMs: null };
}

/** Fields of the message: Amazon also writes it in capitals, gateways in a word of their own. */
const SAID = ['message', 'Message', 'errorMessage', 'detail'];
/** The name; Python prints `None` where there is none. */
const named = (param: unknown): string | null => (param === 'None' ? null : asText(param));

/** A number that is no status is the provider's own code (Z.ai's 1301). */
const ownCode = (code: unknown): string | null =>
  (typeof code === 'string' || typeof code === 'number') && !/^[1-5]\d\d$/.test(String(code))
    ? String(code)
    : null;

/**
 * The error inside a body in the forms providers use: `{error: {message, code, type}}`, `{error: "text"}`, `{errors: [{code, message}]}`, vLLM's and
 * Anthropic's own.
 */
export function providerError(body: unknown): ProviderError | null {
  const outer = asObject(Array.isArray(body) ? body[0] : body);
  if (!outer) return null;
  const flat = outer.object === 'error' || outer.type === 'error' || SAID.some((name) => name in outer);
  // Cloudflare and watsonx.
  const stated = asObject(outer.error) ?? asObject(Array.isArray(outer.errors) ? outer.errors[0] : null);
  const inner = asObject(stated?.error) ?? stated;
  if (!inner && typeof outer.error !== 'string' && !flat) return baseResponse(outer);
  const from = inner ?? outer;
  const code = from.code ?? outer.code;
  const number = Number(from.status_code ?? code);
  const google = googleDetails(from.details);
  const unfit = misfit(from.detail ?? asObject(from.message)?.detail);
  const said = SAID.map((name) => from[name]).find((value) => value !== undefined) ?? outer.error;
  const text = unfit?.message ?? asText(said) ?? asText(asObject(said)?.error) ?? asText(outer.error);
  const told = { ...(text === null ? {} : relayed(text)), ...upstream(from.metadata) };
  return {
    status: Number.isInteger(number) && number >= 400 && number <= 599 ? number : null,
    // Novita's `reason`.
    code:
      told.code ??
      google.code ??
      ownCode(code) ??
      asText(from.reason) ??
      asText(from.status) ??
      amazonCode(outer),
    type: told.type ?? asText(from.type),
    message: told.message ?? text ?? JSON.stringify(from),
    param: told.param ?? named(from.param) ?? google.param ?? unfit?.param ?? null,
    retryMs: google.retryMs ?? told.retryMs ?? null,
  };
}
