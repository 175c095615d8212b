/**
 * Credentials among the parameters of a request: headers and fields whose names mean one, like `extra_headers: {api-key: …}`. A reference
 * (`env:NAME`, litellm's `os.environ/NAME`, in such a place also `$NAME`, `Bearer $NAME`) is read when requests are made; the record of a
 * run keeps the reference. A value that stands in the configuration itself is taken out, and a reference takes its place.
 */
import { isRecord } from '../base/isRecord.ts';
import { words } from '../base/text/words.ts';
import { ModelConfigError } from './model.ts';

type Kwargs = Readonly<Record<string, unknown>>;

const WORDS = new Set(
  words(`
    authorization auth bearer cookie cookies apikey jwt password passwd pwd passphrase secret secrets credential credentials
  `),
);
const KEYS = new Set(words('api access private secret subscription virtual account functions license'));
/** `eos_token` is of the language, not of a door. */
const OF_LANGUAGE = new Set(words('eos bos pad stop start end mask unk sep cls image special per max min'));

/** `X-Goog-Api-Key`, `access_token`, `clientSecret`. */
export function meansCredential(name: string): boolean {
  const parts = name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1-$2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '');
  return parts.some((word, k) => {
    if (WORDS.has(word)) return true;
    const before = parts[k - 1] ?? '';
    if (word === 'key') return parts.length === 1 || KEYS.has(before);
    return word === 'token' && k === parts.length - 1 && !OF_LANGUAGE.has(before);
  });
}

const EXPLICIT = /^((?:Bearer|Basic|Token) )?(?:env:|os\.environ\/)([A-Za-z_]\w*)$/i;
const SHELL = /^((?:Bearer|Basic|Token) )?\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))$/i;

interface Reference {
  readonly scheme: string;
  readonly name: string;
}

/** `door`: a header, or a name that means a credential; elsewhere a "$" may mean anything. */
function referenceIn(value: string, door: boolean): Reference | null {
  const found = EXPLICIT.exec(value) ?? (door ? SHELL.exec(value) : null);
  return found ? { scheme: found[1] ?? '', name: found[2] ?? found[3]! } : null;
}

interface Place {
  readonly path: readonly string[];
  readonly door: boolean;
  readonly credential: boolean;
}

/** Every text of the parameters, changed by `change`. Numbers in headers are texts. */
function mapped(value: unknown, place: Place, change: (text: string, place: Place) => unknown): unknown {
  const { path } = place;
  if (Array.isArray(value))
    return value.map((one, k) => mapped(one, { ...place, path: [...path, String(k)] }, change));
  if (isRecord(value))
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => {
        const inHeaders = path[0] === 'extra_headers';
        const credential = place.credential || meansCredential(key);
        const next = { path: [...path, key], credential, door: credential || inHeaders };
        return [key, mapped(inner, next, change)];
      }),
    );
  if (typeof value === 'number' && path[0] === 'extra_headers') return mapped(String(value), place, change);
  return typeof value === 'string' ? change(value, place) : value;
}

const TOP: Place = { path: [], door: false, credential: false };

const each = (kwargs: Kwargs, see: (text: string, place: Place) => void): void =>
  void mapped(kwargs, TOP, (text, place) => {
    see(text, place);
    return text;
  });

interface NamedReference {
  /** Under `model.model_kwargs`. */
  readonly path: string;
  readonly name: string;
}

export function referencesIn(kwargs: Kwargs): NamedReference[] {
  const found: NamedReference[] = [];
  each(kwargs, (text, { path, door }) => {
    const reference = referenceIn(text, door);
    if (reference) found.push({ path: path.join('.'), name: reference.name });
  });
  return found;
}

/** Credentials that stand in their place themselves: records of earlier versions hold such values. */
export function literalCredentials(kwargs: Kwargs): string[] {
  const found: string[] = [];
  each(kwargs, (text, { door, credential }) => {
    if (credential && text !== '' && !referenceIn(text, door)) found.push(...credentialParts(text));
  });
  return found;
}

/** A text with its scheme is as secret as without. */
export function credentialParts(text: string): string[] {
  const bare = /^(?:Bearer|Basic|Token)\s+(\S.*)$/i.exec(text)?.[1];
  return bare === undefined ? [text] : [text, bare];
}

/** A value that a redactor has replaced is nobody's key. */
export function replacedCredential(kwargs: Kwargs): string | null {
  let found: string | null = null;
  each(kwargs, (text, { path }) => {
    if (text.includes('‹redacted:')) found ??= path.join('.');
  });
  return found;
}

/** The parameters as they are sent, and their secrets, for no text. Throws for a variable that is not set. */
export function withReferences<K extends Kwargs>(
  kwargs: K,
  variable: (name: string) => string | undefined,
): { readonly kwargs: K; readonly secrets: readonly string[] } {
  const secrets: string[] = [];
  const sent = mapped(kwargs, TOP, (text, { path, door }) => {
    const reference = referenceIn(text, door);
    if (!reference) return text;
    const value = variable(reference.name);
    if (value === undefined)
      throw new ModelConfigError(
        `model.model_kwargs.${path.join('.')} is in $${reference.name}, which is not set`,
      );
    secrets.push(...credentialParts(value));
    return `${reference.scheme}${value}`;
  });
  return { kwargs: sent as K, secrets: [...secrets, ...literalCredentials(kwargs)] };
}

const queryOf = (address: string | undefined): [name: string, value: string][] =>
  address !== undefined && URL.canParse(address) ? [...new URL(address).searchParams] : [];

/** Variables that the query of an address refers to: `?key=env:NAME`. */
export const referencesInAddress = (address: string | undefined): NamedReference[] =>
  queryOf(address).flatMap(([path, value]) => {
    const reference = referenceIn(value, meansCredential(path));
    return reference ? [{ path, name: reference.name }] : [];
  });

/** Parameters of an address that hold a credential themselves: addresses stand in every record of a run. */
export const literalsInAddress = (address: string | undefined): { name: string; value: string }[] =>
  queryOf(address).flatMap(([name, value]) =>
    value !== '' && meansCredential(name) && !referenceIn(value, true) ? [{ name, value }] : [],
  );

/** The address as it is asked, and its secrets, for no text. Throws for a variable that is not set. */
export function addressWithReferences(
  address: string,
  variable: (name: string) => string | undefined,
): { readonly address: string; readonly secrets: readonly string[] } {
  const references = referencesInAddress(address);
  if (references.length === 0) return { address, secrets: [] };
  const url = new URL(address);
  const secrets = references.map(({ path, name }) => {
    const value = variable(name);
    if (value === undefined)
      throw new ModelConfigError(`model.base_url takes "${path}" from $${name}, which is not set`);
    url.searchParams.set(path, value);
    return value;
  });
  return { address: url.href, secrets };
}

/** The prefix of variables that stand for credentials taken out of a configuration. */
export const CONFIGURED = 'CONFIGURED_';

const variableOf = (path: readonly string[], suffix: string): string =>
  `${CONFIGURED}${path
    .join('_')
    .replaceAll(/[^A-Za-z0-9]+/g, '_')
    .toUpperCase()}${suffix}`;

/**
 * `keys` are the values, under the variables that stand for them. `suffix` tells arms apart. The name of the variable depends on the place
 * alone, so that a hash does not depend on the value.
 */
export function takeCredentialsOut<K extends Kwargs>(kwargs: K, suffix: string) {
  const keys: Record<string, string> = {};
  const paths: Record<string, string> = {};
  const rest = mapped(kwargs, TOP, (text, { path, door, credential }) => {
    if (!credential || text === '' || text.includes('‹redacted:') || referenceIn(text, door)) return text;
    const name = variableOf(path, suffix);
    keys[name] = text;
    paths[name] = path.join('.');
    return `env:${name}`;
  });
  return { kwargs: rest as K, keys, paths };
}
