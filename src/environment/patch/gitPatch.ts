/**
 * Writes a patch in git's format from two versions of files, for images that have no git to do it. `git apply` gives the second tree
 * from the first, byte for byte; that is what its tests check.
 */
import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import { deflate } from 'node:zlib';
import { hunksOf } from './lineHunks.ts';

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
const LINE_END = 0x0a;

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
