/**
 * The page's memory: addresses behind the hash, so that every view is a link that works from a server, from files and from a mail; and a
 * person's settings.
 */
import { useSyncExternalStore } from 'preact/compat';
import { addressParts } from '../documents/first.ts';

interface Route {
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

export function href(
  path: readonly (string | number)[],
  query: Readonly<Record<string, string | number | undefined>> = {},
): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== '') search.set(name, String(value));
  const tail = search.size > 0 ? `?${search}` : '';
  return `#/${path.map((part) => encodeURIComponent(part)).join('/')}${tail}`;
}

const parse = (hash: string): Route => ({
  path: addressParts(hash),
  query: new URLSearchParams(hash.split('?', 2)[1]),
});

let current = { hash: location.hash, route: parse(location.hash) };
const read = (): Route => {
  if (current.hash !== location.hash) current = { hash: location.hash, route: parse(location.hash) };
  return current.route;
};

const CHANGED = 'hashchange';

export const useRoute = (): Route =>
  useSyncExternalStore((changed) => {
    window.addEventListener(CHANGED, changed);
    return () => window.removeEventListener(CHANGED, changed);
  }, read);

export function go(to: string): void {
  location.hash = to;
}

/** Changes parts of the query in place: typing into a filter changes the address and adds nothing to the history. */
export function setQuery(changes: Readonly<Record<string, string | undefined>>): void {
  const { path, query } = read();
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === '') next.delete(name);
    else next.set(name, value);
  }
  history.replaceState(null, '', href(path, Object.fromEntries(next)));
  window.dispatchEvent(new Event(CHANGED));
}

/** A person's settings stay for the next visit. Files opened from a mail refuse storage: there they last as long as the page. */

const inMemory = new Map<string, string>();

export function keep(name: string, value: string): void {
  inMemory.set(name, value);
  try {
    localStorage.setItem(`swebatch-${name}`, value);
  } catch {
    // The map has it.
  }
}

export function kept(name: string): string | null {
  try {
    return localStorage.getItem(`swebatch-${name}`) ?? inMemory.get(name) ?? null;
  } catch {
    return inMemory.get(name) ?? null;
  }
}
