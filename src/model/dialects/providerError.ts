/** The error that a provider describes in a body, whatever its dialect: gateways answer for others in words of their own. */
import type { ProviderError } from './dialect.ts';
import { asObject, asText } from './shapes.ts';

/** Google's details of an error: when to come back, and which quota was met. */
function googleDetails(details: unknown): { retryMs: number | null; code: string | null } {
  let retryMs: number | null = null;
  let code: string | null = null;
  for (const detail of Array.isArray(details) ? details : []) {
    const { '@type': type, retryDelay, violations } = asObject(detail) ?? {};
    const seconds = /^(\d+(?:\.\d+)?)s$/.exec(asText(retryDelay)?.slice(0, 40) ?? '')?.[1];
    if (String(type).endsWith('RetryInfo') && seconds !== undefined) retryMs = Number(seconds) * 1000;
    // The quota of a day is used up until tomorrow; that of a minute is a rate.
    for (const violation of Array.isArray(violations) ? violations : [])
      if (/PerDay/.test(asText(asObject(violation)?.quotaId) ?? '')) code = 'insufficient_quota';
  }
  return { retryMs, code };
}

/** The error inside a body in the forms providers use: `{error: {message, code, type}}`, `{error: "text"}`, vLLM's and Anthropic's own. */
export function providerError(body: unknown): ProviderError | null {
  const outer = asObject(Array.isArray(body) ? body[0] : body);
  if (!outer) return null;
  const flat = outer.object === 'error' || outer.type === 'error' || 'message' in outer || 'detail' in outer;
  const inner = asObject(outer.error);
  if (!inner && typeof outer.error !== 'string' && !flat) return null;
  const from = inner ?? outer;
  const code = from.code ?? outer.code;
  const number = Number(from.status_code ?? code);
  const google = googleDetails(from.details);
  const message = asText(from.message) ?? asText(outer.error) ?? asText(from.detail) ?? JSON.stringify(from);
  return {
    status: Number.isInteger(number) && number >= 400 && number <= 599 ? number : null,
    code: google.code ?? (typeof code === 'string' && !/^\d+$/.test(code) ? code : asText(from.status)),
    type: asText(from.type),
    message,
    retryMs: google.retryMs,
  };
}
