/**
 * SWE-rebench V2: rows with an install_config and an image of its own namespace. Both patches, then the test commands of the row; the tests
 * that passed have to be exactly the expected ones. Logs are read here, or by its own Python in a container without network.
 */

import { z } from 'zod';
import { digitsEnd, isSpaceAt, strip, stripEnd, tokens } from '../../base/python/text.ts';
import type { Instance } from '../../dataset/instance.ts';
import type { RawRow } from '../../dataset/read/row.ts';
import type { PlannedGrading } from '../../grading/gradingFrame.ts';
import {
  allPassed,
  type Expected,
  type Judged,
  lostResult,
  notGradable,
  planOwnRules,
  type SetVerdict,
  textInside,
} from '../../grading/ownRules.ts';
import { type Asker, askStatuses, parserImage } from '../../grading/parserContainer.ts';
import {
  byLine,
  type LogParser,
  ParserError,
  statusAtEitherEnd,
  stripped,
} from '../../grading/parsers/logParser.ts';
import {
  findParser,
  OFFICIAL_PARSERS,
  type ParserRegistry,
  SAME_PARSER,
} from '../../grading/parsers/parserRegistry.ts';
import type { SpecOptions } from '../../grading/specs/spec.ts';
import type { Suite } from '../suite.ts';
import { packageOf } from '../sweBench/sweBench.ts';

const folderOf = ({ repo }: Instance): string => `/${repo.split('/')[1] ?? ''}`;

export const rebenchV2: Suite = {
  probes: packageOf,
  rows: { columns },
  needs: (instance) => ({ container: { cwd: folderOf(instance) } }),
  builds: ({ extra }) =>
    ITS_OWN.has(rowSchema.safeParse(extra.install_config).data?.log_parser ?? '') ? [REBENCH_IMAGE] : [],
  grading,
};

/** The dataset's dates are milliseconds. */
function columns(raw: RawRow): RawRow {
  const { created_at } = raw;
  if (typeof created_at !== 'number' || !Number.isFinite(created_at)) return raw;
  const date = new Date(created_at);
  return { ...raw, created_at: Number.isNaN(date.getTime()) ? String(created_at) : date.toISOString() };
}

const INSIDE = /\sin\s\d+(?:\.\d+)?\s(?:msec|sec)\b/gi;
const TIME = /^\d+(?:\.\d+)?(?:ms|s)$/i;
const LONGEST_TIME = 40;

/** A time between two brackets at the end of a name. */
function withoutBracket(name: string, open: string, close: string): string {
  const text = name.trimEnd();
  const at = text.lastIndexOf(open);
  if (!text.endsWith(close) || at < 0 || text.length - at > LONGEST_TIME) return name;
  return TIME.test(text.slice(at + 1, -1).replaceAll(/\s/g, '')) ? text.slice(0, at) : name;
}

/** Some runners write how long a test took into its name. */
export const withoutTiming = (name: string): string =>
  withoutBracket(withoutBracket(name, '[', ']').replace(INSIDE, ''), '(', ')').trim();

/** The tests that passed are exactly the expected ones, neither fewer nor more. */
export function sameSet(expected: Expected, passed: ReadonlySet<string>): SetVerdict {
  const names = {
    failToPass: expected.failToPass.map(withoutTiming),
    passToPass: expected.passToPass.map(withoutTiming),
  };
  const verdict = allPassed(names, passed);
  const listed = [...names.failToPass, ...names.passToPass].sort();
  const seen = [...passed].sort();
  const same = listed.length === seen.length && listed.every((name, at) => name === seen[at]);
  return { ...verdict, resolved: same };
}

/** Python reads a program's output so. */
const withoutReturns = (log: string): string => log.replaceAll('\r\n', '\n').replaceAll('\r', '\n');

const FOLDER = '/patches';
const APPLY = 'git apply -v --3way --recount --ignore-space-change --whitespace=nowarn';
const rowSchema = z.object({
  test_cmd: z.union([z.string().min(1), z.array(z.string())]),
  log_parser: z.string().min(1),
});

const [INNER, STDERR, APPLIED] = [`${FOLDER}/run.sh`, `${FOLDER}/stderr`, `${FOLDER}/applied`];

/** The first command that fails ends it, a patch that does not apply among them. */
const innerScript = (tests: readonly string[]): string =>
  [
    'set -e',
    'git reset --hard HEAD',
    `${APPLY} ${FOLDER}/patch.diff`,
    `${APPLY} ${FOLDER}/test_patch.diff`,
    `: >${APPLIED}`,
    ...tests,
    '',
  ].join('\n');

/** As its scripts/eval.py reads a container: all that came to standard output, then all of standard error. */
const rebenchScript = (folder: string): string =>
  [
    `cd ${folder}`,
    'export _JAVA_OPTIONS=-Djava.net.preferIPv6Addresses=false',
    `bash ${INNER} 2>${STDERR}`,
    'code=$?',
    `cat ${STDERR}`,
    'exit $code',
    '',
  ].join('\n');

function grading(instance: Instance, { harness, parsers }: SpecOptions): PlannedGrading {
  const row = rowSchema.safeParse(instance.extra.install_config);
  if (!row.success) return notGradable(instance, 'its install_config has no usable test_cmd and log_parser');
  const { test_cmd, log_parser } = row.data;
  const parser = rebenchShape(parsers, log_parser);
  if (!parser && !ITS_OWN.has(log_parser))
    return notGradable(instance, `the log shape "${log_parser}" is not known here`);
  const folder = folderOf(instance);
  const tests = (Array.isArray(test_cmd) ? test_cmd : [test_cmd]).filter((command) => command.trim() !== '');
  const expected = { failToPass: instance.FAIL_TO_PASS, passToPass: instance.PASS_TO_PASS };
  const judged = async (log: string, applied: boolean, request: Asker): Promise<Judged> => {
    const read = withoutReturns(log);
    try {
      const { instance_id: instanceId, version } = instance;
      const context = { instanceId, version, harness: harness ?? 'v5' };
      const found = parser?.(read, context) ?? (await rebenchStatuses(log_parser, read, instanceId, request));
      if ('ok' in found) return { ...found, log };
      const statuses = new Map([...found].map(([name, s]) => [withoutTiming(name), s]));
      const passed = new Set([...statuses].filter(([, s]) => s === 'PASSED').map(([name]) => name));
      return { ok: true, verdict: sameSet(expected, passed), log, applied };
    } catch (error) {
      if (!(error instanceof ParserError)) throw error;
      return lostResult(`the log cannot be read: ${error.message}`, log);
    }
  };
  return planOwnRules(
    {
      instance,
      script: rebenchScript(folder),
      cwd: '/',
      container: { cwd: folder },
      decides: { log_parser, tests, testPatch: instance.test_patch },
      files: (patch) => ({
        [`${FOLDER}/patch.diff`]: patch,
        [`${FOLDER}/test_patch.diff`]: instance.test_patch,
        [INNER]: innerScript(tests),
      }),
      judge: async (environment, run, request) => {
        const applied = (await textInside(environment, APPLIED, request.signal)) !== undefined;
        return judged(run.log, applied, request);
      },
    },
    harness,
  );
}

// Log shapes of SWE-rebench V2. Many have the names of SWE-bench's parsers, as those were before harness 5. Some of them differ: there an
// expected failure is no status, and Gradle may print a time behind the status. So no harness changes how its logs are read.

/** The official parser as it was in harness 4, over lines that `change` has rewritten where the log has the mark at all. */
const official =
  (id: string, mark?: string, change: (line: string) => string = (line) => line): LogParser =>
  (log, context) => {
    const read = mark !== undefined && log.includes(mark) ? log.split('\n').map(change).join('\n') : log;
    return OFFICIAL_PARSERS[id]!(read, { ...context, harness: 'v4.1' });
  };

const withoutXfail = (line: string) => (line.startsWith('XFAIL') ? '' : line);

/** `test_x ok  [OK]`: the last test of a file has the mark of the file behind it. */
function withoutFileMark(line: string): string {
  const text = strip(line);
  if (!text.startsWith('test_') || !(text.endsWith('[OK]') || text.endsWith('[FAIL]'))) return line;
  return text.slice(0, text.lastIndexOf('['));
}

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

const SAME = `django seaborn gotest redis jq doctest micropython_test googletest minitest cucumber ruby_unit rspec_transformed_json cargo
  phpunit maven ant calypso chart_js marked p5js jest jest_json vitest karma tap`;

const pytestV2 = statusAtEitherEnd(['PASSED', 'FAILED', 'SKIPPED', 'ERROR']);

const named = (name: string) => `parse_log_${name}`;
const SHAPES: ReadonlyMap<string, LogParser> = new Map([
  ...[
    'pytest',
    'pytest_options',
    'matplotlib',
    ...SAME_PARSER.parsePytest,
    ...SAME_PARSER.parsePytestOptions,
  ].map((name) => [named(name), official(named(name), 'XFAIL', withoutXfail)] as const),
  ...['pytest_v2', ...SAME_PARSER.parsePytestV2].map((name) => [named(name), pytestV2] as const),
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

// All other shapes are read by the suite's own Python.

const ITS_OWN: ReadonlySet<string> = new Set(
  tokens(`parse_combined_test_reports parse_test_report parse_java_mvn parse_java_mvn_v2 parse_log_cpp parse_log_cpp_v2 parse_log_cpp_v3
  parse_log_cpp_v4 parse_log_csharp parse_log_dart parse_log_dart_v2 parse_log_dart_v3 parse_log_dvc parse_log_elixir parse_log_gradlew_v1
  parse_log_haskell parse_log_haskell_v2 parse_log_java_mvn parse_log_java_mvn_v2 parse_log_js parse_log_js_2 parse_log_js_3 parse_log_js_4
  parse_log_julia parse_log_junit parse_log_kotlin_junit parse_log_lein parse_log_lua_nvim parse_log_npx parse_log_ocaml parse_log_ocaml_v2
  parse_log_ocaml_v3 parse_log_ocaml_v4 parse_log_ocaml_v5 parse_log_php_v1 parse_log_pydantic parse_log_pytest_nebo parse_log_r
  parse_log_r_junit parse_log_r_v2 parse_log_ruby_v1 parse_log_ruby_v2 parse_log_sbt parse_log_scala parse_log_scala_v2 parse_log_scala_v3
  parse_log_swift parse_logs_kotlin_junit parse_logs_r_junit parse_lua_nvim parse_lue_nvim`),
);

const SOURCE =
  'https://raw.githubusercontent.com/SWE-rebench/SWE-rebench-V2/c71902a8cf8d2b725f63d51f199f4d3e56f68d2d/lib/agent';
const PLACE = '/opt/swe-rebench-v2';
const SHA256 = 'a717b03efde1cb79dfb11e2a57d0262c0057d352a347a9fb09667ef6e5f6f20c';
export const REBENCH_IMAGE = parserImage(
  'FROM python:3.12-slim',
  `ADD ${SOURCE}/swe_constants.py ${SOURCE}/log_parsers.py ${PLACE}/lib/agent/`,
  `RUN cd ${PLACE}/lib/agent && echo "${SHA256}  log_parsers.py" | sha256sum -c && chmod a+r *`,
);

const PROGRAM = `import sys
sys.path.insert(0, '${PLACE}')
from lib.agent import log_parsers
with open('shape.txt', encoding='utf-8') as shape, open('log.txt', encoding='utf-8', newline='') as log:
    answer = getattr(log_parsers, shape.read())(log.read())`;

export const rebenchStatuses = (shape: string, log: string, instanceId: string, request: Asker) =>
  askStatuses(
    {
      instanceId,
      images: [REBENCH_IMAGE.image],
      program: PROGRAM,
      files: { 'shape.txt': shape, 'log.txt': log },
    },
    request,
  );
