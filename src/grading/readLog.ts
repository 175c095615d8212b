/** The way from the text of a finished evaluation to test statuses: markers, fallback, evidence, exit code. Pure. */
import { universalNewlines } from '../base/python/lines.ts';
import { SPACE } from '../base/python/text.ts';
import { type LogParser, type ParserContext, StatusMap } from './parsers/logParser.ts';

export const MARK = {
  applyFailed: '>>>>> Patch Apply Failed',
  applied: '>>>>> Applied Patch',
  start: '>>>>> Start Test Output',
  end: '>>>>> End Test Output',
  exitCode: '>>>>> Test Exit Code',
} as const;
/** A harness that reads logs in its own way. */
export type LogSuite = 'swe-gym';

const BAD_MARKS = [MARK.applyFailed, '>>>>> Reset Failed', '>>>>> Tests Errored', '>>>>> Tests Timed Out'];

/** The reasons why a log gives no statuses. The harness's report then says that the patch was not applied, whatever the reason. */
type NotFound = 'bad_mark' | 'no_markers' | 'no_evidence' | 'exit_code_contradicts';

export interface ReadLog {
  readonly statuses: ReadonlyMap<string, string>;
  readonly notFound: NotFound | undefined;
  readonly exitCode: number | null;
  /** The statuses come from outside the markers. */
  readonly fallback: boolean;
  /** The text between the markers. */
  readonly section: string;
  /** The whole log, with the line ends that the harness sees. */
  readonly log: string;
}

/** Signs that a test runner really ran, for parsers that record failures only. A count of zero does not count. */
const SUITE_RAN = [
  /Executed [1-9]\d{0,15} of \d/,
  /TOTAL: [1-9]\d{0,15} (?:SUCCESS|FAILED)/,
  /Tests:[\s\x1c-\x1f\x85]{1,1000}[1-9]/,
  /Test Suites:[\s\x1c-\x1f\x85]{1,1000}(?:\d{1,15} \w{1,64}, ){0,32}[1-9]\d{0,15} total/,
  /(?<![^\n])# tests [1-9]/,
  /': ok(?![^\n])/,
];
/** Signs that begin with a count: looked for by what follows it, because logs may be full of digits. */
const COUNTED: readonly (readonly [word: string, after: RegExp])[] = [
  [' passing', /^ passing/],
  [' spec', /^ specs?, \d{1,15} failures?/],
];
const LONGEST_COUNT = 16;
const LONGEST_REST = 64;

function endsInCount(log: string, end: number): boolean {
  for (let at = end - 1; at >= Math.max(0, end - LONGEST_COUNT) && /\d/.test(log[at]!); at--)
    if (log[at] !== '0') return true;
  return false;
}

function counted(log: string, word: string, after: RegExp): boolean {
  for (let at = log.indexOf(word); at >= 0; at = log.indexOf(word, at + 1))
    if (endsInCount(log, at) && after.test(log.slice(at, at + LONGEST_REST))) return true;
  return false;
}

export const suiteRan = (log: string): boolean =>
  SUITE_RAN.some((pattern) => pattern.test(log)) ||
  COUNTED.some(([word, after]) => counted(log, word, after));

function recordedExitCode(log: string): number | null {
  const at = new RegExp(`${MARK.exitCode}:[${SPACE}]*(-?\\d+)`).exec(log);
  return at === null ? null : Number(at[1]);
}

function between(log: string): string | undefined {
  const start = log.indexOf(MARK.start);
  if (start < 0 || !log.includes(MARK.end)) return undefined;
  const from = start + MARK.start.length;
  // As `split(START)[1].split(END)[0]`: up to the next start mark, the next end mark or the end.
  const next = log.indexOf(MARK.start, from);
  const section = next < 0 ? log.slice(from) : log.slice(from, next);
  const end = section.indexOf(MARK.end);
  return end < 0 ? section : section.slice(0, end);
}

const anyFailure = (statuses: ReadonlyMap<string, string>) =>
  [...statuses.values()].some((status) => status === 'FAILED' || status === 'ERROR');

const GYM_APPLIED = `${MARK.applied} (pred)`;

/** SWE-Gym sets no marks: it parses all of the log, once that shows that git applied some patch, which is the one of the row's tests. */
function gymSection(log: string): string | undefined {
  if (log.includes('Failed to reset task environment')) return undefined;
  if (!log.toLowerCase().includes('applied patch')) return undefined;
  const at = log.lastIndexOf(GYM_APPLIED);
  return at < 0 ? log : log.slice(at + GYM_APPLIED.length);
}

export function readLog(raw: string, parser: LogParser, context: ParserContext, suite?: LogSuite): ReadLog {
  const log = universalNewlines(raw);
  const exitCode = recordedExitCode(log);
  const none = (notFound: NotFound, section = ''): ReadLog => ({
    statuses: new StatusMap(),
    notFound,
    exitCode,
    fallback: false,
    section,
    log,
  });
  if (BAD_MARKS.some((mark) => log.includes(mark))) return none('bad_mark');
  const section = suite === undefined ? between(log) : gymSection(log);
  if (section === undefined) return none(suite === undefined ? 'no_markers' : 'bad_mark');

  const first = parser(section, context);
  const fallback = suite === undefined && first.size === 0;
  const statuses = fallback ? parser(log, context) : first;
  if (context.harness === 'v5') {
    if (statuses.size === 0 && !suiteRan(log)) return none('no_evidence', section);
    if (exitCode !== null && exitCode !== 0 && statuses.size > 0 && !anyFailure(statuses))
      return { ...none('exit_code_contradicts', section), statuses };
  }
  return { statuses, notFound: undefined, exitCode, fallback: fallback && statuses.size > 0, section, log };
}

// Signatures of a broken environment in a log. Advisory, as in the harness: a flagged instance keeps its verdict, so that printing one of these lines
// cannot take an instance out of the count.

export interface InfraSignature {
  readonly reason: string;
  readonly tier: 'environment' | 'ambiguous';
}

/** The signatures in order; the first hit wins. `(?<![^\n])` and `(?![^\n])` are Python's ^ and $ with MULTILINE. */
const SIGNATURES: readonly [reason: string, tier: InfraSignature['tier'], pattern: RegExp][] = [
  ['browser_launch_failed', 'environment', /Failed to launch|Failed to connect to the bus/],
  ['display_unavailable', 'environment', /cannot open display|Missing X server|unable to open X display/],
  ['out_of_memory', 'environment', /Cannot allocate memory|OutOfMemoryError|(?<![^\n])Killed(?![^\n])/],
  ['container_unavailable', 'environment', /Error response from daemon|Cannot connect to the Docker daemon/],
  ['network_unreachable', 'environment', /Could not resolve host|Temporary failure in name resolution/],
  ['missing_module', 'ambiguous', /Cannot find module|MODULE_NOT_FOUND|ModuleNotFoundError/],
  ['no_tests_collected', 'ambiguous', /no tests ran|collected 0 items/],
  ['tests_timed_out', 'ambiguous', /Timeout error: \d+ seconds exceeded/],
];

export function classifyLog(...texts: readonly string[]): InfraSignature | undefined {
  const text = universalNewlines(texts.join('\n'));
  const hit = SIGNATURES.find(([, , pattern]) => pattern.test(text));
  return hit && { reason: hit[0], tier: hit[1] };
}
