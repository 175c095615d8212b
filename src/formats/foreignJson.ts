/** JSON as other tools write it, with the line of every value for error messages. */
import { isUtf8 } from 'node:buffer';
import type { z } from 'zod';
import { cutNesting } from '../base/plausible.ts';
import { jsonChildren, jsonErrorLine, lineAt } from '../base/text/jsonChildren.ts';

/** A file of another kind is not damaged; a file of this kind that cannot be read is. */
type JsonFault = 'not_json' | 'other_kind' | 'damaged';

/** What a reader gives: plain data, or why the file holds none. */
export type Read<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly fault: JsonFault; readonly message: string };

export const refused = (fault: JsonFault, message: string): Read<never> => ({ ok: false, fault, message });

interface ForeignJson {
  readonly value: unknown;
  /** Equal to the file's text line by line. */
  readonly text: string;
}

export class ForeignTextError extends Error {
  override readonly name = 'ForeignTextError';
  readonly line: number;
  constructor(message: string, line: number) {
    super(message);
    this.line = line;
  }
}

/** A file's text, or its bytes, which have to be UTF-8. */
export type RawBody = string | Uint8Array;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const LF = 0x0a;

/** Throws ForeignTextError: other characters in the place of wrong bytes would change a patch without a word. */
export function textOfBody(body: RawBody): string {
  if (typeof body === 'string') return body;
  try {
    return utf8.decode(body);
  } catch {
    const line = lineOfWrongByte(body);
    throw new ForeignTextError(`line ${line} is not UTF-8`, line);
  }
}

/** Bytes that are looked at together, up to the end of their last line. */
const BLOCK = 65_536;

function lineOfWrongByte(bytes: Uint8Array): number {
  let line = 1;
  for (let start = 0; start < bytes.length; ) {
    const found = bytes.indexOf(LF, start + BLOCK);
    const end = found < 0 ? bytes.length : found + 1;
    if (!isUtf8(bytes.subarray(start, end))) return line + wholeLines(bytes.subarray(start, end));
    for (let at = start; at < end; at++) if (bytes[at] === LF) line++;
    start = end;
  }
  return 1;
}

/** How many lines come before the one with the wrong byte. */
function wholeLines(bytes: Uint8Array): number {
  for (let lines = 0, start = 0; ; lines++) {
    const end = bytes.indexOf(LF, start);
    if (end < 0 || !isUtf8(bytes.subarray(start, end))) return lines;
    start = end + 1;
  }
}

/** Python's json writes NaN and Infinity where it has them, in costs and scores; JSON has no such words. */
const PYTHON_WORD = /"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?$)|-?\bInfinity\b|\bNaN\b/gs;

/** Throws ForeignTextError. Skips a byte order mark; reads NaN and Infinity as null. */
export function parseForeignJson(body: RawBody): ForeignJson {
  const all = textOfBody(body);
  const text = all.startsWith('\uFEFF') ? all.slice(1) : all;
  try {
    return { value: JSON.parse(text), text };
  } catch (error) {
    if (!/NaN|Infinity/.test(text)) throw notJson(error, text);
  }
  const plain = text.replace(PYTHON_WORD, (found) => (found.startsWith('"') ? found : 'null'));
  try {
    return { value: JSON.parse(plain), text: plain };
  } catch (error) {
    throw notJson(error, plain);
  }
}

const notJson = (error: unknown, text: string): ForeignTextError =>
  new ForeignTextError((error as Error).message, jsonErrorLine(error, text));

interface JsonEntry {
  readonly value: unknown;
  readonly line: number;
  /** Of an object; equal keys give an entry each. */
  readonly key?: string;
}

/** The values directly inside an array or object. */
export function jsonEntries({ text }: ForeignJson): JsonEntry[] {
  const opening = text.search(/[[{]/);
  return jsonChildren(text, opening, lineAt(text, opening)).map(({ start, end, line, key }) => ({
    value: JSON.parse(text.slice(start, end)),
    line,
    ...(key !== undefined && { key }),
  }));
}

/** The line where the value at a path begins, or the nearest value around it. */
function lineOfPath({ text }: ForeignJson, path: readonly PropertyKey[]): number {
  let from = text.search(/\S/);
  let line = lineAt(text, from);
  for (const step of path) {
    if (text[from] !== '{' && text[from] !== '[') break;
    const children = jsonChildren(text, from, line);
    const child = typeof step === 'number' ? children[step] : children.findLast((c) => c.key === step);
    if (!child) break;
    [from, line] = [child.start, child.line];
  }
  return line;
}

/** `line 12: resolved_ids.3: Invalid input: expected string, received number` */
function issueText(json: ForeignJson, error: z.ZodError): string {
  const [issue] = error.issues;
  if (!issue) return 'it cannot be read';
  const place = issue.path.length > 0 ? `${issue.path.join('.')}: ` : '';
  return `line ${lineOfPath(json, issue.path)}: ${place}${issue.message}`;
}

/** `isKind` tells a file of another kind from a damaged one. */
export function readForeign<T>(
  body: RawBody,
  schema: z.ZodType<T>,
  isKind: (value: unknown) => boolean,
  otherKind: string,
): Read<T> {
  let json: ForeignJson;
  try {
    json = parseForeignJson(body);
  } catch (error) {
    if (!(error instanceof ForeignTextError)) throw error;
    return refused('not_json', `it is not JSON: ${error.message}`);
  }
  if (!isKind(json.value)) return refused('other_kind', otherKind);
  const parsed = schema.safeParse(cutNesting(json.value).value);
  return parsed.success
    ? { ok: true, value: parsed.data }
    : refused('damaged', issueText(json, parsed.error));
}
