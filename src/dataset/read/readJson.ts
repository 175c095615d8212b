/** Rows of JSON files, each with the line it begins on. Problems are collected, not thrown: all are shown at once. */

import { isRecord } from '../../base/isRecord.ts';
import { errorText } from '../../base/text/errorText.ts';
import { jsonChildren, jsonErrorLine, lineAt } from '../../base/text/jsonChildren.ts';
import { jsonLines, type RawEntry, type RawProblem } from './jsonLines.ts';

export interface RawRows {
  readonly entries: readonly RawEntry[];
  readonly problems: readonly RawProblem[];
}

const decoder = new TextDecoder('utf-8', { fatal: true });

function readJsonLines(bytes: Uint8Array): RawRows {
  const entries: RawEntry[] = [];
  const problems: RawProblem[] = [];
  for (const found of jsonLines([bytes])) {
    if ('message' in found) problems.push(found);
    else entries.push(found);
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
  let children = jsonChildren(text, opening, lineAt(text, opening));
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
