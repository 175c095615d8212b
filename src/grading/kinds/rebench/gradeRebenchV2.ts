/**
 * SWE-rebench V2: both patches, then the test commands of the row; the tests that passed have to be exactly the expected ones. A log shape
 * that is not known is not gradable.
 */
import { z } from 'zod';
import { ParserError } from '../../parsers/logParser.ts';
import type { GradingKind } from '../gradingKind.ts';
import { type Judged, notGradable, planOwnRules } from '../ownRules.ts';
import { sameSet, withoutTiming } from '../setVerdict.ts';
import { rebenchShape } from './rebenchShapes.ts';

const FOLDER = '/patches';
const APPLY = 'git apply -v --3way --recount --ignore-space-change --whitespace=nowarn';
const rowSchema = z.object({
  test_cmd: z.union([z.string().min(1), z.array(z.string())]),
  log_parser: z.string().min(1),
});

/** The first command that fails ends it, a patch that does not apply among them. */
export const rebenchScript = (folder: string, tests: readonly string[]): string =>
  [
    `cd ${folder}`,
    'export _JAVA_OPTIONS=-Djava.net.preferIPv6Addresses=false',
    'set -e',
    'git reset --hard HEAD',
    `${APPLY} ${FOLDER}/patch.diff`,
    `${APPLY} ${FOLDER}/test_patch.diff`,
    ...tests,
    '',
  ].join('\n');

export const rebenchV2: GradingKind = {
  name: 'swe-rebench-v2',
  plan(instance, { dialect, parsers }) {
    const row = rowSchema.safeParse(instance.extra.install_config);
    if (!row.success)
      return notGradable(instance, 'its install_config has no usable test_cmd and log_parser');
    const { test_cmd, log_parser } = row.data;
    const parser = rebenchShape(parsers, log_parser);
    if (!parser) return notGradable(instance, `the log shape "${log_parser}" is not known here`);
    const folder = `/${instance.repo.split('/')[1] ?? ''}`;
    const tests = (Array.isArray(test_cmd) ? test_cmd : [test_cmd]).filter(
      (command) => command.trim() !== '',
    );
    const expected = { failToPass: instance.FAIL_TO_PASS, passToPass: instance.PASS_TO_PASS };
    const judged = (log: string): Judged => {
      try {
        const context = {
          instanceId: instance.instance_id,
          version: instance.version,
          dialect: dialect ?? 'v5',
        };
        const statuses = new Map([...parser(log, context)].map(([name, s]) => [withoutTiming(name), s]));
        const passed = new Set([...statuses].filter(([, s]) => s === 'PASSED').map(([name]) => name));
        return { ok: true, verdict: sameSet(expected, passed), log, applied: !/^error: /m.test(log) };
      } catch (error) {
        if (!(error instanceof ParserError)) throw error;
        return { ok: false, outcome: 'invalid', message: `the log cannot be read: ${error.message}`, log };
      }
    };
    return planOwnRules(
      {
        ...{ instance, script: rebenchScript(folder, tests), cwd: '/', container: { cwd: folder } },
        decides: { log_parser, testPatch: instance.test_patch },
        files: (patch) => ({
          [`${FOLDER}/patch.diff`]: patch,
          [`${FOLDER}/test_patch.diff`]: instance.test_patch,
        }),
        judge: async (_, run) => judged(run.log),
      },
      dialect,
    );
  },
};
