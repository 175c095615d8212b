// No function that reads text of others is missing in the table that the long test and the fuzz suite work through.
import { globSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect, test } from 'vitest';
import { READERS } from './support/foreign/everyReader.ts';

const ROOT = join(import.meta.dirname, '..');

const ROOMS = [
  ...['base/text', 'base/python', 'base/regex', 'formats', 'grading', 'suspicion', 'agent', 'dataset/read'],
  ...['model/dialects', 'model/limits', 'template', 'report/render', 'report/submission'],
  ...['viewer/documents', 'viewer/steps', 'viewer/page/text', 'viewer/page/trajectory', 'environment/exec'],
].map((room) => `src/${room}/`);

/** Parameters that carry what somebody else wrote. */
const FOREIGN =
  /^(?:text|log|raw|body|bytes|data|patch|line|output|content|value|message|name|exceptionInfo|json|given)$/;
const TYPES = /^(?:string|Body|Uint8Array|Buffer)\b/;

/** Not in the table, and why. */
const APART: Readonly<Record<string, string>> = {
  isSpaceAt: 'looks at one character',
  isWordAt: 'looks at one character',
  isDigitAt: 'looks at one character',
  replaceDangerous: 'part of the sanitisers',
  replaceUnits: 'part of the sanitisers',
  stripStart: 'half of strip',
  stripEnd: 'half of strip',
  shortened: 'calls truncate',
  failureVars: 'calls exceptionType',
  unicodeLine: 'the same writer as pythonLine',
  nearest: 'calls closest',
  isAddable: 'a name that a person configures',
  parseAgentSpec: 'a name that a person configures',
  parseProgram: 'a name that a person configures',
  shellWord: 'quotes a word',
  objectOf: 'JSON.parse of a text of ours',
  applyFilter: 'by its name one of the filters of the table',
  capitalized: 'part of the methods and filters of templates',
  centered: 'part of the methods and filters of templates',
  replaced: 'part of the methods and filters of templates',
  parsePythonYaml: 'the same reader as parseYaml',
  applyTest: 'by its name one of the tests of the table',
  decodeUtf8: 'part of the collector',
  textOfBody: 'part of parseForeignJson',
  parseForeignJson: 'part of every reader of files',
  reasonOfException: 'looks a word up in a table',
  isEmptyPatch: 'looks at a length',
  readEvalResults: 'reads a file of ours back in its own test',
  jsonChildren: 'part of the readers of predictions and datasets',
  patchHash: 'a hash',
  modelInName: 'a name of a file on this disk',
  nameBudget: 'part of the log parsers',
  skipSpaces: 'part of the log parsers',
  lastMatch: 'part of the log parsers',
  withoutColour: 'part of the log parsers',
  lostResult: 'holds a text',
  readMessage: 'part of the dialects, and in the table for the viewer',
  textResult: 'holds a text',
  observationExtra: 'holds a text',
  replaceText: 'the filter replace of the table',
  readRow: 'a row of the record that another reader has checked',
  readParquet: 'bytes of a table: the fuzz suite changes a good one',
  refusedResult: 'holds a text',
  systemOf: 'holds a text',
  userOf: 'holds a text',
  spliced: 'writes texts of ours where spansOf found others',
};

const EXPORT =
  /^export (?:async )?(?:function\*? ?(\w+)(?:<[^(]*>)?\(\s*(\w+)\??: ([^,)=]+)|const (\w+)(?:: [^=]+)? = (?:async )?(?:<[^(]*>)?\(\s*(\w+)\??: ([^,)=]+))/gm;

interface Found {
  readonly name: string;
  readonly where: string;
}

const readersIn = (path: string): Found[] => {
  const text = readFileSync(path, 'utf8');
  const taking = [...text.matchAll(EXPORT)].flatMap((match) => {
    const [name, parameter, type] = match[1] ? match.slice(1, 4) : match.slice(4, 7);
    return FOREIGN.test(parameter!) && TYPES.test(type!.trim()) ? [name!] : [];
  });
  const made = [...text.matchAll(/^export const (\w+) = readerOf\(/gm)].map(([, name]) => name!);
  return [...taking, ...made].map((name) => ({ name, where: relative(ROOT, path) }));
};

const found = globSync(join(ROOT, 'src/**/*.{ts,tsx}'))
  .filter((path) => ROOMS.some((room) => path.includes(`/${room}`)))
  .flatMap(readersIn);

const table = globSync(join(ROOT, 'tests/support/foreign/*.ts'))
  .map((path) => readFileSync(path, 'utf8'))
  .join('\n');
const isInTable = ({ name }: Found): boolean => new RegExp(`\\b${name}\\b`).test(table);

test('every reader is in the table, or it is said why not', () => {
  const missing = found.filter((reader) => !isInTable(reader) && !Object.hasOwn(APART, reader.name));
  expect(missing.map(({ name, where }) => `${where}: ${name}`)).toEqual([]);
});

test('the table is as large as it was: a lost import would empty it in silence', () => {
  expect(found.length).toBeGreaterThan(60);
  expect(Object.values(READERS).flat().length).toBeGreaterThan(300);
});
