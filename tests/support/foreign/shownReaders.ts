// What shows text of others to a person: terminal, report, page.

import { wrap } from '../../../src/cli/terminal/progress.ts';
import { clip } from '../../../src/cli/terminal/progressState.ts';
import { table } from '../../../src/cli/terminal/table.ts';
import { type Document, jsonText } from '../../../src/report/render/document.ts';
import { renderHtml, renderMarkdown, renderTerminal } from '../../../src/report/render/renderers.ts';
import { testsOf } from '../../../src/viewer/documents/attemptDocuments.ts';
import { compileFilter } from '../../../src/viewer/documents/filter.ts';
import {
  lenientJson,
  readBytes,
  readEvidence,
  readFlags,
  readMessage,
  readNumbers,
  readTexts,
} from '../../../src/viewer/documents/lenient.ts';
import { ansiSpans, countIn, outputIn, plain } from '../../../src/viewer/page/text/foreignText.ts';
import { colouringOf, diffPieces, jsonPieces } from '../../../src/viewer/page/text/jsonTokens.ts';
import { filesIn, parts, stepFacts } from '../../../src/viewer/steps/stepFacts.ts';
import { patchLines } from '../../../src/viewer/trajectoryLines.ts';
import { jsonValue, type Reader, readersOf } from './reader.ts';

/** A block of each kind with the text in every place. */
const BLOCKS: Readonly<Record<string, (text: string) => Document>> = {
  heading: (text) => [{ kind: 'heading', level: 1, text }],
  'facts, value': (text) => [{ kind: 'facts', rows: [['label', text]] }],
  'facts, label': (text) => [{ kind: 'facts', rows: [[text, 'value']] }],
  'table, cell': (text) => [
    { kind: 'table', head: ['instance', 'a'], align: ['left', 'right'], rows: [['a', text]] },
  ],
  'table, instance': (text) => [
    { kind: 'table', head: ['instance', 'a'], align: ['left', 'right'], rows: [[text, 'a']] },
  ],
  text: (text) => [{ kind: 'text', text }],
  warning: (text) => [{ kind: 'warning', text }],
  ids: (text) => [{ kind: 'ids', label: text, ids: [text.slice(0, 100_000)] }],
  lines: (text) => [{ kind: 'lines', lines: text.split('\n') }],
  'bars, title': (text) => [
    { kind: 'bars', title: text, max: 1, bars: [{ label: 'a', value: 1, text: 'a' }] },
  ],
  'bars, label': (text) => [
    { kind: 'bars', title: 'a', max: 1, bars: [{ label: text, value: 1, text: 'a' }] },
  ],
  'bars, text': (text) => [{ kind: 'bars', title: 'a', max: 1, bars: [{ label: 'a', value: 1, text }] }],
};
const RENDERERS: Readonly<Record<string, (document: Document) => string>> = {
  terminal: renderTerminal,
  Markdown: renderMarkdown,
  HTML: (document) => renderHtml(document, 'title'),
};

const REPORT = JSON.stringify({
  a: { tests_status: { FAIL_TO_PASS: { success: [], failure: ['tests/test_a.py::test_a', 'a'] } } },
});

export const SHOWN_READERS: readonly Reader[] = [
  ...Object.entries(RENDERERS).flatMap(([place, renderer]) =>
    readersOf(
      Object.fromEntries(
        Object.entries(BLOCKS).map(([kind, block]) => [
          `${place}: ${kind}`,
          (text: string) => renderer(block(text)),
        ]),
      ),
      { words: ['a b ', 'word'.repeat(100), ' % ', '漢', 'e\u0301', '[a, b] '] },
    ),
  ),
  ...readersOf(
    {
      jsonText: (text) => jsonText({ text }),
      'jsonText with a key': (text) => jsonText({ [text]: 1 }),
      'terminal table': (text) => table(['a', 'b'], [['a', text]], 80),
      wrap: (text) => wrap(text, 80, 2),
      clip: (text) => clip(text, 80),
      patchLines: (text) => patchLines(text),
      lenientJson,
      readEvidence,
      readFlags,
      readNumbers,
      readTexts,
      readMessage,
      'readMessage with a value': (given) => {
        const text = jsonValue(given);
        return readMessage(
          JSON.stringify({
            role: 'assistant',
            content: text,
            tool_calls: [{ function: { name: text, arguments: text } }],
          }),
        );
      },
      readBytes: (text) => readBytes(Buffer.from(text)),
      'testsOf a report': (text) => testsOf(text, null),
      'testsOf a log': (text) => testsOf(REPORT, text),
      'parts of a reply': parts,
      filesIn,
      'stepFacts of a command': (text) => stepFacts([{ name: 'bash', text }]),
      'stepFacts of a tool': (text) => stepFacts([{ name: text, text }]),
      'page: colouringOf': colouringOf,
      'page: diffPieces': (text) => diffPieces(text.slice(0, 100_000)),
      'page: jsonPieces': (text) => jsonPieces(text.slice(0, 100_000)),
      'page: outputIn': outputIn,
      'page: countIn': (text) => countIn(text, 'a'),
      'page: plain': plain,
      'page: ansiSpans': ansiSpans,
      'page: ansiSpans of one sequence': (text) => ansiSpans(`\x1b[${text}m`),
      'filter box': (text) =>
        compileFilter<string>(
          text.slice(0, 10_000),
          new Map([['a', (row: string) => row]]),
          (row) => row,
        ).test('a'),
      'filter box on a row': (text) =>
        compileFilter<string>('a -b a:c', new Map([['a', (row: string) => row]]), (row) => row).test(text),
    },
    {
      words: [
        '```\n',
        '```',
        '``` \n',
        '```bash',
        '\x1b[1m',
        '\x1b[31;1m',
        '\x1b[1ma',
        ';',
        '1;',
        'a:',
        '-a:"',
        'FAILED ',
        'FAILED tests/test_a.py::test_a\n',
        'test_a\n',
        '::',
      ],
    },
  ),
];
