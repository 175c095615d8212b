/**
 * SWE-bench-Live: rows that bring their commands and their log parser. The commands run in the row's image, and the parser, ours for pytest or
 * the row's own in Python, reads what they print.
 */

import { z } from 'zod';
import { tokens, withoutAnsi } from '../../base/python/text.ts';
import { stringOf } from '../../base/text/contentText.ts';
import { type Instance, imageOf } from '../../dataset/instance.ts';
import type { RawRow } from '../../dataset/read/row.ts';
import type { Environment } from '../../environment/environment.ts';
import type { GradeRequest, PlannedGrading } from '../../grading/gradingFrame.ts';
import {
  type Expected,
  type Judged,
  listsOf,
  lostResult,
  notGradable,
  planOwnRules,
  type SetVerdict,
  textInside,
} from '../../grading/ownRules.ts';
import { type Asker, askStatuses } from '../../grading/parserContainer.ts';
import { STATUS_WORDS } from '../../grading/parsers/logParser.ts';
import type { TestRun } from '../../grading/patchAndTests.ts';
import type { SpecOptions } from '../../grading/specs/spec.ts';
import type { Suite } from '../suite.ts';
import { packageOf } from '../sweBench/sweBench.ts';
export const live: Suite = {
  probes: packageOf,
  rows: { columns },
  refusal: ({ image }) =>
    image?.includes('sweb.eval.win.') ? 'its image is one of Windows containers' : undefined,
  grading,
};

const IMAGE_COLUMNS = ['image', 'image_name', 'docker_image'] as const;

/** Most rows name no image; the convention differs from the official one only in the namespace. */
function columns(raw: RawRow): RawRow {
  if (IMAGE_COLUMNS.some((name) => raw[name] != null)) return raw;
  const id = stringOf(raw.instance_id).toLowerCase().replaceAll('__', '_1776_');
  return { ...raw, image: `starryzhang/sweb.eval.x86_64.${id}` };
}

// Test statuses as SWE-bench-Live names them, and its own reader for pytest. Pure.

/** Words of others are kept: only those with "pass" or "fail" in them count. */
type LiveStatuses = ReadonlyMap<string, string>;

/** The statuses as its evaluation reads a log of pytest: an expected failure counts as a failure there. */
export function livePytest(log: string): LiveStatuses {
  const found = new Map<string, string>();
  for (const line of log.split('\n')) {
    if (!STATUS_WORDS.some((word) => line.startsWith(word))) continue;
    const [status, name] = tokens(line.startsWith('FAILED') ? line.replaceAll(' - ', ' ') : line);
    if (status === undefined || name === undefined) continue;
    const word = status.toLowerCase();
    found.set(name, word.includes('pass') ? 'pass' : word.includes('skip') ? 'skip' : 'fail');
  }
  return found;
}

/** Names whose status has a word in it. */
const namesWith = (statuses: LiveStatuses, word: 'pass' | 'fail'): ReadonlySet<string> =>
  new Set([...statuses].filter(([, status]) => status.toLowerCase().includes(word)).map(([name]) => name));

/**
 * The commands that SWE-bench-Live types into one shell of the container: patch of the tests, patch of the model, rebuild, tests, and what prints the
 * results. Only what the last one prints is the log. Pure.
 */
const LIVE = { folder: '/mnt_tmp', log: '/mnt_tmp/swebatch_log.txt' } as const;

interface LiveCommands {
  readonly rebuild: readonly string[];
  readonly test: readonly string[];
  readonly print: readonly string[];
}

const APPLY = 'git apply --reject  --whitespace=nowarn ';

/** An `export` or a `cd` of one command holds for the next, because all of them run in one shell. */
export function liveScript({ rebuild, test, print }: LiveCommands): string {
  const joined = (commands: readonly string[]) => commands.join(' ; ');
  const own = joined(print).trim() !== '';
  const tests = own ? joined(test) : 'bash run_test.sh > testlog.out 2>&1';
  return `
cd /testbed
${APPLY} ${LIVE.folder}/test.patch
${APPLY} ${LIVE.folder}/fix.patch || echo '>>>>> Patch Apply Failed'
${joined(rebuild)}
${own ? '' : `cp ${LIVE.folder}/run_test.sh run_test.sh`}
${tests}
{
${own ? joined(print) : 'cat testlog.out'}
} > ${LIVE.log} 2>&1
`;
}

/** The text of `run_test.sh`, for rows without commands that print. */
const runTestScript = ({ test }: LiveCommands): string => `${test.join(' ; ')}\n`;

const commands = z.array(z.string()).nullish();
const rowSchema = z.object({
  test_cmds: z.array(z.string()).min(1),
  rebuild_cmds: commands,
  print_cmds: commands,
});

/**
 * No expected test failed, and every F2P test passed. A P2P test that the log does not name, or that was skipped, is
 * tolerated. An F2P list that names a test twice counts as long as its set.
 */
export function noneFailed(
  expected: Expected,
  passed: ReadonlySet<string>,
  failed: ReadonlySet<string>,
): SetVerdict {
  const status = listsOf(
    expected,
    (name) => passed.has(name),
    (name) => failed.has(name),
  );
  const broken = [...expected.failToPass, ...expected.passToPass].some((name) => failed.has(name));
  return { resolved: !broken && expected.failToPass.every((name) => passed.has(name)), status };
}

/** The verdict on the statuses of a run. */
export function judgeLive(instance: Instance, statuses: LiveStatuses) {
  const { FAIL_TO_PASS: failToPass, PASS_TO_PASS: passToPass } = instance;
  return noneFailed({ failToPass, passToPass }, namesWith(statuses, 'pass'), namesWith(statuses, 'fail'));
}

async function judge(
  instance: Instance,
  parser: string,
  environment: Environment,
  run: TestRun,
  request: GradeRequest,
): Promise<Judged> {
  const printed = await textInside(environment, LIVE.log, request.signal);
  if (printed === undefined) return lostResult('its commands did not come to their end', run.log);
  const log = withoutAnsi(printed.text).replaceAll('\r', '');
  const read = isPytest(parser) ? livePytest(log) : await runRowParser(parser, log, instance, request);
  if ('ok' in read) return { ...read, log };
  if (read.size === 0) return lostResult('its log names no test at all', log);
  const applied = !run.log.split('\n').includes('>>>>> Patch Apply Failed');
  return { ok: true, verdict: judgeLive(instance, read), log, applied };
}

const isPytest = (parser: string): boolean => parser.trim().toLowerCase() === 'pytest';
const isPython = (parser: string): boolean => /^(?:async )?def parser\(/m.test(parser);

function grading(instance: Instance, { harness }: SpecOptions): PlannedGrading {
  const row = rowSchema.safeParse(instance.extra);
  if (!row.success) return notGradable(instance, 'its test_cmds cannot be read');
  const given = instance.log_parser ?? instance.extra.parser;
  const parser = typeof given === 'string' ? given : '';
  if (!isPytest(parser) && !isPython(parser))
    return notGradable(instance, `its log parser ${JSON.stringify(parser.slice(0, 40))} is not known here`);
  const { test_cmds: test, rebuild_cmds, print_cmds } = row.data;
  const asked = { test, rebuild: rebuild_cmds ?? [], print: print_cmds ?? [] };
  return planOwnRules(
    {
      instance,
      script: liveScript(asked),
      cwd: '/testbed',
      decides: { parser, testPatch: instance.test_patch },
      files: (patch) => ({
        [`${LIVE.folder}/test.patch`]: instance.test_patch,
        [`${LIVE.folder}/fix.patch`]: patch,
        [`${LIVE.folder}/run_test.sh`]: runTestScript(asked),
      }),
      judge: (environment, run, request) => judge(instance, parser, environment, run, request),
    },
    harness,
  );
}

// A log parser that a row brings as Python source.

/** Asked for where the image of the row has no Python. */
const PYTHON_IMAGE = 'python:3.12-slim';

const RUNNER = `namespace = {}
with open('parser.py', encoding='utf-8') as source:
    exec(compile(source.read(), 'parser.py', 'exec'), namespace)
with open('log.txt', encoding='utf-8', errors='replace', newline='') as log:
    answer = namespace['parser'](log.read()) or {}`;

/** Runs a row's parser in a fresh container of the row's image, or of an image of Python where that has none. */
export const runRowParser = (
  source: string,
  log: string,
  instance: Pick<Instance, 'instance_id' | 'image'>,
  request: Asker,
) =>
  askStatuses(
    {
      instanceId: instance.instance_id,
      images: [imageOf(instance), PYTHON_IMAGE],
      program: RUNNER,
      files: { 'parser.py': source, 'log.txt': log },
    },
    request,
  );
