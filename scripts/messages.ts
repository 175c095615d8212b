// `npm run docs:messages`: every sentence that the program may say, one a line, in tests/messages.txt. A change of a message is then one line that a
// person reads in the diff; tests ask for codes, exit codes and names. tests/messages.test.ts fails while the listing is not current.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { parseSync } from 'rolldown/utils';

const ROOT = join(import.meta.dirname, '..');
export const LISTING = join(ROOT, 'tests', 'messages.txt');

/** Rooms whose literals are no messages: SQL, patterns of providers' own words, the page's markup classes. */
const NOT_MESSAGES = /^(?:src\/store\/|src\/base\/python\/)/;
/** Three words or more, one of them in small letters, and no SQL or shell. */
const isSentence = (text: string) =>
  /(?:^|\s)[a-z'`]+\s/.test(text) &&
  (text.match(/[A-Za-z]{2,}/g)?.length ?? 0) >= 3 &&
  !/^\s*(?:select|insert|update|delete|create|with|pragma|with recursive)\s/i.test(text);

interface Node {
  readonly type: string;
  readonly [key: string]: unknown;
}
const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as Node).type === 'string';

/** `cannot read ${path}` is listed as `cannot read {}`. */
function literalsOf(node: Node, into: string[]): void {
  if (/^(?:Import|Export.*)Declaration$/.test(node.type) && isNode(node.source)) {
    if (isNode(node.declaration)) literalsOf(node.declaration, into);
    return;
  }
  if (node.type === 'Literal' && typeof node.value === 'string') into.push(node.value);
  if (node.type === 'JSXText') into.push(String(node.value));
  if (node.type === 'TemplateLiteral')
    into.push((node.quasis as { value: { cooked: string } }[]).map(({ value }) => value.cooked).join('{}'));
  for (const value of Object.values(node).flat()) if (isNode(value)) literalsOf(value, into);
}

/** The listing as it should be: a heading for each file, its sentences in the order of the source. */
export function messages(): string {
  const files = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    .map((file) => `src/${file.split(sep).join('/')}`)
    .filter((file) => /\.tsx?$/.test(file) && !NOT_MESSAGES.test(file))
    .sort();
  const parts = files.map((file) => {
    const found: string[] = [];
    literalsOf(parseSync(file, readFileSync(join(ROOT, file), 'utf8')).program as unknown as Node, found);
    const sentences = found.map((text) => text.replaceAll(/\s+/g, ' ').trim()).filter(isSentence);
    return sentences.length > 0 ? `${file}\n${sentences.map((text) => `  ${text}\n`).join('')}` : '';
  });
  return parts.filter(Boolean).join('\n');
}

if (import.meta.main) writeFileSync(LISTING, messages());
