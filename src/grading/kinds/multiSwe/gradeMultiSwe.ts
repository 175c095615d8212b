/** Multi-SWE-bench: its image brings the script that applies the fix and runs the tests. */
import type { Instance } from '../../../dataset/instance.ts';
import { ParserError } from '../../parsers/logParser.ts';
import type { GradingKind } from '../gradingKind.ts';
import { type Judged, notGradable, planOwnRules } from '../ownRules.ts';
import { contradicts, type MultiRow, multiRowSchema, multiVerdict } from './multiVerdict.ts';
import type { Shape } from './shape.ts';
import { shapeOf } from './shapesByRepo.ts';

const FIX_PATCH = '/home/fix.patch';
const SCRIPT = 'bash /home/fix-run.sh\n';

/** The verdict on the text of a run. */
export function judgeMultiLog(row: MultiRow, shape: Shape, log: string): Judged {
  const lost = (message: string): Judged => ({ ok: false, outcome: 'invalid', message, log });
  try {
    const sets = shape(log);
    const twice = contradicts(sets);
    if (twice !== undefined) return lost(`the log says of ${twice} that it passed and that it did not`);
    if (sets.passed.size + sets.failed.size + sets.skipped.size === 0)
      return lost('the log names no test at all');
    return { ok: true, verdict: multiVerdict(row, sets), log, applied: !/^error: /m.test(log) };
  } catch (error) {
    if (!(error instanceof ParserError)) throw error;
    return lost(`the log cannot be read: ${error.message}`);
  }
}

const filled = (value: unknown): boolean => typeof value === 'string' && value !== '';

export const multiSwe: GradingKind = {
  name: 'multi-swe-bench',
  plan(instance: Instance, { dialect }) {
    const { extra, repo } = instance;
    if (filled(extra.number_interval) || filled(extra.tag))
      return notGradable(
        instance,
        'the shape of its log goes by a range of numbers, which is not known here',
      );
    const shape = shapeOf(repo, Number(extra.number));
    if (!shape) return notGradable(instance, `the shape of the logs of ${repo} is not known here`);
    const row = multiRowSchema.safeParse(extra);
    if (!row.success) return notGradable(instance, 'its run_result and test_patch_result cannot be read');
    return planOwnRules(
      {
        ...{ instance, script: SCRIPT, cwd: '/home' },
        decides: { row: row.data },
        files: (patch) => ({ [FIX_PATCH]: patch }),
        judge: async (_, run) => judgeMultiLog(row.data, shape, run.log),
      },
      dialect,
    );
  },
};
