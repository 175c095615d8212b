/**
 * SWE-rebench V2: rows with an install_config and an image of its own namespace. Both patches, then the test commands of the row; the tests
 * that passed have to be exactly the expected ones. A log shape that is not known is not gradable.
 */

import { z } from 'zod';
import type { Instance } from '../../dataset/instance.ts';
import type { RawRow } from '../../dataset/read/readColumns.ts';
import type { PlannedGrading } from '../../grading/gradingFrame.ts';
import { type Judged, notGradable, planOwnRules } from '../../grading/ownRules.ts';
import { ParserError } from '../../grading/parsers/logParser.ts';
import { allPassed, type Expected, type SetVerdict } from '../../grading/setVerdict.ts';
import type { SpecOptions } from '../../grading/specs/spec.ts';
import type { Suite } from '../suite.ts';
import { rebenchShape } from './rebenchShapes.ts';

const folderOf = ({ repo }: Instance): string => `/${repo.split('/')[1] ?? ''}`;

export const rebenchV2: Suite = {
  rows: { columns },
  needs: (instance) => ({ container: { cwd: folderOf(instance) } }),
  grading,
};

/** Its dates are milliseconds. */
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

const FOLDER = '/patches';
const APPLY = 'git apply -v --3way --recount --ignore-space-change --whitespace=nowarn';
const rowSchema = z.object({
  test_cmd: z.union([z.string().min(1), z.array(z.string())]),
  log_parser: z.string().min(1),
});

/** The first command that fails ends it, a patch that does not apply among them. */
const rebenchScript = (folder: string, tests: readonly string[]): string =>
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

function grading(instance: Instance, { dialect, parsers }: SpecOptions): PlannedGrading {
  const row = rowSchema.safeParse(instance.extra.install_config);
  if (!row.success) return notGradable(instance, 'its install_config has no usable test_cmd and log_parser');
  const { test_cmd, log_parser } = row.data;
  const parser = rebenchShape(parsers, log_parser);
  if (!parser) return notGradable(instance, `the log shape "${log_parser}" is not known here`);
  const folder = folderOf(instance);
  const tests = (Array.isArray(test_cmd) ? test_cmd : [test_cmd]).filter((command) => command.trim() !== '');
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
}
