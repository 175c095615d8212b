/** The address of one operation below the base address of an endpoint, which may have a query of its own: a key of some gateways is in it. */
import { stripChars } from '../../base/python/text.ts';

/** `path` begins with a slash or is empty, and may have a query too: `https://h/v1?key=k` and `/messages?beta` are `https://h/v1/messages?beta&key=k`. */
export function addressUnder(baseUrl: string, path: string): string {
  const at = baseUrl.indexOf('?');
  const base = stripChars(at < 0 ? baseUrl : baseUrl.slice(0, at), '/', 'right');
  const query = at < 0 ? '' : baseUrl.slice(at + 1);
  if (query === '') return `${base}${path}`;
  return `${base}${path}${path.includes('?') ? '&' : '?'}${query}`;
}
