/**
 * Every path that a patch may write, whatever form its headers have: `git apply` and `patch` take plain unified diffs, quoted names and
 * renames as well, and a model writes its patch by hand where it likes. Lines inside hunks are content and name nothing (observed:
 * tests/grading/patchPaths.test.ts).
 */

const ESCAPES: Readonly<Record<string, number>> = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13 };

const LONGEST_QUOTED = 4 * 4096;

/** A name as git quotes it: `"a/t\303\251st.py"`. `end` is where the quotes close; undefined when they never do. */
function unquote(text: string, from: number): { name: string; end: number } | undefined {
  const bytes: Buffer[] = [];
  for (let at = from + 1; at < text.length; at++) {
    // Linux takes paths of 4096 bytes, each four characters at most here.
    if (at - from > LONGEST_QUOTED) return undefined;
    const char = text[at]!;
    if (char === '"') return { name: Buffer.concat(bytes).toString('utf8'), end: at + 1 };
    if (char !== '\\') {
      const point = String.fromCodePoint(text.codePointAt(at)!);
      bytes.push(Buffer.from(point));
      at += point.length - 1;
      continue;
    }
    const octal = /^[0-7]{3}/.exec(text.slice(at + 1, at + 4))?.[0];
    const next = text[at + 1] ?? '';
    bytes.push(
      octal === undefined
        ? Buffer.from(ESCAPES[next] === undefined ? next : String.fromCharCode(ESCAPES[next]))
        : Buffer.from([Number.parseInt(octal, 8) & 0xff]),
    );
    at += octal === undefined ? 1 : 3;
  }
  return undefined;
}

/** `a//./b` is `a/b`. */
const plain = (path: string): string =>
  path.startsWith('/') ||
  path.startsWith('.') ||
  path.endsWith('/') ||
  path.includes('//') ||
  path.includes('/.')
    ? path
        .split('/')
        .filter((part) => part !== '' && part !== '.')
        .join('/')
    : path;

/** The name without its first component (`-p1`); nothing for /dev/null. */
function withoutPrefix(name: string): string[] {
  if (name === '/dev/null') return [];
  const slash = name.indexOf('/');
  return [slash < 0 ? name : plain(name.slice(slash + 1))];
}

/** The path behind `--- `, `+++ ` or `rename to `: quoted, or up to a tab (where a date may stand). */
function nameAfter(line: string, from: number): string {
  const quoted = line[from] === '"' ? unquote(line, from) : undefined;
  if (quoted !== undefined) return quoted.name;
  const tab = line.indexOf('\t', from);
  return line.slice(from, tab < 0 ? undefined : tab).trimEnd();
}

function gitHeader(line: string): string[] {
  const from = 'diff --git '.length;
  if (line.endsWith('"')) {
    // The second name is quoted; the first may be.
    const first = line[from] === '"' ? unquote(line, from) : undefined;
    const second = first ? first.end + 1 : line.indexOf(' "', from) + 1;
    const name = line[second] === '"' ? unquote(line, second)?.name : undefined;
    return name === undefined ? [] : withoutPrefix(name);
  }
  // `a/X b/X`: where X itself holds " b/", only the middle tells.
  const middle = from + (line.length - from - 1) / 2;
  if (line[middle] === ' ' && line.slice(from + 2, middle) === line.slice(middle + 3))
    return [line.slice(middle + 3)];
  const last = line.lastIndexOf(' b/');
  return last >= from ? [line.slice(last + 3)] : [];
}

const HUNK = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/;

/** `patch` takes this name where the other two name no file; it may or may not have a first component to drop. */
const indexed = (text: string): string[] => [text.trim(), ...withoutPrefix(text.trim())];

export interface ChangedLines {
  readonly added: string[];
  readonly removed: string[];
  /** Lines that were there before: removed ones, and lines around. */
  readonly others: string[];
}

/** A longer line is data. */
const LONGEST_LINE = 1000;

/** The most lines of hunks; an honest patch has some thousand. A line counts for some more, because each costs by itself. */
const MOST_READ = 3_000_000;
const OF_A_LINE = 64;

export interface ReadLines {
  readonly files: ReadonlyMap<string, ChangedLines>;
  /** False where the patch has more than is read. */
  readonly whole: boolean;
}

/** The lines of each file's hunks, without their sign. A file that is made has only added ones. */
export function changedLines(patch: string): ReadLines {
  const files = new Map<string, ChangedLines>();
  let size = 0;
  let path = '';
  let [old, fresh] = [0, 0];
  for (let from = 0, end = 0; from < patch.length; from = end + 1) {
    end = patch.indexOf('\n', from);
    if (end < 0) end = patch.length;
    const first = patch[from]!;
    if (old > 0 || fresh > 0) {
      if (first !== '+' && first !== '\\') old--;
      if (first !== '-' && first !== '\\') fresh--;
      size += end - from + OF_A_LINE;
      if (size > MOST_READ) return { files, whole: false };
      const file = files.get(path) ?? { added: [], removed: [], others: [] };
      files.set(path, file);
      const text = patch.slice(from + 1, Math.min(end, from + 1 + LONGEST_LINE));
      if (first === '+') file.added.push(text);
      else if (first !== '\\') file.others.push(text);
      if (first === '-') file.removed.push(text);
      continue;
    }
    if (end - from < SHORTEST_HEADER) continue;
    const line = patch
      .slice(from, end)
      .replace(/^(?:[ \tX]|- )+(?=[-+*dI@])/, '')
      .trimEnd();
    const hunk = HUNK.exec(line);
    if (hunk) [old, fresh] = [Number(hunk[1] ?? 1), Number(hunk[2] ?? 1)];
    else if (line.startsWith('diff --git ')) path = gitHeader(line).at(-1) ?? path;
    else if (/^(?:---|\+\+\+|\*\*\*) /.test(line)) path = withoutPrefix(nameAfter(line, 4)).at(-1) ?? path;
  }
  return { files, whole: true };
}

/** `--- ` */
const SHORTEST_HEADER = 4;

export function patchedPaths(patch: string): string[] {
  const paths = new Set<string>();
  let [old, fresh] = [0, 0];
  for (let from = 0, end = 0; from < patch.length; from = end + 1) {
    const first = patch[from]!;
    end = first === '\n' ? from : patch.indexOf('\n', from);
    if (end < 0) end = patch.length;
    if (old > 0 || fresh > 0) {
      if (first !== '+' && first !== '\\') old--;
      if (first !== '-' && first !== '\\') fresh--;
      continue;
    }
    if (end - from < SHORTEST_HEADER) continue;
    const raw = patch.slice(from, end);
    const whole = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
    // `patch` reads a diff that is indented, or quoted as mail does, as well.
    const line = whole.replace(/^(?:[ \tX]|- )+(?=[-+*dI])/, '');
    const hunk = HUNK.exec(whole);
    if (hunk) [old, fresh] = [Number(hunk[1] ?? 1), Number(hunk[2] ?? 1)];
    else if (line.startsWith('diff --git ')) for (const path of gitHeader(line)) paths.add(path);
    else if (/^(?:---|\+\+\+|\*\*\*) /.test(line))
      for (const path of withoutPrefix(nameAfter(line, 4))) paths.add(path);
    else if (line.startsWith('Index: ')) for (const path of indexed(line.slice(7))) paths.add(path);
    else {
      const moved = /^(?:rename|copy) to /.exec(line)?.[0];
      if (moved) paths.add(nameAfter(line, moved.length));
    }
  }
  return [...paths];
}
