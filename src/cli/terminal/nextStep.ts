/** Commands and flags that messages offer. */
import { relative } from 'node:path';
import { resultsRoot } from '../../run/resultsRoot.ts';
import type { NextStep } from '../../run/userError.ts';

/** A command to copy; it has -o unless the results root is the default one. */
export function commandOn(root: string, words: string): string {
  if (root === resultsRoot(undefined)) return `"swebatch ${words}"`;
  const near = relative('', root);
  const path = near.startsWith('..') ? root : near || '.';
  return `"swebatch ${words} -o ${/^[\w./+@:-]+$/.test(path) ? path : `'${path}'`}"`;
}

const STEPS: { readonly [Do in Exclude<NextStep['do'], 'list_runs' | 'grade_run' | 'resume_run'>]: string } =
  {
    start_run: 'start one with "swebatch run", or name another results root with -o',
    name_results: 'name another results root with -o',
    name_dataset: 'add --subset, or set dataset.subset in the configuration',
    choose_name: 'choose another --run-id',
    allow_change:
      'choose another --run-id, restore what changed, or continue with --allow-config-change (recorded as a boundary)',
    set_baseline: 'set one with "swebatch baseline set RUN"',
    find_baseline: 'swebatch baseline show, swebatch ls; "last" takes the newest comparable run',
    skip_remeasuring: 'leave --remeasure out',
    skip_unsupported: 'leave them out with --skip-unsupported, or choose others with -i, --filter or --slice',
    check_engine: 'start it, or see "swebatch doctor"',
  };

/** The verb or flag for a next step. */
export function nextStepText(next: NextStep): string {
  if (next.do === 'list_runs') return `list them with ${commandOn(next.results, 'ls')}`;
  if (next.do === 'grade_run') return `grade it with ${commandOn(next.results, `evaluate ${next.run}`)}`;
  if (next.do === 'resume_run') return `go on with ${commandOn(next.results, `resume ${next.run}`)}`;
  return STEPS[next.do];
}
