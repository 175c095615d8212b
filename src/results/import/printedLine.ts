/** The number that the other tool states, beside what the same verdicts come to here. Pure. */
import { exitClassOf, SEALED_CLASSES } from '../../outcome.ts';
import { percent } from '../../report/render/format.ts';
import { placeKey } from './importedRun.ts';
import type { GradedElsewhere, Printed } from './readReports.ts';

/** A trial that infrastructure lost, or that has no verdict, is no failure. */
export function measuredOf({ imported, verdicts }: GradedElsewhere): { resolved: number; of: number } {
  const found = imported.instances.flatMap((instance) => {
    // The harness never runs an empty patch: it is a failure of a run that was graded.
    const unseen = verdicts.size > 0 && instance.modelPatch === '' ? ('empty_patch' as const) : undefined;
    const verdict = verdicts.get(placeKey(instance))?.verdict ?? unseen;
    const counts = SEALED_CLASSES.has(exitClassOf(instance.exitReason));
    return counts && (verdict === 'resolved' || verdict === 'unresolved' || verdict === 'empty_patch')
      ? [verdict]
      : [];
  });
  return { resolved: found.filter((verdict) => verdict === 'resolved').length, of: found.length };
}

const share = ({ resolved, of }: Printed): number | null => (of > 0 ? resolved / of : null);
const text = (printed: Printed): string => {
  const part = share(printed);
  return `${printed.resolved} of ${printed.of}${part === null ? '' : ` = ${percent(part)}`}`;
};

export function printedLine(printed: Printed, run: GradedElsewhere): string {
  const ours = measuredOf(run);
  const [a, b] = [share(printed), share(ours)];
  const difference = a === null || b === null ? null : 100 * (b - a);
  const apart =
    difference === null || Math.abs(difference) < 0.05
      ? ''
      : ` (${difference > 0 ? '+' : ''}${difference.toFixed(1)} points: what has no verdict is missing here and a failure there)`;
  return `its own number is ${text(printed)}; here it is ${text(ours)}${apart}`;
}
