// The ground floor: sanitisers, Python's texts, names, secrets.
import { retryAfterMs } from '../../../src/base/async/timer.ts';
import { OutsideRootError, pathInside } from '../../../src/base/files/pathInside.ts';
import { familiarName, imageKey, parseReference, sourceOf } from '../../../src/base/imageReference.ts';
import { cutNesting } from '../../../src/base/plausible.ts';
import {
  asciiJson,
  parseJsonAsPython,
  pythonJson,
  pythonLine,
  sortedPythonJson,
} from '../../../src/base/python/json.ts';
import { eachLine, eachLineWith, splitLines, universalNewlines } from '../../../src/base/python/lines.ts';
import { PythonLiteralError, parsePythonLiteral } from '../../../src/base/python/literal.ts';
import { parseFilter } from '../../../src/base/python/regex.ts';
import * as python from '../../../src/base/python/text.ts';
import { codePoints, sliceText } from '../../../src/base/python/text.ts';
import { parseSlice, repr } from '../../../src/base/python/values.ts';
import { linearProblem } from '../../../src/base/regex/linearRegex.ts';
import { asciiOnly, wellFormed } from '../../../src/base/replaceUnits.ts';
import { closest } from '../../../src/base/text/closest.ts';
import {
  broken,
  columns,
  fitted,
  head,
  longestWord,
  pad,
  padLeft,
  shorten,
  wrapped,
} from '../../../src/base/text/columns.ts';
import { errorFirst, lastLines } from '../../../src/base/text/errorFirst.ts';
import { exitCodeTold, shownExit } from '../../../src/base/text/exitCodeTold.ts';
import { harnessName, pathName } from '../../../src/base/text/fileName.ts';
import {
  csvCell,
  html,
  inert,
  line,
  markdown,
  plain,
  settleLines,
  showUnseen,
  stripEscapes,
  visibleName,
} from '../../../src/base/text/inert.ts';
import { instanceIdProblem } from '../../../src/base/text/instanceId.ts';
import { lineAt } from '../../../src/base/text/jsonChildren.ts';
import { lineDiff } from '../../../src/base/text/lineDiff.ts';
import {
  createRedactor,
  isOrdinary,
  looksLikeKey,
  redactor,
  snippet,
} from '../../../src/base/text/redact.ts';
import { parseDuration, parseSize } from '../../../src/base/text/units.ts';
import { pipSentence } from '../../../src/run/agents/pipSentence.ts';
import { jsonValue, type Reader, readersOf } from './reader.ts';

/** What is written where: after each of them nothing may be left that steers. */
export const SANITISERS: Readonly<Record<string, (text: string) => string>> = {
  inert,
  plain,
  line,
  html,
  markdown,
  visibleName,
  csvCell,
  pathName,
  harnessName,
};

const SECRET = 'sk-Zq81hT5uYb3nWc7dXe9fAg2h';
const secrets = createRedactor([
  { name: 'KEY', value: SECRET },
  { name: 'LINES', value: 'a "quoted"\nsecret of 2 lines' },
]);
/** A base64 of the secret without its end, and its two halves. */
const base64 = Buffer.from(SECRET).toString('base64');
const withoutKeys = redactor([SECRET]);

export const BASE_READERS: readonly Reader[] = [
  ...readersOf(SANITISERS, { words: ['www.', '://', '@a', '#1', '=', '＝', '__', '"'] }),
  ...readersOf({
    asciiOnly,
    wellFormed,
    errorFirst: (text) => errorFirst(text, 300),
    lastLines: (text) => lastLines(text, 300),
    exitCodeTold,
    shownExit,
    pipSentence: (text) => pipSentence(text, { name: 'x', version: '1.0', python: '3.11.7' }),
    lineAt: (text) => lineAt(text, text.length),
    stripEscapes,
    stripEscapesButColours: (text) => stripEscapes(text, { keepColours: true }),
    settleLines,
    showUnseen,
    columns,
    // Its callers cut texts before.
    broken: (text) => broken(text.slice(0, 20_000), 80, 76),
    fitted: (text) => fitted(text.slice(0, 20_000), 80),
    longestWord: (text) => longestWord(text.slice(0, 20_000)),
    wrapped: (text) => wrapped(text.slice(0, 20_000), 80),
    wrappedFurtherIn: (text) => wrapped(text.slice(0, 20_000), 80, '  '),
    head: (text) => head(text, 80),
    shorten: (text) => shorten(text, 80),
    pad: (text) => pad(text, 80),
    padLeft: (text) => padLeft(text, 80),
    lineDiff: (text) => lineDiff(text, `${text}x`),
    lineDiffOfOther: (text) => lineDiff(text, 'a\nb\n'),
    closest: (text) => closest(text, ['agent.step_limit', 'run']),
    instanceIdProblem,
    parseReference,
    familiarName,
    imageKey,
    sourceOf: (text) => sourceOf(text, [{ from: 'a/', to: 'b/' }]),
    retryAfterMs: (text) => retryAfterMs(text, 0),
    parseFilter,
    linearProblem,
    parseSlice,
    'wellFormed of JSON': (text) => wellFormed([text, { [text]: text }]),
    cutNesting: (text) => cutNesting({ text }),
  }),
  ...readersOf({ parseSize, parseDuration }, { refuses: [Error] }),
  ...readersOf({ pathInside: (text) => pathInside('/results', text) }, { refuses: [OutsideRootError] }),
  ...readersOf(
    {
      'redactor.text': secrets.text,
      'redactor.json': secrets.json,
      'redactor.json of a value': (text) =>
        secrets.json(JSON.stringify({ a: [jsonValue(text)], [jsonValue(text)]: SECRET })),
      'redactor.contains': secrets.contains,
      'redactor.bytes': (text) => secrets.bytes(Buffer.from(text)),
      'redactor of keys': withoutKeys,
      snippet: (text) => snippet(text, withoutKeys),
      isOrdinary,
      looksLikeKey,
    },
    {
      words: [
        SECRET.slice(0, -1),
        base64,
        base64.slice(0, 12),
        base64.slice(12, 24),
        `${base64.slice(0, 12)}\n`,
        `${base64.slice(0, 14)}\\n`,
        'sk-',
        'sk_a',
        'Bearer ',
        'https://a:b',
        'AIza',
        '-----BEGIN ',
      ],
    },
  ),
  ...readersOf(
    {
      codePoints,
      sliceText: (text) => sliceText(text, 10, -10),
      universalNewlines,
      splitLines: (text) => splitLines(text),
      eachLine: (text) => eachLine(text, () => undefined),
      eachLineWith: (text) => eachLineWith(text, 'a', () => undefined),
      strip: python.strip,
      stripChars: (text) => python.stripChars(text, 'a \n'),
      tokens: python.tokens,
      indentOf: python.indentOf,
      squeeze: python.squeeze,
      withoutAnsi: python.withoutAnsi,
      digitsEnd: (text) => python.digitsEnd(text, 0),
      repr,
      pythonJson: (text) => pythonJson([text]),
      asciiJson: (text) => asciiJson([text]),
      sortedPythonJson: (text) => sortedPythonJson([text]),
      pythonLine: (text) => pythonLine([text]),
    },
    { words: ['\u3000', '\x1c', '\u0661', '\x1b[0'] },
  ),
  ...readersOf(
    {
      parseJsonAsPython,
      'parseJsonAsPython of a string': (text) => parseJsonAsPython(`"${text}`),
      parsePythonLiteral,
      'parsePythonLiteral of a string': (text) => parsePythonLiteral(`'${text}`),
    },
    {
      words: ["'a',", "u'", '\\N', '(1,', "{'a':", '-', '1_', '1e', "''", "'' '' ", '\\x', 'None,'],
      refuses: [PythonLiteralError],
    },
  ),
];
