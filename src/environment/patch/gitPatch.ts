/**
 * Writes a patch in git's format from two versions of files, for images that have no git to do it. `git apply` gives the second tree
 * from the first, byte for byte; that is what its tests check. Lines are handled as latin1 text, so bytes stay bytes.
 */
import { createHash } from 'node:crypto';
import { deflateSync } from 'node:zlib';

export interface FileVersion {
  /** 100644, 100755 or 120000 (a link, whose content is its target). */
  readonly mode: string;
  readonly content: Buffer;
}

const CONTEXT = 3;
const BINARY_PROBE = 8000;
/** Beyond this many edits a shorter patch is not worth the search: the changed middle is replaced whole. */
const MAX_EDITS = 800;
const NULL_ID = '0'.repeat(40);
const BASE85 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~';
const BASE85_LINE = 52;

const blobId = (content: Buffer) =>
  createHash('sha1').update(`blob ${content.length}\0`).update(content).digest('hex');
const isBinary = (content: Buffer) => content.subarray(0, BINARY_PROBE).includes(0);

/** As core.quotePath: control characters, quotes and bytes beyond ASCII are escaped inside double quotes. */
export function quotePath(prefix: string, path: string): string {
  const escapes: Record<string, string> = { '\n': '\\n', '\t': '\\t', '\r': '\\r', '"': '\\"', '\\': '\\\\' };
  let quoted = '';
  for (const byte of Buffer.from(prefix + path)) {
    const char = String.fromCharCode(byte);
    quoted +=
      escapes[char] ?? (byte < 0x20 || byte >= 0x7f ? `\\${byte.toString(8).padStart(3, '0')}` : char);
  }
  return quoted === prefix + path ? quoted : `"${quoted}"`;
}

function base85(data: Buffer): string {
  let text = '';
  for (let at = 0; at < data.length; at += BASE85_LINE) {
    const line = data.subarray(at, at + BASE85_LINE);
    text +=
      line.length <= 26 ? String.fromCharCode(64 + line.length) : String.fromCharCode(96 + line.length - 26);
    const padded = Buffer.alloc(Math.ceil(line.length / 4) * 4);
    line.copy(padded);
    for (let word = 0; word < padded.length; word += 4) {
      let value = padded.readUInt32BE(word);
      let digits = '';
      for (let i = 0; i < 5; i += 1) {
        digits = BASE85[value % 85]! + digits;
        value = Math.floor(value / 85);
      }
      text += digits;
    }
    text += '\n';
  }
  return text;
}

const literal = (content: Buffer) =>
  content.length === 0
    ? 'literal 0\nHcmV?d00001\n\n'
    : `literal ${content.length}\n${base85(deflateSync(content))}\n`;

/** Lines with their newline; the last may have none. */
const linesOf = (content: Buffer): string[] => content.toString('latin1').match(/[^\n]*\n|[^\n]+$/g) ?? [];

type Edit = readonly [kind: ' ' | '-' | '+', line: string];

/** Myers' shortest edit script, given up beyond MAX_EDITS. */
function shortestEdits(a: readonly string[], b: readonly string[]): Edit[] | undefined {
  const trace: Int32Array[] = [];
  const most = Math.min(a.length + b.length, MAX_EDITS);
  const offset = most + 1;
  const furthest = new Int32Array(2 * most + 3);
  for (let d = 0; d <= most; d += 1) {
    trace.push(furthest.slice(offset - d - 1, offset + d + 2));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && furthest[offset + k - 1]! < furthest[offset + k + 1]!);
      let x = down ? furthest[offset + k + 1]! : furthest[offset + k - 1]! + 1;
      let y = x - k;
      while (x < a.length && y < b.length && a[x] === b[y]) {
        x += 1;
        y += 1;
      }
      furthest[offset + k] = x;
      if (x >= a.length && y >= b.length) return backtrack(a, b, trace);
    }
  }
  return undefined;
}

function backtrack(a: readonly string[], b: readonly string[], trace: readonly Int32Array[]): Edit[] {
  const edits: Edit[] = [];
  let x = a.length;
  let y = b.length;
  for (let d = trace.length - 1; d >= 0; d -= 1) {
    const row = trace[d]!;
    const at = (k: number) => row[k + d + 1]!;
    const k = x - y;
    const down = k === -d || (k !== d && at(k - 1) < at(k + 1));
    const previous = down ? k + 1 : k - 1;
    const fromX = d === 0 ? 0 : at(previous);
    const fromY = d === 0 ? 0 : fromX - previous;
    while (x > fromX && y > fromY) {
      x -= 1;
      y -= 1;
      edits.push([' ', a[x]!]);
    }
    if (d === 0) break;
    if (down) edits.push(['+', b[--y]!]);
    else edits.push(['-', a[--x]!]);
  }
  return edits.reverse();
}

const LINE_END = 0x0a;

/** Where the last lines before `at` begin, as many as a hunk shows. */
function contextBefore(content: Buffer, at: number): number {
  let begin = at;
  for (let lines = 0; lines < CONTEXT && begin > 0; lines += 1)
    begin = begin < 2 ? 0 : content.lastIndexOf(LINE_END, begin - 2) + 1;
  return begin;
}

/** Where as many lines from `at` on end. */
function contextAfter(content: Buffer, at: number): number {
  let end = at;
  for (let lines = 0; lines < CONTEXT && end < content.length; lines += 1) {
    const lineEnd = content.indexOf(LINE_END, end);
    end = lineEnd < 0 ? content.length : lineEnd + 1;
  }
  return end;
}

function countLines(content: Buffer, until: number): number {
  let lines = 0;
  for (let at = 0; at < until; at += 1) if (content[at] === LINE_END) lines += 1;
  return lines;
}

/** How many bytes of whole lines two files share at their beginning and at their end. */
function sharedEnds(a: Buffer, b: Buffer): { start: number; end: number } {
  const shorter = Math.min(a.length, b.length);
  let same = 0;
  while (same < shorter && a[same] === b[same]) same += 1;
  const start = same === 0 ? 0 : a.lastIndexOf(LINE_END, same - 1) + 1;
  let end = 0;
  while (end < shorter - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const begins = (content: Buffer): boolean =>
    content.length - end === start || content[content.length - end - 1] === LINE_END;
  if (begins(a) && begins(b)) return { start, end };
  const lineEnd = a.indexOf(LINE_END, a.length - end);
  return { start, end: lineEnd < 0 ? 0 : a.length - lineEnd - 1 };
}

/** The lines that changed with those around them; `skipped` says how many come before. Only these are made into text: a file may be long. */
function editsOf(a: Buffer, b: Buffer): { edits: Edit[]; skipped: number } {
  const { start, end } = sharedEnds(a, b);
  const from = linesOf(a.subarray(start, a.length - end));
  const to = linesOf(b.subarray(start, b.length - end));
  const middle = shortestEdits(from, to) ?? [
    ...from.map((l): Edit => ['-', l]),
    ...to.map((l): Edit => ['+', l]),
  ];
  const first = contextBefore(a, start);
  const last = a.length - end;
  const same = (content: Buffer): Edit[] => linesOf(content).map((line) => [' ', line]);
  return {
    edits: [...same(a.subarray(first, start)), ...middle, ...same(a.subarray(last, contextAfter(a, last)))],
    skipped: countLines(a, first),
  };
}

function hunksOf({ edits, skipped }: ReturnType<typeof editsOf>): string {
  const changed = edits.flatMap(([kind], i) => (kind === ' ' ? [] : [i]));
  let text = '';
  let next = 0;
  let oldLine = skipped + 1;
  let newLine = skipped + 1;
  let done = 0;
  while (next < changed.length) {
    const first = Math.max(done, changed[next]! - CONTEXT);
    let last = changed[next]!;
    while (next + 1 < changed.length && changed[next + 1]! - last <= 2 * CONTEXT) {
      next += 1;
      last = changed[next]!;
    }
    next += 1;
    const until = Math.min(edits.length, last + CONTEXT + 1);
    for (const [kind] of edits.slice(done, first)) {
      if (kind !== '+') oldLine += 1;
      if (kind !== '-') newLine += 1;
    }
    const hunk = edits.slice(first, until);
    const oldCount = hunk.filter(([kind]) => kind !== '+').length;
    const newCount = hunk.filter(([kind]) => kind !== '-').length;
    const range = (line: number, count: number) => `${count === 0 ? line - 1 : line},${count}`;
    text += `@@ -${range(oldLine, oldCount)} +${range(newLine, newCount)} @@\n`;
    for (const [kind, line] of hunk)
      text += line.endsWith('\n') ? kind + line : `${kind}${line}\n\\ No newline at end of file\n`;
    oldLine += oldCount;
    newLine += newCount;
    done = until;
  }
  return text;
}

/** git ends a name that holds white space with a tab, so that the name's end can be seen. */
const label = (prefix: string, path: string) => quotePath(prefix, path) + (/\s/.test(path) ? '\t' : '');

function oneFile(path: string, before: FileVersion | undefined, after: FileVersion | undefined): string {
  // A file that became a link, or the other way round, is a deletion and a creation.
  if (before && after && (before.mode === '120000') !== (after.mode === '120000'))
    return oneFile(path, before, undefined) + oneFile(path, undefined, after);
  if (before && after && before.mode === after.mode && before.content.equals(after.content)) return '';
  let text = `diff --git ${quotePath('a/', path)} ${quotePath('b/', path)}\n`;
  if (!before) text += `new file mode ${after!.mode}\n`;
  else if (!after) text += `deleted file mode ${before.mode}\n`;
  else if (before.mode !== after.mode) text += `old mode ${before.mode}\nnew mode ${after.mode}\n`;
  const oldContent = before?.content ?? Buffer.alloc(0);
  const newContent = after?.content ?? Buffer.alloc(0);
  if (before && after && oldContent.equals(newContent)) return text;
  const sameMode = before && after && before.mode === after.mode ? ` ${after.mode}` : '';
  text += `index ${before ? blobId(oldContent) : NULL_ID}..${after ? blobId(newContent) : NULL_ID}${sameMode}\n`;
  if (oldContent.equals(newContent)) return text;
  if (isBinary(oldContent) || isBinary(newContent))
    return `${text}GIT binary patch\n${literal(newContent)}${literal(oldContent)}`;
  text += `--- ${before ? label('a/', path) : '/dev/null'}\n+++ ${after ? label('b/', path) : '/dev/null'}\n`;
  return text + hunksOf(editsOf(oldContent, newContent));
}

export interface ChangedFile {
  readonly path: string;
  readonly before: FileVersion | undefined;
  readonly after: FileVersion | undefined;
}

/** Deletions first: a file that became a folder must go before what is in the folder comes. */
export function writePatch(files: readonly ChangedFile[]): Buffer {
  const order = [...files].sort(
    (a, b) => Number(a.after !== undefined) - Number(b.after !== undefined) || (a.path < b.path ? -1 : 1),
  );
  return Buffer.from(order.map((f) => oneFile(f.path, f.before, f.after)).join(''), 'latin1');
}
