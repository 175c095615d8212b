/**
 * Replaces every secret we loaded where it would be written: exact values in plain, base64, URL-encoded and JSON-escaped form.
 * A search for values, not patterns, never misses a loaded secret. Keys that we did not load are found by their shape, at the end of this file.
 */

import { isUtf8 } from 'node:buffer';
import { unitTable } from '../replaceUnits.ts';
import { DANGERS, ESCAPE_BEGINNINGS } from './inert.ts';

// Text as a person may come to see it: without escape sequences, characters that display takes out, and backslashes; literal `\u00e9`, `\xe9` and
// `\n` are their characters, on any level of JSON. A value that is found there is replaced in the text itself, with all that stood between.
// Observed: tests/base/redact.test.ts, "nothing of the key stays" (colours of tools, escapes of JSON and Python).

const RANGES = DANGERS.flatMap(({ ranges }) => ranges).filter(([first]) => first !== 0xd800);
const UNSEEN = unitTable(RANGES.filter(([first]) => first <= 0xffff));
const UNSEEN_PAIRS = RANGES.filter(([first]) => first > 0xffff);

const BACKSLASH = 0x5c;
const LITERALS: Readonly<Record<string, number>> = { b: 0x08, t: 0x09, n: 0x0a, f: 0x0c, r: 0x0d };

interface Shown {
  readonly text: string;
  /** The beginnings of units in the text; one entry more, for the end. */
  readonly from: Uint32Array;
}

function hexAt(text: string, at: number, digits: number): number {
  let value = 0;
  for (let i = at; i < at + digits; i++) {
    const code = text.charCodeAt(i) | 0x20;
    const digit =
      code >= 0x30 && code <= 0x39 ? code - 0x30 : code >= 0x61 && code <= 0x66 ? code - 0x57 : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

const shownAs = (units: Uint16Array, length: number, from: Uint32Array): Shown => ({
  text: Buffer.from(units.buffer, 0, 2 * length).toString('utf16le'),
  from,
});

/** Each level of JSON doubles the backslashes: a run of any length goes with the character that it escapes. */
function withoutLiterals(text: string): Shown {
  const units = new Uint16Array(text.length);
  const from = new Uint32Array(text.length + 1);
  let length = 0;
  for (let at = 0; at < text.length; at++) {
    from[length] = at;
    while (text.charCodeAt(at) === BACKSLASH) at++;
    if (at === text.length) break;
    let unit = text.charCodeAt(at);
    if (at > from[length]!) {
      const kind = text[at]!;
      const digits = kind === 'u' ? 4 : kind === 'x' ? 2 : 0;
      const code = digits === 0 ? (LITERALS[kind] ?? -1) : hexAt(text, at + 1, digits);
      if (code >= 0) unit = code;
      if (code >= 0) at += digits;
    }
    units[length++] = unit;
  }
  from[length] = text.length;
  return shownAs(units, length, from);
}

/** The end of the escape sequence that begins at a place: as `plain` takes it out. */
const SEQUENCE = new RegExp(ESCAPE_BEGINNINGS.source, 'y');
const beginsSequence = (unit: number): boolean => unit === 0x1b || (unit >= 0x90 && unit <= 0x9f);

/** The result is never longer than the text. */
function withoutUnseen({ text, from }: Shown): Shown {
  const units = new Uint16Array(text.length);
  let kept = 0;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (beginsSequence(unit)) {
      SEQUENCE.lastIndex = at;
      if (SEQUENCE.test(text)) at = SEQUENCE.lastIndex - 1;
      continue;
    }
    if (UNSEEN[unit] === 1) continue;
    if (unit >= 0xd800 && unit <= 0xdbff) {
      const code = text.codePointAt(at)!;
      if (UNSEEN_PAIRS.some(([first, last]) => code >= first && code <= last)) {
        at++;
        continue;
      }
    }
    units[kept] = unit;
    from[kept++] = from[at]!;
  }
  from[kept] = from[text.length]!;
  return shownAs(units, kept, from);
}

const CLASS = RANGES.map(([first, last]) => `\\u{${first.toString(16)}}-\\u{${last.toString(16)}}`).join('');
/** Most texts have nothing of it. */
const DISGUISE = new RegExp(`[${CLASS}]|\\\\[uxbfr]`, 'u');

const shown = (text: string): string => withoutUnseen(withoutLiterals(text)).text;

/** Undefined where it is the text itself. `escapable`: what is looked for has characters that JSON escapes, so that any backslash may hide one. */
const shownOf = (text: string, escapable: boolean): Shown | undefined =>
  DISGUISE.test(text) || (escapable && text.includes('\\'))
    ? withoutUnseen(withoutLiterals(text))
    : undefined;

interface Found {
  readonly start: number;
  readonly end: number;
  readonly by: string;
}

/** `find` gets the shown text; where two findings overlap, the earlier one of its list counts, and the other goes with it. */
function replaceShown(text: string, escapable: boolean, find: (shown: string) => readonly Found[]): string {
  const seen = shownOf(text, escapable);
  const found = seen ? find(seen.text) : [];
  if (!seen || found.length === 0) return text;
  let out = '';
  let copied = 0;
  for (const { start, end, by } of found.toSorted((a, b) => a.start - b.start)) {
    const begin = seen.from[start]!;
    const until = seen.from[end - 1]! + 1;
    // A literal is longer than its character; up to the next one that is shown, everything goes with it.
    const whole = text.charCodeAt(until - 1) === BACKSLASH ? seen.from[end]! : until;
    if (begin >= copied) out += text.slice(copied, begin) + by;
    copied = Math.max(copied, whole);
  }
  return out + text.slice(copied);
}

export interface Secret {
  /** Name of the environment variable it came from. */
  readonly name: string;
  readonly value: string;
}

export interface Redactor {
  /** Prose, output of commands, whatever has no form that others read. */
  text(text: string): string;
  /** Text of JSON: only its string values change, also those of JSON inside them. Keys, numbers and white space stay as they are. */
  json(text: string): string;
  /** True when a form of a secret is inside: for bytes that must not be changed, like a submitted patch. */
  contains(bytes: Uint8Array | string): boolean;
  /** The same bytes when nothing was found. */
  bytes(bytes: Uint8Array): Uint8Array;
  /** Replacements made so far. */
  readonly count: number;
}

/** One form of one secret. */
interface Needle {
  readonly form: string;
  /** The same in shown text; empty where so little is left of it that ordinary words would be hit. */
  readonly shown: string;
  readonly placeholder: string;
  /** The form for base64, which tools break into lines: two parts, one of which survives any line break, and a pattern that allows breaks. */
  readonly broken: { readonly parts: readonly [string, string]; readonly pattern: RegExp } | null;
}

/** Shorter values would hit ordinary words. */
export const SHORTEST = 6;

export function createRedactor(secrets: readonly Secret[]): Redactor {
  const needles = secrets
    .filter((s) => s.value.length >= SHORTEST)
    .flatMap((s) => needlesOf(s.value, `‹redacted:${s.name}›`))
    .sort((a, b) => b.form.length - a.form.length);
  // In Latin-1 a byte is a character, so the needles are spelt in the same way.
  const inBytes = needles.map((n) => ({
    ...needleOf(latin1(n.form), latin1(n.placeholder)),
    broken: n.broken,
  }));
  const escapable = secrets.some(({ value }) => /[^\w!#-.:-@[\]^`{-}~ ]/.test(value));
  let count = 0;
  const replace = (input: string, all: readonly Needle[]): string => {
    let out = input;
    for (const needle of all) {
      if (!isIn(out, needle)) continue;
      out = out.replaceAll(needle.broken?.pattern ?? needle.form, () => {
        count += 1;
        return needle.placeholder;
      });
    }
    if (all.length === 0) return out;
    return replaceShown(out, escapable, (text) => {
      const places = all.flatMap((needle) => placesOf(text, needle));
      count += places.length;
      return places;
    });
  };
  const has = (haystack: string, all: readonly Needle[]): boolean => {
    if (all.some((n) => isIn(haystack, n) && (n.broken === null || haystack.search(n.broken.pattern) >= 0)))
      return true;
    const seen = shownOf(haystack, escapable);
    return seen !== undefined && all.some((needle) => placesOf(seen.text, needle).length > 0);
  };
  /** Bytes that are no UTF-8 are searched as Latin-1. */
  const spelt = (bytes: Uint8Array): readonly [string, readonly Needle[]] =>
    isUtf8(bytes) ? [Buffer.from(bytes).toString('utf8'), needles] : [ofBytes(bytes), inBytes];
  const contains = (input: Uint8Array | string): boolean => {
    if (needles.length === 0) return false;
    const [haystack, all] = typeof input === 'string' ? [input, needles] : spelt(input);
    return has(haystack, all);
  };
  const text = (input: string): string => replace(input, needles);
  // A key that holds a quotation mark can spread over keys and values of a JSON text: there the whole counts.
  const spreading = needles.filter(({ form }) => form.includes('"'));
  const inValue = (value: string): string =>
    isJson(value) ? replace(inStrings(value, inValue), spreading) : text(value);
  return {
    text,
    json(input) {
      if (!contains(input)) return input;
      return parses(input) ? inStrings(input, inValue) : text(input);
    },
    contains,
    bytes(input) {
      if (!contains(input)) return input;
      const [haystack, all] = spelt(input);
      return Buffer.from(replace(haystack, all), all === needles ? 'utf8' : 'latin1');
    },
    get count() {
      return count;
    },
  };
}

/** Objects and arrays; a bare word or number is text. */
function isJson(text: string): boolean {
  return /^\s*[[{]/.test(text) && parses(text);
}

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Applies `change` to every string of a JSON text except its keys. A string that does not change keeps its escapes. */
function inStrings(json: string, change: (value: string) => string): string {
  let out = '';
  let copied = 0;
  for (let at = json.indexOf('"'); at >= 0; at = json.indexOf('"', at)) {
    const start = at++;
    while (at < json.length && json[at] !== '"') at += json[at] === '\\' ? 2 : 1;
    at++;
    let next = at;
    while (' \t\r\n'.includes(json[next] ?? 'x')) next++;
    if (json[next] === ':') continue;
    const value = JSON.parse(json.slice(start, at)) as string;
    const changed = change(value);
    if (changed === value) continue;
    out += json.slice(copied, start) + JSON.stringify(changed);
    copied = at;
  }
  return out + json.slice(copied);
}

const latin1 = (text: string): string => Buffer.from(text).toString('latin1');
const ofBytes = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');

/** Cheap, and enough for a form that cannot be broken; of one that can, only that it may be there. */
const isIn = (text: string, { form, broken }: Needle): boolean =>
  broken ? broken.parts.some((part) => text.includes(part)) : text.includes(form);

/** The places of a needle in shown text. */
function placesOf(text: string, { shown: form, placeholder: by, broken }: Needle): Found[] {
  if (broken)
    return broken.parts.some((part) => text.includes(part)) ? matchesOf(text, broken.pattern, by) : [];
  const places: Found[] = [];
  if (form === '') return places;
  for (let at = text.indexOf(form); at >= 0; at = text.indexOf(form, at + form.length))
    places.push({ start: at, end: at + form.length, by });
  return places;
}

const matchesOf = (text: string, pattern: RegExp, by: string): Found[] =>
  Array.from(text.matchAll(pattern), ({ index, 0: found }) => ({
    start: index,
    end: index + found.length,
    by,
  }));

function needleOf(form: string, placeholder: string, broken: Needle['broken'] = null): Needle {
  const seen = shown(form);
  return { form, shown: seen.length >= SHORTEST ? seen : '', placeholder, broken };
}

function needlesOf(value: string, placeholder: string): Needle[] {
  const plain = new Set([value, value.trim()].flatMap((v) => [v, ...percentEncoded(v)]));
  const spelt = [...plain]
    .filter((form) => form.length >= SHORTEST)
    .map((form) => needleOf(form, placeholder));
  const encoded = base64Cores(value).filter((form) => !plain.has(form));
  return [...spelt, ...encoded.map((form) => needleOf(form, placeholder, brokenInto(form)))];
}

/** The forms as JavaScript writes them, as everybody else does (who encode !'()* too), with small hexadecimal digits, and in a form. */
function percentEncoded(value: string): string[] {
  const usual = encodeURIComponent(value.toWellFormed());
  const strict = usual.replaceAll(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
  return [usual, strict].flatMap((form) => {
    const small = form.replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase());
    return [form, small, form.replaceAll('%20', '+'), small.replaceAll('%20', '+')];
  });
}

/** Inside a longer base64 text a secret can start at any of three bit offsets; the characters at the seams belong to its neighbours. */
function base64Cores(value: string): string[] {
  const cores = [0, 1, 2].flatMap((offset) => {
    const encoded = Buffer.concat([Buffer.alloc(offset), Buffer.from(value)]).toString('base64');
    const skip = offset === 0 ? 0 : offset + 1;
    const core = encoded
      .replaceAll('=', '')
      .slice(skip, (Buffer.byteLength(value) + offset) % 3 === 0 ? undefined : -1);
    return [core, core.replaceAll('+', '-').replaceAll('/', '_')];
  });
  return [...new Set(cores)].filter((core) => core.length >= SHORTEST);
}

/** Lines are hardly ever shorter than this. */
const PART = 12;
/** A line break, also as one or more levels of JSON write it, and the indentation of the next line. */
const BREAK = String.raw`(?:\s|\\+[rnt])*`;

function brokenInto(core: string): Needle['broken'] {
  if (core.length < 2 * PART) return null;
  const letters = [...core].map((c) => (c === '+' || c === '/' ? `\\${c}` : c));
  return {
    parts: [core.slice(0, PART), core.slice(PART, 2 * PART)],
    pattern: new RegExp(letters.join(BREAK), 'g'),
  };
}

/*
 * Keys that we did not load are found by their shape. Text from a provider loses everything that looks like a key. Findings in text that is about
 * to be published are only reported, so those shapes are exact.
 */

const LOOKS_LIKE_KEY =
  /\b(sk|pk|rk|gsk|xai|AIza)[-_][A-Za-z0-9_*.-]{6,}|\bAIza[A-Za-z0-9_-]{10,}|Bearer\s+[^\s"',]+/g;

/** Prefixes are the providers' own; lengths keep words and test fixtures out where they can. */
export const PUBLISHED_SHAPES: readonly (readonly [kind: string, shape: RegExp])[] = [
  ['OpenAI or OpenRouter key', /\bsk-(?:proj-|or-v1-|svcacct-)?[A-Za-z0-9_-]{32,}/],
  ['Anthropic key', /\bsk-ant-[A-Za-z0-9_-]{32,}/],
  ['GitHub token', /\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,})/],
  ['Hugging Face token', /\bhf_[A-Za-z0-9]{34,}/],
  ['AWS access key', /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/],
  ['Google API key', /\bAIza[0-9A-Za-z_-]{35}\b/],
  ['Slack token', /\bxox[abprs]-[0-9A-Za-z-]{20,}/],
  ['private key', /-----BEGIN (?:RSA |EC |OPENSSH |DSA )?PRIVATE KEY-----/],
  ['credentials in a URL', /\bhttps?:\/\/[^\s/:@'"]{1,64}:[^\s/@'"]{8,}@/],
];

const PREFIX = /^(?:sk|pk|rk|gsk|xai|AIza)[-_]/;
/** `sunday`, `Content-Type`, `POSTGRES_DB2`, `20261122`: no longer than words are, with a few digits behind. */
const WORD = /^(?:[A-Z]?[a-z]{1,16}|[A-Z]{1,16})?\d{0,8}$/;
const LONG = 20;
const MANY_WORDS = 32;
/** A private key has some thousand characters; a text that begins like one is one. */
const LONGEST_KEY = 10_000;
/** Bits a character: random hexadecimal digits of that length have about 3.4. */
const ENTROPY = 3;

/** Words, numbers, or several of them. */
const isOfWords = (value: string): boolean => value.split(/[-_. ]/).every((part) => WORD.test(part));

/** A value that other texts hold by chance: few words, and nothing that a provider made. */
export const isOrdinary = (value: string): boolean =>
  value.length < LONG && isOfWords(value) && !looksLikeKey(value);

/**
 * A key as providers make them, or at least 20 characters with high entropy that are not words, a path or a plain address. So many
 * words in a row that no text holds them by chance are one as well.
 */
export function looksLikeKey(given: string): boolean {
  const value = given.slice(0, LONGEST_KEY);
  if (PUBLISHED_SHAPES.some(([, shape]) => shape.test(value))) return true;
  if (PREFIX.test(value)) return value.length >= 16;
  if (value.length < LONG || /^(?:[.~]{0,2}\/|\w+:\/\/)/.test(value)) return false;
  return entropyOf(value) >= ENTROPY && (value.length >= MANY_WORDS || !isOfWords(value));
}

/** Shannon's, in bits a character. */
function entropyOf(text: string): number {
  const counts = new Map<string, number>();
  for (const char of text) counts.set(char, (counts.get(char) ?? 0) + 1);
  const total = [...text].length;
  return [...counts.values()].reduce((sum, n) => sum - (n / total) * Math.log2(n / total), 0);
}

export type Redact = (text: string) => string;

/** Error bodies like to repeat the key they refused. */
export function redactor(secrets: readonly string[]): Redact {
  // Short strings would tear holes into every text; no provider's key is that short.
  const known = secrets.filter((secret) => secret.length >= 6).sort((a, b) => b.length - a.length);
  const needles = known.map((form) => needleOf(form, '[key]'));
  return (text) => {
    const plain = known.reduce((out, secret) => out.replaceAll(secret, '[key]'), text);
    return replaceShown(plain.replace(LOOKS_LIKE_KEY, '[key]'), false, (text) => [
      ...needles.flatMap((needle) => placesOf(text, needle)),
      ...matchesOf(text, LOOKS_LIKE_KEY, '[key]'),
    ]);
  };
}

const SNIPPET = 200;

/** One line of at most 200 characters. */
export function snippet(text: string, redact: Redact): string {
  const line = redact(text).replace(/\s+/g, ' ').trim();
  return line.length > SNIPPET ? `${line.slice(0, SNIPPET).toWellFormed()}…` : line;
}
