/**
 * Log shapes of SWE-rebench V2. Many have the names of SWE-bench's parsers, as those were before harness 5. Some of them differ: there an
 * expected failure is no status, and Gradle may print a time behind the status. So no dialect changes how its logs are read.
 */
import { digitsEnd, isSpaceAt, strip, stripEnd, tokens } from '../../base/python/text.ts';
import { byLine, stripped } from '../../grading/parsers/lineRules.ts';
import { type LogParser, ParserError } from '../../grading/parsers/logParser.ts';
import { findParser, OFFICIAL_PARSERS, type ParserRegistry } from '../../grading/parsers/parserRegistry.ts';

const WORDS = ['PASSED', 'FAILED', 'SKIPPED', 'ERROR'];

/** The official parser as it was in harness 4, over lines that `change` has rewritten where the log has the mark at all. */
const official =
  (id: string, mark?: string, change: (line: string) => string = (line) => line): LogParser =>
  (log, context) => {
    const read = mark !== undefined && log.includes(mark) ? log.split('\n').map(change).join('\n') : log;
    return OFFICIAL_PARSERS[id]!(read, { ...context, dialect: 'v4.1' });
  };

const withoutXfail = (line: string) => (line.startsWith('XFAIL') ? '' : line);

/** `test_x ok  [OK]`: the last test of a file has the mark of the file behind it. */
function withoutFileMark(line: string): string {
  const text = strip(line);
  if (!text.startsWith('test_') || !(text.endsWith('[OK]') || text.endsWith('[FAIL]'))) return line;
  return text.slice(0, text.lastIndexOf('['));
}

const pytestV2 = byLine((raw, found) => {
  const line = raw.replace(/\[\p{Nd}+m/gu, '').replace(/[\x01-\x1f]/g, '');
  const first = WORDS.some((word) => line.startsWith(word));
  if (!first && !WORDS.some((word) => line.endsWith(word))) return;
  const parts = tokens(line.startsWith('FAILED') ? line.replaceAll(' - ', ' ') : line);
  const [one, two] = parts;
  if (one === undefined || two === undefined)
    throw new ParserError(`the line "${line.slice(0, 200)}" names no test`);
  found.set(first ? two : one, first ? one : two);
});

/** ` (1.5s)` at the end of a line, which Gradle may print. */
function withoutSeconds(line: string): string {
  const open = line.lastIndexOf('(');
  if (open < 1 || !line.endsWith('s)') || !isSpaceAt(line, open - 1)) return line;
  const whole = digitsEnd(line, open + 1);
  const end = line[whole] === '.' ? digitsEnd(line, whole + 1) : whole;
  if (whole === open + 1 || end === whole + 1 || end !== line.length - 2) return line;
  return stripEnd(line.slice(0, open));
}

const gradle = stripped((given) => {
  if (given.startsWith('>')) return undefined;
  const line = withoutSeconds(given);
  const status = line.endsWith('PASSED') ? 'PASSED' : line.endsWith('FAILED') ? 'FAILED' : undefined;
  const head = line.slice(0, -'PASSED'.length);
  // A name has two characters at least, and white space behind it.
  if (status === undefined || !isSpaceAt(head, head.length - 1) || [...head.slice(0, 6)].length < 3)
    return undefined;
  return { name: stripEnd(head), status };
});

/** `PASS path (5.2 s)`, with or without the time. */
const files = byLine((line, found) => {
  const status = line.startsWith('PASS') ? 'PASSED' : line.startsWith('FAIL') ? 'FAILED' : undefined;
  if (status === undefined || !isSpaceAt(line, 4)) return;
  const open = line.lastIndexOf('(');
  const time = /^\([\p{Nd}.]+(?:ms|s)\)$/u.test(line.slice(open, open + 40).replaceAll(/\s/g, ''));
  found.set(
    stripEnd(line.slice(5, time && open > 5 && isSpaceAt(line, open - 1) ? open : undefined)),
    status,
  );
});

const PYTEST = ['pytest', 'astroid', 'flask', 'marshmallow', 'pvlib', 'pyvista', 'sqlfluff', 'xarray'];
const OPTIONS = ['pytest_options', 'pydicom', 'requests', 'pylint', 'matplotlib'];
const SAME = `django seaborn gotest redis jq doctest micropython_test googletest minitest cucumber ruby_unit rspec_transformed_json cargo
  phpunit maven ant calypso chart_js marked p5js jest jest_json vitest karma tap`;

const named = (name: string) => `parse_log_${name}`;
const SHAPES: ReadonlyMap<string, LogParser> = new Map([
  ...[...PYTEST, ...OPTIONS].map(
    (name) => [named(name), official(named(name), 'XFAIL', withoutXfail)] as const,
  ),
  ...['pytest_v2', 'astropy', 'scikit', 'sphinx'].map((name) => [named(name), pytestV2] as const),
  ...tokens(SAME).map((name) => [named(name), official(named(name))] as const),
  ['parse_log_sympy', official('parse_log_sympy', 'test_', withoutFileMark)],
  ['parse_log_gradle_custom', gradle],
  ['parse_log_react_pdf', files],
]);

/** A parser of the user's goes first. Undefined for a shape that is not known. */
export function rebenchShape(parsers: ParserRegistry | undefined, id: string): LogParser | undefined {
  const own = parsers && findParser(parsers, id);
  return own && !Object.values(OFFICIAL_PARSERS).includes(own) ? own : SHAPES.get(id);
}
