/**
 * Who may talk to the viewer. It shows what models and containers wrote on the operator's machine, so it answers only requests
 * that name it exactly (no DNS rebinding), come from its own page (no other site's scripts) and, off loopback, carry its token.
 */
import { timingSafeEqual } from 'node:crypto';

export interface AccessRules {
  /** Exact values of the Host header that are ours, lower case. */
  readonly hosts: ReadonlySet<string>;
  readonly token: string | undefined;
  readonly cookie: string;
}

export interface AccessFacts {
  readonly method: string;
  readonly host: string | undefined;
  readonly origin: string | undefined;
  readonly fetchSite: string | undefined;
  /** A person follows a link to the page itself: harmless from anywhere, since the page alone holds no data. */
  readonly visit: boolean;
  readonly authorization: string | undefined;
  readonly cookie: string | undefined;
  /** The path takes requests to a run that works, and the header is there that only a script of the page can set. */
  readonly control?: boolean;
  /** `token` of the query, for the first visit. */
  readonly queryToken: string | undefined;
}

export type Decision =
  | { allow: true; setCookie: boolean }
  | { allow: false; status: 400 | 401 | 403 | 405; why: string };

const refuse = (status: 400 | 401 | 403 | 405, why: string): Decision => ({ allow: false, status, why });

export function decide(rules: AccessRules, request: AccessFacts): Decision {
  const changes = request.method === 'POST' && request.control === true;
  if (!changes && request.method !== 'GET' && request.method !== 'HEAD')
    return refuse(405, 'this viewer only reads');
  const host = request.host?.toLowerCase();
  if (host === undefined || !rules.hosts.has(host))
    return refuse(403, 'this viewer does not answer to that host name; use the address it printed');
  if (request.origin !== undefined && request.origin.toLowerCase() !== `http://${host}`)
    return refuse(403, 'requests from another origin are not answered');
  // Reading may leave the origin out; a change is asked by a page that says it.
  if (changes && request.origin === undefined)
    return refuse(403, 'a request that changes a run has to come from the page of this viewer');
  const site = request.fetchSite;
  if (site !== undefined && site !== 'same-origin' && site !== 'none' && !request.visit)
    return refuse(403, 'requests from another site are not answered');
  if (changes && request.visit) return refuse(403, 'a link or a form changes nothing here');
  if (rules.token === undefined) return { allow: true, setCookie: false };
  if (sameSecret(request.queryToken, rules.token)) return { allow: true, setCookie: true };
  const bearer = request.authorization?.match(/^Bearer (.+)$/)?.[1];
  if (sameSecret(bearer, rules.token) || sameSecret(cookieOf(request.cookie, rules.cookie), rules.token))
    return { allow: true, setCookie: false };
  return refuse(401, 'open the address that "swebatch view" printed: it carries the token');
}

function sameSecret(given: string | undefined, expected: string): boolean {
  if (given === undefined) return false;
  const a = Buffer.from(given);
  const b = Buffer.from(expected);
  return a.length === b.length && timingSafeEqual(a, b);
}

function cookieOf(header: string | undefined, name: string): string | undefined {
  for (const pair of header?.split(';') ?? []) {
    const at = pair.indexOf('=');
    if (at > 0 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim();
  }
  return undefined;
}

const LOOPBACK = new Set(['127.0.0.1', '::1', 'localhost']);
export const isLoopback = (host: string): boolean => LOOPBACK.has(host) || /^127(\.\d{1,3}){3}$/.test(host);

/** Host headers that mean this server: the address it was given, loopback's names, and every interface for a wildcard. */
export function hostsFor(host: string, port: number, interfaces: readonly string[]): Set<string> {
  const names = new Set<string>([host.toLowerCase()]);
  const wildcard = host === '0.0.0.0' || host === '::';
  if (isLoopback(host) || wildcard) for (const name of LOOPBACK) names.add(name);
  if (wildcard) for (const name of interfaces) names.add(name.toLowerCase());
  const found = new Set<string>();
  for (const name of names) {
    const bare = name.includes(':') ? `[${name}]` : name;
    found.add(`${bare}:${port}`);
    if (port === 80) found.add(bare);
  }
  return found;
}
