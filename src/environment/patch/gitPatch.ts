/**
 * Writes a patch in git's format from two versions of files, for images that have no git to do it. `git apply` gives the second tree
 * from the first, byte for byte; that is what its tests check.
 */
import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import { deflate } from 'node:zlib';

// The hunks of a patch, from two versions of a file. Lines are places in the bytes of a file and never texts of their own: a file may
// have millions of them.

const CONTEXT = 3;
/** Beyond this many edits a shorter patch is not worth the search: the changed middle is replaced whole. */
const MAX_EDITS = 800;
/** The same holds where lines that repeat have been compared as many times over. */
const MOST_COMPARED = 32 * 1024 * 1024;
const LINE_END = 0x0a;
const NO_NEWLINE = Buffer.from('\n\\ No newline at end of file\n');
/** Where bytes are copied or compared one by one faster than by a call. */
const SHORT = 48;

/** A part of a file as lines: line `i` is from `starts[i]` to `starts[i + 1]`. The last may have no newline. */
interface Lines {
  readonly content: Buffer;
  readonly starts: Uint32Array;
  readonly count: number;
}

function linesOf(content: Buffer, from: number, to: number): Lines {
  let count = from < to && content[to - 1] !== LINE_END ? 1 : 0;
  for (let at = from; at < to; at += 1) if (content[at] === LINE_END) count += 1;
  const starts = new Uint32Array(count + 1);
  let line = 0;
  starts[0] = from;
  for (let at = from; at < to; at += 1) if (content[at] === LINE_END) starts[++line] = at + 1;
  starts[count] = to;
  return { content, starts, count };
}

/** `count` lines that are the same, or that only one side has. `from` counts lines of the new side for '+', else of the old one. */
interface Run {
  readonly kind: ' ' | '-' | '+';
  readonly from: number;
  readonly count: number;
}

/** Compares lines until it has looked at too many bytes; then everything differs and `tired` is true. */
function lineComparer(a: Lines, b: Lines): { same(x: number, y: number): boolean; tired(): boolean } {
  let left = MOST_COMPARED + a.content.length + b.content.length;
  return {
    same(x, y) {
      const [from, other] = [a.starts[x]!, b.starts[y]!];
      const length = a.starts[x + 1]! - from;
      left -= length + 1;
      if (length !== b.starts[y + 1]! - other || left < 0) return false;
      if (length > SHORT)
        return a.content.compare(b.content, other, other + length, from, from + length) === 0;
      for (let i = 0; i < length; i += 1) if (a.content[from + i] !== b.content[other + i]) return false;
      return true;
    },
    tired: () => left < 0,
  };
}

/** Myers' shortest edit script between line `skip` and the last `skip` lines; undefined where it is given up. */
function shortestEdits(a: Lines, b: Lines, head: number, tail: number): Run[] | undefined {
  const trace: Int32Array[] = [];
  const [oldCount, newCount] = [a.count - head - tail, b.count - head - tail];
  const most = Math.min(oldCount + newCount, MAX_EDITS);
  const offset = most + 1;
  const furthest = new Int32Array(2 * most + 3);
  const { same, tired } = lineComparer(a, b);
  for (let d = 0; d <= most && !tired(); d += 1) {
    trace.push(furthest.slice(offset - d - 1, offset + d + 2));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && furthest[offset + k - 1]! < furthest[offset + k + 1]!);
      let x = down ? furthest[offset + k + 1]! : furthest[offset + k - 1]! + 1;
      let y = x - k;
      while (x < oldCount && y < newCount && same(head + x, head + y)) {
        x += 1;
        y += 1;
      }
      furthest[offset + k] = x;
      if (x >= oldCount && y >= newCount) return backtrack(oldCount, newCount, trace, head);
    }
  }
  return undefined;
}

function backtrack(oldCount: number, newCount: number, trace: readonly Int32Array[], head: number): Run[] {
  const runs: Run[] = [];
  let x = oldCount;
  let y = newCount;
  for (let d = trace.length - 1; d >= 0; d -= 1) {
    const row = trace[d]!;
    const at = (k: number) => row[k + d + 1]!;
    const k = x - y;
    const down = k === -d || (k !== d && at(k - 1) < at(k + 1));
    const previous = down ? k + 1 : k - 1;
    const fromX = d === 0 ? 0 : at(previous);
    const fromY = d === 0 ? 0 : fromX - previous;
    // As long as both are beyond where this step began: then one edit led here.
    const count = Math.max(0, Math.min(x - fromX, y - fromY));
    x -= count;
    y -= count;
    runs.push({ kind: ' ', from: head + x, count });
    if (d === 0) break;
    if (down) runs.push({ kind: '+', from: head + --y, count: 1 });
    else runs.push({ kind: '-', from: head + --x, count: 1 });
  }
  return runs.reverse();
}

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

function countLines(content: Buffer, from: number, until: number): number {
  let lines = 0;
  for (let at = from; at < until; at += 1) if (content[at] === LINE_END) lines += 1;
  return lines;
}

const BLOCK = 65_536;

/** How many bytes of whole lines two files share at their beginning and at their end. */
function sharedEnds(a: Buffer, b: Buffer): { start: number; end: number } {
  const shorter = Math.min(a.length, b.length);
  let same = 0;
  while (same + BLOCK <= shorter && a.compare(b, same, same + BLOCK, same, same + BLOCK) === 0) same += BLOCK;
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

/** The lines that changed, with those around them. `skipped`: lines before the first run. */
function changesOf(a: Buffer, b: Buffer) {
  const { start, end } = sharedEnds(a, b);
  const first = contextBefore(a, start);
  const last = a.length - end;
  const after = contextAfter(a, last) - last;
  const head = countLines(a, first, start);
  const from = linesOf(a, first, last + after);
  const to = linesOf(b, first, b.length - end + after);
  const tail = linesOf(a, last, last + after).count;
  const [oldCount, newCount] = [from.count - head - tail, to.count - head - tail];
  const middle: readonly Run[] = shortestEdits(from, to, head, tail) ?? [
    { kind: '-', from: head, count: oldCount },
    { kind: '+', from: head, count: newCount },
  ];
  const runs: Run[] = [
    { kind: ' ', from: 0, count: head },
    ...middle,
    { kind: ' ', from: from.count - tail, count: tail },
  ];
  return { runs: joined(runs), a: from, b: to, skipped: countLines(a, 0, first) };
}

/** Without empty runs, and one run where two of a kind follow each other. */
function joined(runs: readonly Run[]): Run[] {
  const found: Run[] = [];
  for (const run of runs) {
    if (run.count === 0) continue;
    const last = found.at(-1);
    if (last?.kind === run.kind) found[found.length - 1] = { ...last, count: last.count + run.count };
    else found.push(run);
  }
  return found;
}

/** Every line of a run with its sign in front. */
function written({ kind, from, count }: Run, { content, starts }: Lines): Buffer {
  const end = starts[from + count]!;
  const out = Buffer.allocUnsafe(end - starts[from]! + count + NO_NEWLINE.length);
  const sign = kind.charCodeAt(0);
  let at = 0;
  for (let line = from; line < from + count; line += 1) {
    const begin = starts[line]!;
    const stop = starts[line + 1]!;
    out[at++] = sign;
    if (stop - begin > SHORT) at += content.copy(out, at, begin, stop);
    else for (let i = begin; i < stop; i += 1) out[at++] = content[i]!;
  }
  if (content[end - 1] !== LINE_END) at += NO_NEWLINE.copy(out, at);
  return out.subarray(0, at);
}

/** Runs that belong together: between two changes are at most as many lines as the context of both. */
function* groups(runs: readonly Run[]): Generator<Run[]> {
  let group: Run[] = [];
  for (const [i, run] of runs.entries()) {
    const inside = i > 0 && i + 1 < runs.length;
    if (run.kind !== ' ' || (inside && run.count < 2 * CONTEXT)) {
      group.push(run);
      continue;
    }
    const shown = Math.min(CONTEXT, run.count);
    if (group.length > 0) yield [...group, { ...run, count: shown }];
    group = [{ ...run, from: run.from + run.count - shown, count: shown }];
  }
  if (group.some(({ kind }) => kind !== ' ')) yield group;
}

/** The text of all hunks, as parts. */
function hunksOf(old: Buffer, fresh: Buffer): Buffer[] {
  const { runs, a, b, skipped } = changesOf(old, fresh);
  const parts: Buffer[] = [];
  let shift = 0;
  for (const group of groups(runs)) {
    const lines = (other: '-' | '+') =>
      group.reduce((sum, { kind, count }) => (kind === other ? sum : sum + count), 0);
    const [oldCount, newCount] = [lines('+'), lines('-')];
    // A group that adds at the very beginning has no line of the old side before it.
    const leading = group[0]!;
    const oldLine = skipped + 1 + (leading.kind === '+' ? leading.from - shift : leading.from);
    const range = (line: number, count: number) => `${count === 0 ? line - 1 : line},${count}`;
    parts.push(Buffer.from(`@@ -${range(oldLine, oldCount)} +${range(oldLine + shift, newCount)} @@\n`));
    for (const run of group) parts.push(written(run, run.kind === '+' ? b : a));
    shift += newCount - oldCount;
  }
  return parts;
}

export interface FileVersion {
  /** 100644, 100755 or 120000 (a link, whose content is its target). */
  readonly mode: string;
  readonly content: Buffer;
}

const BINARY_PROBE = 8000;
const NULL_ID = '0'.repeat(40);
const BASE85 = Buffer.from(
  '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~',
);
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

function base85(data: Buffer): Buffer {
  const lines = Math.ceil(data.length / BASE85_LINE);
  const out = Buffer.allocUnsafe(Math.ceil(data.length / 4) * 5 + lines * 2);
  let to = 0;
  for (let at = 0; at < data.length; at += BASE85_LINE) {
    const end = Math.min(data.length, at + BASE85_LINE);
    const length = end - at;
    out[to++] = length <= 26 ? 64 + length : 96 + length - 26;
    for (let word = at; word < end; word += 4) {
      // Beyond the end are zeros.
      let value = 0;
      for (let i = 0; i < 4; i += 1) value = value * 256 + (word + i < end ? data[word + i]! : 0);
      for (let digit = 4; digit >= 0; digit -= 1) {
        const rest = Math.floor(value / 85);
        out[to + digit] = BASE85[value - rest * 85]!;
        value = rest;
      }
      to += 5;
    }
    out[to++] = LINE_END;
  }
  return out;
}

const compressed = promisify(deflate);

const literal = async (content: Buffer): Promise<Buffer[]> =>
  content.length === 0
    ? [Buffer.from('literal 0\nHcmV?d00001\n\n')]
    : [Buffer.from(`literal ${content.length}\n`), base85(await compressed(content)), Buffer.from('\n')];

/** git ends a name that holds white space with a tab, so that the name's end can be seen. */
const label = (prefix: string, path: string) => quotePath(prefix, path) + (/\s/.test(path) ? '\t' : '');

type Version = FileVersion | undefined;

async function oneFile(path: string, before: Version, after: Version): Promise<Buffer[]> {
  // A file that became a link, or the other way round, is a deletion and a creation.
  if (before && after && (before.mode === '120000') !== (after.mode === '120000'))
    return [...(await oneFile(path, before, undefined)), ...(await oneFile(path, undefined, after))];
  if (before && after && before.mode === after.mode && before.content.equals(after.content)) return [];
  let text = `diff --git ${quotePath('a/', path)} ${quotePath('b/', path)}\n`;
  if (!before) text += `new file mode ${after!.mode}\n`;
  else if (!after) text += `deleted file mode ${before.mode}\n`;
  else if (before.mode !== after.mode) text += `old mode ${before.mode}\nnew mode ${after.mode}\n`;
  const oldContent = before?.content ?? Buffer.alloc(0);
  const newContent = after?.content ?? Buffer.alloc(0);
  if (before && after && oldContent.equals(newContent)) return [Buffer.from(text)];
  const sameMode = before && after && before.mode === after.mode ? ` ${after.mode}` : '';
  text += `index ${before ? blobId(oldContent) : NULL_ID}..${after ? blobId(newContent) : NULL_ID}${sameMode}\n`;
  if (oldContent.equals(newContent)) return [Buffer.from(text)];
  if (isBinary(oldContent) || isBinary(newContent))
    return [
      Buffer.from(`${text}GIT binary patch\n`),
      ...(await literal(newContent)),
      ...(await literal(oldContent)),
    ];
  text += `--- ${before ? label('a/', path) : '/dev/null'}\n+++ ${after ? label('b/', path) : '/dev/null'}\n`;
  return [Buffer.from(text), ...hunksOf(oldContent, newContent)];
}

export interface ChangedFile {
  readonly path: string;
  readonly before: FileVersion | undefined;
  readonly after: FileVersion | undefined;
}

/** Deletions first: a file that became a folder must go before what is in the folder comes. */
export async function writePatch(files: readonly ChangedFile[]): Promise<Buffer> {
  const order = [...files].sort(
    (a, b) => Number(a.after !== undefined) - Number(b.after !== undefined) || (a.path < b.path ? -1 : 1),
  );
  const parts: Buffer[] = [];
  for (const [i, file] of order.entries()) {
    // Thousands of files may have changed, and others in the process want to be heard in between.
    if (i > 0) await setImmediate();
    parts.push(...(await oneFile(file.path, file.before, file.after)));
  }
  return Buffer.concat(parts);
}
