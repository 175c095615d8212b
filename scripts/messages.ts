// `npm run docs:messages`: every sentence that the program may say, one a line, in tests/messages.txt. A change of a message is then one line that a
// person reads in the diff; tests ask for codes, exit codes and names. tests/messages.test.ts fails while the listing is not current.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { parseSync, Visitor } from 'vite';

const ROOT = join(import.meta.dirname, '..');
export const LISTING = join(ROOT, 'tests', 'messages.txt');

/** Rooms whose literals are no messages: SQL, patterns of providers' own words, the page's markup classes. */
const NOT_MESSAGES = /^(?:src\/store\/|src\/base\/python\/)/;
/** Three words or more, one of them in small letters, and no SQL or shell. */
const isSentence = (text: string) =>
  /(?:^|\s)[a-z'`]+\s/.test(text) &&
  (text.match(/[A-Za-z]{2,}/g)?.length ?? 0) >= 3 &&
  !/^\s*(?:select|insert|update|delete|create|with|pragma|with recursive)\s/i.test(text);

/** `cannot read ${path}` is listed as `cannot read {}`. */
function literalsOf(file: string): string[] {
  const literals: string[] = [];
  new Visitor({
    // biome-ignore-start lint/correctness/noComponentHookFactories: names of nodes of the syntax tree, no components
    Literal: ({ value }) => {
      if (typeof value === 'string') literals.push(value);
    },
    JSXText: ({ value }) => void literals.push(value),
    TemplateLiteral: ({ quasis }) => void literals.push(quasis.map(({ value }) => value.cooked).join('{}')),
    // biome-ignore-end lint/correctness/noComponentHookFactories: the same
  }).visit(parseSync(file, readFileSync(join(ROOT, file), 'utf8')).program);
  return literals;
}

/** The listing as it should be: a heading for each file, its sentences in the order of the source. */
export function messages(): string {
  const files = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    .map((file) => `src/${file.split(sep).join('/')}`)
    .filter((file) => /\.tsx?$/.test(file) && !NOT_MESSAGES.test(file))
    .sort();
  const parts = files.map((file) => {
    const sentences = literalsOf(file)
      .map((text) => text.replaceAll(/\s+/g, ' ').trim())
      .filter(isSentence);
    return sentences.length > 0 ? `${file}\n${sentences.map((text) => `  ${text}\n`).join('')}` : '';
  });
  return parts.filter(Boolean).join('\n');
}

if (import.meta.main) writeFileSync(LISTING, messages());
