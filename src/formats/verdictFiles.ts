/** Verdicts that stand apart from a run: in a file or folder that --report names, or beside predictions. */
import { statSync } from 'node:fs';
import { percent } from '../base/text/numbers.ts';
import { exitClassOf, SEALED_CLASSES } from '../outcome.ts';
import { SourceError } from './foreignFile.ts';
import { type ForeignRun, type Printed, type ReadVerdicts, trialKey } from './foreignFormat.ts';
import { runFromInstanceReports, verdictsOfRunReport } from './harness/reports.ts';
import { verdictsOfLeaderboard } from './leaderboard/results.ts';
import { verdictsOfMap } from './pro/pro.ts';

/** The run with the verdicts of `report`; unchanged where none is named. Throws a SourceError. */
export function withReport(run: ForeignRun, report: string | undefined): ForeignRun {
  if (report === undefined) return run;
  const read = verdictsAt(report, run);
  return withPrinted({ ...run, verdicts: checked(read) }, read);
}

/** A run report, a leaderboard entry's results.json, verdicts by instance, or a folder of instance reports. */
function verdictsAt(path: string, run: ForeignRun): ReadVerdicts {
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found) throw new SourceError(`there is no report ${path}`);
  if (!found.isDirectory()) return verdictsOfLeaderboard(path, run.instances) ?? verdictsIn(path);
  const { verdicts } = runFromInstanceReports(path);
  if (verdicts.size === 0) throw new SourceError(`there are no instance folders in ${path}`);
  return { ok: true, verdicts };
}

/** Of a file that names all of its instances. */
export function verdictsIn(path: string): ReadVerdicts {
  const verdicts = verdictsOfMap(path);
  return verdicts ? { ok: true, verdicts } : verdictsOfRunReport(path);
}

export function checked(read: ReadVerdicts): ForeignRun['verdicts'] {
  if (!read.ok) throw new SourceError(read.message);
  return read.verdicts;
}

/** With a warning that says the number that the other tool states, where the same verdicts come to another one here. */
export function withPrinted(run: ForeignRun, read: ReadVerdicts): ForeignRun {
  if (!read.ok || !read.printed) return run;
  const ours = measuredOf(run);
  const same = read.printed.resolved === ours.resolved && read.printed.of === ours.of;
  return same ? run : { ...run, warnings: [...run.warnings, printedLine(read.printed, ours)] };
}

function printedLine(printed: Printed, ours: Printed): string {
  const [a, b] = [share(printed), share(ours)];
  const difference = a === null || b === null ? null : 100 * (b - a);
  const apart =
    difference === null || Math.abs(difference) < 0.05
      ? ''
      : ` (${difference > 0 ? '+' : ''}${difference.toFixed(1)} points: what has no verdict is missing here and a failure there)`;
  return `its own number is ${rateText(printed)}; here it is ${rateText(ours)}${apart}`;
}

/** A trial that infrastructure lost, or that has no verdict, is no failure. */
function measuredOf({ instances, verdicts }: ForeignRun): Printed {
  const found = instances.flatMap((instance) => {
    // The harness never runs an empty patch: it is a failure of a run that was graded.
    const unseen = verdicts.size > 0 && instance.modelPatch === '' ? ('empty_patch' as const) : undefined;
    const verdict = verdicts.get(trialKey(instance))?.verdict ?? unseen;
    const counts = SEALED_CLASSES.has(exitClassOf(instance.exitReason));
    return counts && (verdict === 'resolved' || verdict === 'unresolved' || verdict === 'empty_patch')
      ? [verdict]
      : [];
  });
  return { resolved: found.filter((verdict) => verdict === 'resolved').length, of: found.length };
}

const share = ({ resolved, of }: Printed): number | null => (of > 0 ? resolved / of : null);

function rateText(printed: Printed): string {
  const part = share(printed);
  return `${printed.resolved} of ${printed.of}${part === null ? '' : ` = ${percent(part)}`}`;
}
