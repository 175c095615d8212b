/**
 * Replaces every secret we loaded where it would be written: exact values in plain, base64, URL-encoded and JSON-escaped form.
 * It searches for values, not patterns: a secret that we did not load is unknown, and one that we did is never missed.
 */

import { asciiOnly } from './asciiOnly.ts';

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
  // Bytes are searched as Latin-1, one character a byte, so the needles are spelt in the same way.
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
    return out;
  };
  const contains = (input: Uint8Array | string): boolean => {
    if (needles.length === 0) return false;
    const [haystack, all] = typeof input === 'string' ? [input, needles] : [ofBytes(input), inBytes];
    return all.some(
      (n) => isIn(haystack, n) && (n.broken === null || haystack.search(n.broken.pattern) >= 0),
    );
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
    bytes: (input) => (contains(input) ? Buffer.from(replace(ofBytes(input), inBytes), 'latin1') : input),
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
