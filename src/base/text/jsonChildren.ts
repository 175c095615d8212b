import { errorText } from './errorText.ts';

/** Where the values of a JSON text stand: for messages that name a line, and for rows that share a key. */

interface JsonChild {
  readonly key?: string;
  readonly line: number;
  /** The beginning of its value in the text. */
  readonly start: number;
  readonly end: number;
}

/**
 * The values directly inside the array or object that opens at `from`, in the order of the text. `JSON.parse` alone would lose where
 * they stand, and of two equal keys the first. The text is known to be valid JSON.
 */
export function jsonChildren(text: string, from: number, firstLine: number): JsonChild[] {
  const children: JsonChild[] = [];
  const isArray = text[from] === '[';
  let line = firstLine;
  let depth = 0;
  let key: string | undefined;
  let start = -1;
  let startLine = line;
  const close = (end: number) => {
    if (start >= 0) children.push({ ...(key !== undefined && { key }), line: startLine, start, end });
    start = -1;
  };
  for (let i = from; i < text.length; i++) {
    const c = text[i]!;
    if (c === '\n') line++;
    if (c === ' ' || c === '\n' || c === '\r' || c === '\t') continue;
    const structural = depth === 1 && (c === ',' || c === ':' || c === ']' || c === '}');
    const awaitsKey = depth === 1 && !isArray && key === undefined;
    if (depth === 1 && !structural && !awaitsKey && start < 0) [start, startLine] = [i, line];
    if (c === '"') {
      const opened = i++;
      while (text[i] !== '"') i += text[i] === '\\' ? 2 : 1;
      if (awaitsKey) key = JSON.parse(text.slice(opened, i + 1)) as string;
    } else if (c === '{' || c === '[') depth++;
    else if (c === '}' || c === ']') {
      if (depth === 1) close(i);
      depth--;
      if (depth === 0) break;
    } else if (depth === 1 && c === ',') {
      close(i);
      key = undefined;
    }
  }
  return children;
}

/** The line of a syntax error: V8 names its position in the message, and none where the text ends too early. */
export function jsonErrorLine(error: unknown, text: string): number {
  const position = /position (\d+)/.exec(errorText(error))?.[1];
  return lineAt(text, position === undefined ? text.length : Number(position));
}

/** The line of a place in a text; the first is 1. */
export function lineAt(text: string, position: number): number {
  let line = 1;
  for (let at = 0; at < position; at++) if (text.charCodeAt(at) === 0x0a) line++;
  return line;
}
