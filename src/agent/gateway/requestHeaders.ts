/** Which headers go on to the provider, which come back, and where a key may stand. Pure. */
import type { IncomingHttpHeaders } from 'node:http';

/** What says how a request is meant. A key, a cookie or a host of the program's never leaves. */
const PASSED =
  /^(accept|user-agent|anthropic-(version|beta|dangerous-direct-browser-access)|openai-beta|x-stainless-[a-z-]+|x-app|x-claude-code-[a-z-]+|x-codex-[a-z-]+|x-goog-api-client|x-openai-subagent|session[_-]id|conversation[_-]id|originator|version|http-referer|x-title)$/;

/** What a client reads. Rate limits are the gateway's to heed; names of accounts are nobody's. */
const RETURNED = /^(content-type|x-request-id|request-id|openai-model|openai-version|openai-processing-ms)$/;

export const passedHeaders = (headers: IncomingHttpHeaders): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      PASSED.test(name) && value !== undefined ? [[name, String(value)]] : [],
    ),
  );

export const returnedHeaders = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => RETURNED.test(name.toLowerCase())));

/** Every place in which a client of one of the dialects puts its key. */
export function keyOf(headers: IncomingHttpHeaders, target: string): string | null {
  const bearer = /^Bearer (\S+)$/i.exec(headers.authorization ?? '')?.[1];
  const named = headers['x-api-key'] ?? headers['x-goog-api-key'];
  const key = bearer ?? (typeof named === 'string' ? named : null);
  return key ?? URL.parse(target, 'http://gateway')?.searchParams.get('key') ?? null;
}

const safeId = (value: string): string => value.replace(/[^A-Za-z0-9_.-]/g, '_').slice(0, 64);

/** The sub-agent that a call is made by, where its program says so. */
export function subAgentOf(headers: IncomingHttpHeaders): string | null {
  const said = headers['x-claude-code-agent-id'] ?? headers['x-openai-subagent'];
  return typeof said === 'string' && said !== '' ? safeId(said) : null;
}

/** The client says that it sends this for the second time or later. */
export const isRetry = (headers: IncomingHttpHeaders): boolean =>
  Number(headers['x-stainless-retry-count'] ?? 0) > 0;
