/** SWE-bench-Live: the row's commands run in its image, and its parser, ours for pytest or its own in Python, reads what they print. */
import { z } from 'zod';
import { withoutAnsi } from '../../../base/python/text.ts';
import { type Instance, imageOf } from '../../../dataset/instance.ts';
import type { Environment } from '../../../environment/environment.ts';
import type { TestRun } from '../../runTests.ts';
import type { GradingKind, KindGradeRequest } from '../gradingKind.ts';
import { type Judged, notGradable, planOwnRules, textInside } from '../ownRules.ts';
import { runRowParser } from '../rowParser.ts';
import { noneFailed } from '../setVerdict.ts';
import { LIVE, liveScript, runTestScript } from './liveScript.ts';
import { type LiveStatuses, livePytest, namesWith } from './liveStatuses.ts';

const commands = z.array(z.string()).nullish();
const rowSchema = z.object({
  test_cmds: z.array(z.string()).min(1),
  rebuild_cmds: commands,
  print_cmds: commands,
});

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
  request: KindGradeRequest,
): Promise<Judged> {
  const printed = await textInside(environment, LIVE.log, request.signal);
  const log = withoutAnsi(printed?.text ?? '').replaceAll('\r', '');
  if (printed === undefined)
    return { ok: false, outcome: 'invalid', message: 'its commands did not come to their end', log: run.log };
  const where = { instanceId: instance.instance_id, image: imageOf(instance) };
  const parsed = isPytest(parser)
    ? ({ ok: true, statuses: livePytest(log) } as const)
    : await runRowParser(parser, log, where, request);
  if (!parsed.ok) return { ...parsed, log };
  if (parsed.statuses.size === 0)
    return { ok: false, outcome: 'invalid', message: 'its log names no test at all', log };
  const applied = !run.log.split('\n').includes('>>>>> Patch Apply Failed');
  return { ok: true, verdict: judgeLive(instance, parsed.statuses), log, applied };
}

const isPytest = (parser: string): boolean => parser.trim().toLowerCase() === 'pytest';
const isPython = (parser: string): boolean => /^(?:async )?def parser\(/m.test(parser);

export const live: GradingKind = {
  name: 'swe-bench-live',
  plan(instance, { dialect }) {
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
        ...{ instance, script: liveScript(asked), cwd: '/testbed' },
        decides: { parser, testPatch: instance.test_patch },
        files: (patch) => ({
          [`${LIVE.folder}/test.patch`]: instance.test_patch,
          [`${LIVE.folder}/fix.patch`]: patch,
          [`${LIVE.folder}/run_test.sh`]: runTestScript(asked),
        }),
        judge: (environment, run, request) => judge(instance, parser, environment, run, request),
      },
      dialect,
    );
  },
};
