/** Text as Python's `json.dumps(value, indent=N)` writes it, so that reports of ours and of the official harness compare byte by byte. */

/** Python escapes everything outside printable ASCII, each UTF-16 unit by itself. */
const quoted = (text: string): string =>
  JSON.stringify(text).replace(
    /[\x7f-\uffff]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

function write(value: unknown, indent: number, depth: number): string {
  if (typeof value === 'string') return quoted(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value ?? null);
  const inner = `\n${' '.repeat(indent * (depth + 1))}`;
  const outer = `\n${' '.repeat(indent * depth)}`;
  const list = Array.isArray(value);
  const entries: [string, unknown][] = list
    ? value.map((item) => ['', item])
    : value instanceof Map
      ? [...(value as Map<string, unknown>)]
      : Object.entries(value).filter(([, item]) => item !== undefined);
  if (entries.length === 0) return list ? '[]' : '{}';
  const parts = entries.map(
    ([key, item]) => (list ? '' : `${quoted(key)}: `) + write(item, indent, depth + 1),
  );
  return `${list ? '[' : '{'}${inner}${parts.join(`,${inner}`)}${outer}${list ? ']' : '}'}`;
}

/** A Map keeps the order of keys that look like numbers, which an object would not. */
export const pythonJson = (value: unknown, indent = 4): string => write(value, indent, 0);

/** Order of Python's `sorted` on strings: by code point. */
export function byCodePoint(a: string, b: string): number {
  if (a === b) return 0;
  const [x, y] = [[...a], [...b]];
  for (let i = 0; i < Math.min(x.length, y.length); i++) {
    const difference = x[i]!.codePointAt(0)! - y[i]!.codePointAt(0)!;
    if (difference !== 0) return difference;
  }
  return x.length - y.length;
}
