/**
 * R2E-Gym: the image keeps the tests and the command that runs them. An instance is resolved when the statuses in the short summary of
 * pytest are exactly the expected ones: no test more, none less, each with its status.
 */

import { strip } from '../../../base/python/text.ts';
import { r2eExpected, r2eNames } from '../../../dataset/kinds/r2eRows.ts';
import { R2E_PATH, r2eSetup } from '../../../dataset/kinds/r2eSetup.ts';
import { MARK } from '../../readLog.ts';
import type { GradingKind } from '../gradingKind.ts';
import { type Judged, notGradable, planOwnRules, textInside } from '../ownRules.ts';
import type { SetVerdict } from '../setVerdict.ts';

const FOLDER = '/swebatch-r2e';
const LOG = `${FOLDER}/tests.log`;

/** The repositories whose logs the suite has a parser for; it is the same for all of them. */
const REPOSITORIES = [
  ...['sympy', 'pandas', 'pillow', 'scrapy', 'pyramid', 'tornado', 'datalad'],
  ...['aiohttp', 'coveragepy', 'numpy', 'orange3'],
];

export const R2E_SCRIPT = [
  r2eSetup('run'),
  `git apply --whitespace=fix ${FOLDER}/patch.diff || echo '${MARK.applyFailed}'`,
  `bash /root/run_tests.sh > ${LOG} 2>&1`,
  '',
].join('\n');

const SUMMARY = 'short test summary info';
const STATUSES = ['PASSED', 'FAILED', 'ERROR'] as const;

/** A name is what stands behind the first `::`, further ones as dots. A line without any names the test "". */
const nameIn = (line: string): string => line.split('::').slice(1).join('.');

/** Statuses in the part between the first and the second such heading. */
export function r2eStatuses(raw: string): Map<string, string> {
  const log = raw.replace(/\x1b\[[0-9;]*m|\r/g, '');
  const found = new Map<string, string>();
  const part = log.split(SUMMARY, 2)[1];
  for (const line of strip(part ?? '').split('\n')) {
    const status = STATUSES.find((word) => line.includes(word));
    if (status === undefined) continue;
    const name = nameIn(line);
    found.set(status === 'PASSED' ? name : name.split(' - ', 1)[0]!, status);
  }
  return r2eNames(found);
}

export function judgeR2e(expected: ReadonlyMap<string, string>, log: string): SetVerdict {
  const found = r2eStatuses(log);
  const same = (name: string) => found.get(name) === expected.get(name);
  const names = [...expected.keys()];
  return {
    resolved: found.size === expected.size && names.every(same),
    status: {
      FAIL_TO_PASS: { success: [], failure: [] },
      PASS_TO_PASS: { success: names.filter(same), failure: names.filter((name) => !same(name)) },
      FAIL_TO_FAIL: { success: [], failure: [] },
      PASS_TO_FAIL: { success: [], failure: [] },
    },
  };
}

export const r2e: GradingKind = {
  name: 'r2e-gym',
  plan(instance, { dialect }) {
    const { repo, extra } = instance;
    const expected = r2eExpected(extra.expected_output_json);
    if (!expected || expected.size === 0)
      return notGradable(instance, 'its expected_output_json names no status of a test');
    if (!REPOSITORIES.includes(repo))
      return notGradable(instance, `the suite has no log parser for its repository "${repo.slice(0, 80)}"`);
    return planOwnRules(
      {
        ...{ instance, script: R2E_SCRIPT, cwd: '/testbed' },
        container: { cwd: '/testbed', env: { PATH: R2E_PATH } },
        decides: [...expected],
        files: (patch) => ({ [`${FOLDER}/patch.diff`]: patch }),
        judge: async (environment, run, { signal }): Promise<Judged> => {
          const printed = await textInside(environment, LOG, signal);
          const log = `${run.log}\n>>>>> tests.log\n${printed?.text ?? ''}`;
          const lost = (message: string): Judged => ({
            ...{ ok: false, outcome: 'invalid', message, log, counts: true },
          });
          if (printed === undefined) return lost('its tests were not run');
          if (!printed.whole) return lost('the log of its tests is too large to be read');
          if (!printed.text.includes(SUMMARY)) return lost('its log has no short summary of pytest');
          const applied = !run.log.split('\n').includes(MARK.applyFailed);
          return { ok: true, verdict: judgeR2e(expected, printed.text), log, applied };
        },
      },
      dialect,
    );
  },
};
