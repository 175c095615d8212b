/** Rows of JSON Lines and JSON files, each with the line it begins on. Problems are collected, not thrown: all are shown at once. */

import { isRecord } from '../../base/isRecord.ts';
import { errorText } from '../../base/text/errorText.ts';
import { jsonChildren, jsonErrorLine } from '../../base/text/jsonChildren.ts';

interface RawEntry {
  /** Line of the text, or row number of a table; from 1. */
  readonly line: number;
  readonly row: unknown;
  /** Key of an object keyed by id. */
  readonly key?: string;
}
interface RawProblem {
  readonly line: number;
  readonly message: string;
}
export interface RawRows {
  readonly entries: readonly RawEntry[];
  readonly problems: readonly RawProblem[];
}

const decoder = new TextDecoder('utf-8', { fatal: true });

/** A file with more of them is no dataset, and to read on would take minutes. */
const MOST_PROBLEMS = 1000;

/** Splits at LF alone: U+2028 is legal inside a JSON string, and a lone CR is not a line end here. CRLF ends with space to JSON. */
function readJsonLines(bytes: Uint8Array): RawRows {
  const entries: RawEntry[] = [];
  const problems: RawProblem[] = [];
  let line = 0;
  for (let start = 0; start < bytes.length; ) {
    line++;
    const lf = bytes.indexOf(0x0a, start);
    const end = lf < 0 ? bytes.length : lf;
    const from = start;
    start = end + 1;
    if (end === from) continue;
    try {
      const text = decoder.decode(bytes.subarray(from, end)).trim(); // trim also takes a BOM
      if (text !== '') entries.push({ line, row: JSON.parse(text) });
    } catch (error) {
      const utf8 = error instanceof SyntaxError ? 'not valid JSON' : 'not valid UTF-8';
      problems.push({ line, message: `${utf8}: ${errorText(error)}` });
      if (problems.length === MOST_PROBLEMS) {
        problems.push({ line, message: `${MOST_PROBLEMS} lines cannot be read; the rest was not looked at` });
        break;
      }
    }
  }
  return { entries, problems };
}

/** A dump of the datasets server wraps each row: `{rows: [{row_idx, row: {…}}]}`. */
const unwrapped = (row: unknown): unknown => (isRecord(row) && isRecord(row.row) ? row.row : row);

/** An array of rows, an object keyed by id, one row, or a dump of the datasets server. */
function entriesOf(text: string, value: unknown): RawRows {
  if (typeof value !== 'object' || value === null)
    return {
      entries: [],
      problems: [{ line: 1, message: 'the file holds neither a list nor an object of instances' }],
    };
  if (isRecord(value) && typeof value.instance_id === 'string')
    return { entries: [{ line: 1, row: value }], problems: [] };
  const opening = text.search(/[[{]/);
  let children = jsonChildren(text, opening, text.slice(0, opening).split('\n').length);
  const rows = isRecord(value) && Array.isArray(value.rows) && children.find((child) => child.key === 'rows');
  if (rows) children = jsonChildren(text, rows.start, rows.line);
  return {
    entries: children.map(({ key, line, start, end }) => ({
      line,
      row: unwrapped(JSON.parse(text.slice(start, end))),
      ...(key !== undefined && { key }),
    })),
    problems: [],
  };
}

/** JSON or JSON Lines, told apart by what is inside: people give both either suffix. */
export function readJson(bytes: Uint8Array, expected: 'json' | 'jsonl'): RawRows {
  let text: string;
  try {
    text = decoder.decode(bytes).trimStart();
  } catch {
    return readJsonLines(bytes); // names the line that is not UTF-8
  }
  if (expected === 'jsonl' && !text.startsWith('[')) return readJsonLines(bytes);
  const original = new TextDecoder('utf-8').decode(bytes); // without the BOM, with every line break
  try {
    return entriesOf(original, JSON.parse(text));
  } catch (error) {
    const lines = readJsonLines(bytes);
    if (
      lines.problems.length === 0 ||
      (expected === 'json' && text.split('\n', 1)[0]?.trimEnd().endsWith('}'))
    )
      return lines;
    return {
      entries: [],
      problems: [{ line: jsonErrorLine(error, text), message: `not valid JSON: ${errorText(error)}` }],
    };
  }
}
