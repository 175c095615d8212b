/**
 * Replaces every secret we loaded where it would be written: exact values in plain, base64, URL-encoded and JSON-escaped form.
 * It searches for values, not patterns: one that we loaded is never missed. Those that we did not load are found by their shape, at the end of this file.
 */

import { isUtf8 } from 'node:buffer';
import { asciiOnly, unitTable } from '../replaceUnits.ts';
import { DANGERS } from './inert.ts';

// Text as a person may come to see it: without escape sequences and characters that display takes out, and with literal `\u00e9` and `\xe9`
// as their characters. What is found there is replaced in the text itself, with all that stood between.

const RANGES = DANGERS.flatMap(({ ranges }) => ranges).filter(([first]) => first !== 0xd800);
const UNSEEN = unitTable(RANGES.filter(([first]) => first <= 0xffff));
const UNSEEN_PAIRS = RANGES.filter(([first]) => first > 0xffff);

const [ESC, BACKSLASH, LINE_FEED, BELL] = [0x1b, 0x5c, 0x0a, 0x07];
const STRING_OPENERS = new Set([...']PX^_'].map((char) => char.charCodeAt(0)));

/** Of those that JSON writes shorter, the ones that display takes out. */
const SHORT_LITERALS: Readonly<Record<string, number>> = { b: 0x08, f: 0x0c, r: 0x0d };

interface Shown {
  readonly units: Uint16Array;
  /** For each unit, where it began in the text; one entry more, for the end. */
  readonly from: Uint32Array;
  readonly length: number;
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

/** Backslashes of any number may stand before it: each level of JSON doubles them. */
function withoutLiterals(text: string): Shown {
  const units = new Uint16Array(text.length);
  const from = new Uint32Array(text.length + 1);
  let length = 0;
  const add = (unit: number, at: number) => {
    units[length] = unit;
    from[length++] = at;
  };
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit !== BACKSLASH) {
      add(unit, at);
      continue;
    }
    const start = at;
    while (text.charCodeAt(at + 1) === BACKSLASH) at++;
    const kind = text[at + 1];
    const digits = kind === 'u' ? 4 : kind === 'x' ? 2 : 0;
    const code = digits === 0 ? (SHORT_LITERALS[kind ?? ''] ?? -1) : hexAt(text, at + 2, digits);
    if (code < 0) for (let i = start; i <= at; i++) add(BACKSLASH, i);
    else {
      add(code, start);
      at += 1 + digits;
    }
  }
  from[length] = text.length;
  return { units, from, length };
}

const isBetween = (unit: number, first: number, last: number): boolean => unit >= first && unit <= last;

/** Where the escape sequence ends that begins at `at` (ECMA-48, as `stripEscapes` reads it); `at` where none begins. */
function sequenceEnd(units: Uint16Array, at: number, length: number): number {
  const unit = units[at]!;
  const seven = unit === ESC;
  if (!seven && !isBetween(unit, 0x90, 0x9f)) return at;
  let next = at + (seven ? 2 : 1);
  const opener = seven && at + 1 < length ? units[at + 1]! : 0;
  if (opener === 0x5b || unit === 0x9b) {
    while (next < length && isBetween(units[next]!, 0x30, 0x3f)) next++;
    while (next < length && isBetween(units[next]!, 0x20, 0x2f)) next++;
    return next < length && isBetween(units[next]!, 0x40, 0x7e) ? next + 1 : next;
  }
  if (STRING_OPENERS.has(opener) || (!seven && unit !== 0x9c)) {
    for (; next < length; next++) {
      const inside = units[next]!;
      if (inside === LINE_FEED) return next;
      if (inside === BELL || inside === 0x9c) return next + 1;
      if (inside === ESC) return units[next + 1] === BACKSLASH && next + 1 < length ? next + 2 : next;
      if (isBetween(inside, 0x90, 0x9f)) return next;
    }
    return next;
  }
  if (!seven) return at + 1;
  next = at + 1;
  while (next < length && isBetween(units[next]!, 0x20, 0x2f)) next++;
  return next < length && isBetween(units[next]!, 0x30, 0x7e) ? next + 1 : next;
}

/** In place: what is kept is never longer. */
function withoutUnseen({ units, from, length }: Shown): Shown {
  let kept = 0;
  for (let at = 0; at < length; at++) {
    const end = sequenceEnd(units, at, length);
    if (end > at) {
      at = end - 1;
      continue;
    }
    const unit = units[at]!;
    if (UNSEEN[unit] === 1) continue;
    if (isBetween(unit, 0xd800, 0xdbff) && at + 1 < length) {
      const code = (unit - 0xd800) * 0x400 + (units[at + 1]! - 0xdc00) + 0x1_0000;
      if (UNSEEN_PAIRS.some(([first, last]) => isBetween(code, first, last))) {
        at++;
        continue;
      }
    }
    units[kept] = unit;
    from[kept++] = from[at]!;
  }
  from[kept] = from[length]!;
  return { units, from, length: kept };
}

const CLASS = RANGES.map(([first, last]) => `\\u{${first.toString(16)}}-\\u{${last.toString(16)}}`).join('');
/** Most texts have nothing of it. */
const DISGUISE = new RegExp(`[${CLASS}]|\\\\[uxbfr]`, 'u');

/** Undefined where it is the text itself. */
function shownOf(text: string): (Shown & { readonly text: string }) | undefined {
  if (!DISGUISE.test(text)) return undefined;
  const shown = withoutUnseen(withoutLiterals(text));
  const bytes = Buffer.from(shown.units.buffer, 0, 2 * shown.length);
  return { ...shown, text: bytes.toString('utf16le') };
}

export function shownIncludes(text: string, isIn: (shown: string) => boolean): boolean {
  const shown = shownOf(text);
  return shown !== undefined && isIn(shown.text);
}

interface Found {
  readonly start: number;
  readonly end: number;
  readonly by: string;
}

/** `find` gets the shown text; where two findings overlap, the earlier one of its list counts, and the other goes with it. */
export function replaceShown(text: string, find: (shown: string) => readonly Found[]): string {
  const shown = shownOf(text);
  const found = shown ? find(shown.text) : [];
  if (!shown || found.length === 0) return text;
  let out = '';
  let copied = 0;
  for (const { start, end, by } of found.toSorted((a, b) => a.start - b.start)) {
    const begin = shown.from[start]!;
    const until = shown.from[end - 1]! + 1;
    // A literal is longer than its character; up to the next one that is shown, everything goes with it.
    const whole = text.charCodeAt(until - 1) === BACKSLASH ? shown.from[end]! : until;
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
  readonly placeholder: string;
  /** For base64, which tools break into lines: two parts, one of which survives any line break, and a pattern that allows breaks. */
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
  const inBytes = needles.map((n) => ({ ...n, form: latin1(n.form), placeholder: latin1(n.placeholder) }));
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
    return replaceShown(out, (shown) => {
      const places = all.flatMap((needle) => placesOf(shown, needle));
      count += places.length;
      return places;
    });
  };
  const has = (haystack: string, all: readonly Needle[]): boolean =>
    all.some((n) => isIn(haystack, n) && (n.broken === null || haystack.search(n.broken.pattern) >= 0));
  /** Bytes that are no UTF-8 are searched as Latin-1. */
  const spelt = (bytes: Uint8Array): readonly [string, readonly Needle[]] =>
    isUtf8(bytes) ? [Buffer.from(bytes).toString('utf8'), needles] : [ofBytes(bytes), inBytes];
  const contains = (input: Uint8Array | string): boolean => {
    if (needles.length === 0) return false;
    const [haystack, all] = typeof input === 'string' ? [input, needles] : spelt(input);
    return has(haystack, all) || shownIncludes(haystack, (shown) => has(shown, all));
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

function placesOf(text: string, needle: Needle): Found[] {
  if (!isIn(text, needle)) return [];
  const { form, placeholder: by, broken } = needle;
  if (broken) return matchesOf(text, broken.pattern, by);
  const places: Found[] = [];
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

function needlesOf(value: string, placeholder: string): Needle[] {
  const plain = new Set(spellings(value));
  const needles: Needle[] = [...plain].map((form) => ({ form, placeholder, broken: null }));
  for (const form of base64Cores(value))
    if (!plain.has(form)) needles.push({ form, placeholder, broken: brokenInto(form) });
  return needles;
}

/** JSON inside JSON inside JSON: a tool call's arguments, in a message, in a row of the record. */
const JSON_LEVELS = 4;

function spellings(value: string): string[] {
  const values = [value, value.trim(), value.replaceAll(/\r?\n/g, '\r\n')];
  const forms = values.flatMap((v) => [v, ...percentEncoded(v)]);
  const json = inJson(value);
  const escaped = [...values, json.replaceAll('/', '\\/'), asciiOnly(json)].flatMap((form) => {
    const levels = [form];
    for (let level = 0; level < JSON_LEVELS; level++) levels.push(inJson(levels.at(-1)!));
    return levels;
  });
  return [...forms, ...escaped].filter((form) => form.length >= SHORTEST);
}

const inJson = (text: string): string => JSON.stringify(text).slice(1, -1);

/** As JavaScript writes it, as everybody else does (who encode !'()* too), with small hexadecimal digits, and in a form. */
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
 * Keys that we did not load are found by their shape. Text from a provider loses everything that looks like a key. Findings in text that is about to be published are only reported, so those shapes are exact.
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
/** A private key has some thousand characters; what begins like one is one. */
const LONGEST_KEY = 10_000;
/** Bits a character: random hexadecimal digits of that length have about 3.4. */
const ENTROPY = 3;

/** Words, numbers, or several of them. */
const isOfWords = (value: string): boolean => value.split(/[-_. ]/).every((part) => WORD.test(part));

/** What other texts hold by chance: few words, and nothing that a provider made. */
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
  const needles = known.map((form): Needle => ({ form, placeholder: '[key]', broken: null }));
  return (text) => {
    const plain = known.reduce((out, secret) => out.replaceAll(secret, '[key]'), text);
    return replaceShown(plain.replace(LOOKS_LIKE_KEY, '[key]'), (shown) => [
      ...needles.flatMap((needle) => placesOf(shown, needle)),
      ...matchesOf(shown, LOOKS_LIKE_KEY, '[key]'),
    ]);
  };
}

const SNIPPET = 200;

/** One line of at most 200 characters. */
export function snippet(text: string, redact: Redact): string {
  const line = redact(text).replace(/\s+/g, ' ').trim();
  return line.length > SNIPPET ? `${line.slice(0, SNIPPET).toWellFormed()}…` : line;
}
