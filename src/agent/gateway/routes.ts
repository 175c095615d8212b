/** Which request of which dialect an address means, and which headers pass. Pure. */
import type { IncomingHttpHeaders } from 'node:http';
import { stripChars } from '../../base/python/text.ts';
import { DIALECT_NAMES, DIALECTS, type DialectName } from '../../model/dialects/dialects.ts';
import type { ProgramSide, Route } from '../../model/dialects/programSide.ts';

/**
 * Every dialect that programs can speak, in the order of the table. An import of this file loads all. Errors of no dialect have the words of the
 * first.
 */
export const SIDES: ReadonlyMap<DialectName, ProgramSide> = new Map(
  await Promise.all(
    DIALECT_NAMES.filter((name) => 'program' in DIALECTS[name]).map(
      async (name) => [name, await DIALECTS[name].program()] as const,
    ),
  ),
);

export const sideOf = (dialect: DialectName): ProgramSide => SIDES.get(dialect)!;

export type CallRoute =
  | (Route & { readonly kind: 'call'; readonly dialect: DialectName; readonly query: string })
  | { readonly kind: 'models'; readonly dialect: DialectName }
  | { readonly kind: 'unknown'; readonly dialect: DialectName; readonly message: string };

/** Parameters that the gateway sets itself, or that would carry a key. */
const OWN_PARAMETERS = ['key', 'alt', '$alt', 'access_token'];

function queryOf(parameters: URLSearchParams): string {
  const kept = new URLSearchParams(parameters);
  for (const name of OWN_PARAMETERS) kept.delete(name);
  const text = kept.toString();
  return text === '' ? '' : `?${text}`;
}

export function routeOf(method: string, target: string): CallRoute {
  const url = URL.parse(target, 'http://gateway');
  const whole = stripChars(url?.pathname ?? '', '/', 'right');
  const path = whole.replace(/^\/v1(beta\d*|alpha)?(?=\/)/, '');
  for (const [dialect, side] of url && method === 'POST' ? SIDES : []) {
    const found = side.route(path, url!.searchParams);
    if (typeof found === 'string') return { kind: 'unknown', dialect, message: found };
    if (found) return { kind: 'call', dialect, ...found, query: queryOf(url!.searchParams) };
  }
  // In the words of whom the address sounds like.
  const [dialect] = [...SIDES].find(([, { sounds }]) => sounds?.test(whole)) ?? [...SIDES][0]!;
  if (method === 'GET' && /^\/models(\/[^/]+)?$/.test(path)) return { kind: 'models', dialect };
  const message = `the gateway does not serve ${method} ${target.slice(0, 200)}`;
  return { kind: 'unknown', dialect, message };
}

/** Headers that say how a request is meant. A key, a cookie or a host of the program's never leaves. */
const PASSED =
  /^(accept|user-agent|anthropic-(version|beta|dangerous-direct-browser-access)|openai-beta|x-stainless-[a-z-]+|x-app|x-claude-code-[a-z-]+|x-codex-[a-z-]+|x-goog-api-client|x-openai-subagent|session[_-]id|conversation[_-]id|originator|version|http-referer|x-title)$/;

/** Headers that a client reads. Rate limits are the gateway's to heed; names of accounts are nobody's. */
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
export function attemptKeyOf(headers: IncomingHttpHeaders, target: string): string | null {
  const bearer = /^Bearer (\S+)$/i.exec(headers.authorization ?? '')?.[1];
  const named = headers['x-api-key'] ?? headers['x-goog-api-key'];
  const key = bearer ?? (typeof named === 'string' ? named : null);
  return key ?? URL.parse(target, 'http://gateway')?.searchParams.get('key') ?? null;
}

const safeId = (value: string): string => value.replace(/[^A-Za-z0-9_.-]/g, '_').slice(0, 64);

/** The sub-agent that a call is made by, where its program says so. */
export function subAgentOf(headers: IncomingHttpHeaders): string | null {
  // A session below another one is a sub-agent's (OpenCode, src/session/llm.ts).
  const below = headers['x-parent-session-id'] && (headers['x-session-affinity'] ?? headers['x-session-id']);
  const said = headers['x-claude-code-agent-id'] ?? headers['x-openai-subagent'] ?? below;
  return typeof said === 'string' && said !== '' ? safeId(said) : null;
}

/** The client says that it sends this for the second time or later. */
export const isRetry = (headers: IncomingHttpHeaders): boolean =>
  Number(headers['x-stainless-retry-count'] ?? 0) > 0;
