/**
 * Verdicts that stand apart from a run: what a file or folder says of each instance. A run takes them in (--report, or beside its predictions), and a
 * comparison takes them as they stand. Read at once, because the library's `compare` is synchronous.
 */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { percent } from '../base/text/numbers.ts';
import { exitClassOf, SEALED_CLASSES } from '../outcome.ts';
import { beginningOf, checked, hasKeys, readForeignFile, SourceError } from './foreignFile.ts';
import {
  type ForeignInstance,
  type ForeignRun,
  type ForeignVerdict,
  type Printed,
  type StatedVerdicts,
  trialKey,
} from './foreignFormat.ts';
import { readInstanceReport } from './harness/instanceReport.ts';
import { FILES, findInstanceFolders } from './harness/logFolders.ts';
import { runFromInstanceReports, statedByRunReport, verdictsOfRunReport } from './harness/reports.ts';
import { type ReportedRun, RUN_REPORT_KEYS, readRunReport } from './harness/runReport.ts';
import { entryFolder, RESULTS, verdictsOfLeaderboard } from './leaderboard/results.ts';
import { isEmptyPatch, NO_MODEL, PREDICTIONS, type Prediction, parsePredictions } from './predictions.ts';
import { verdictsOfMap } from './pro/pro.ts';

/** A run report, a leaderboard entry's results.json, or verdicts by instance. Throws a SourceError for what is none of them, or is damaged. */
export function verdictsIn(path: string): StatedVerdicts {
  return statedIn(path) ?? checked(verdictsOfRunReport(path));
}

/** Null for a file of another kind. */
function statedIn(path: string): StatedVerdicts | null {
  const map = verdictsOfMap(path);
  if (map) return checked(map);
  const report = readRunReport(readForeignFile(path));
  if (report.ok) return statedByRunReport(report.value);
  if (report.fault === 'damaged') throw new SourceError(`${path}: ${report.message}`);
  const board = verdictsOfLeaderboard(path);
  return board && checked(board);
}

/** The run with the verdicts of `report`; unchanged where none is named. Throws a SourceError. */
export function withReport(run: ForeignRun, report: string | undefined): ForeignRun {
  if (report === undefined) return run;
  const found = statSync(report, { throwIfNoEntry: false });
  if (!found) throw new SourceError(`there is no report ${report}`);
  if (!found.isDirectory()) return withVerdicts(run, verdictsIn(report));
  const { verdicts } = runFromInstanceReports(report);
  if (verdicts.size === 0) throw new SourceError(`there are no instance folders in ${report}`);
  return { ...run, verdicts };
}

/** What was stated of the run's instances; where only some ids are named, every other instance is unresolved. What never ran is missing. */
export function withVerdicts(run: ForeignRun, stated: StatedVerdicts): ForeignRun {
  const has = new Set(run.instances.map(({ instanceId }) => instanceId));
  const rest = ({ modelPatch }: ForeignInstance): ForeignVerdict => ({
    verdict: modelPatch === '' ? 'empty_patch' : 'unresolved',
    reason: null,
    report: null,
    grader: 'harness',
  });
  const verdicts = stated.open
    ? new Map(
        run.instances.map((each) => [each.instanceId, stated.verdicts.get(each.instanceId) ?? rest(each)]),
      )
    : stated.verdicts;
  const missing = [...stated.verdicts].filter(([id, verdict]) => waits(verdict) && !has.has(id));
  const neverRun = [...(run.neverRun ?? []), ...missing.map(([instanceId]) => ({ instanceId }))];
  const told = stated.warnings.map((warning) => `${basename(run.folder)} ${warning}`);
  const whole = { ...run, verdicts, neverRun, warnings: [...run.warnings, ...told] };
  const printed = stated.printed && { ...stated.printed, of: stated.printed.of || run.instances.length };
  return printed ? withPrinted(whole, printed) : whole;
}

const waits = ({ verdict }: ForeignVerdict): boolean => verdict === 'incomplete' || verdict === 'pending';

/** With a warning that says the number that the other tool states, where the same verdicts come to another one here. */
export function withPrinted(run: ForeignRun, printed: Printed): ForeignRun {
  const ours = measuredOf(run);
  const same = printed.resolved === ours.resolved && printed.of === ours.of;
  return same ? run : { ...run, warnings: [...run.warnings, printedLine(printed, ours)] };
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

/** Whether it is resolved, or why a verdict is missing. */
type Stated = boolean | 'error' | 'incomplete' | 'infra' | 'no_logs' | 'not_graded';

export interface VerdictSheet {
  readonly label: string;
  readonly kind: StatedVerdicts['kind'] | 'predictions';
  readonly model: string | null;
  readonly verdicts: ReadonlyMap<string, Stated>;
  readonly open: StatedVerdicts['open'];
  readonly facts: ReadonlyMap<string, unknown>;
  readonly warnings: readonly string[];
}

/** Throws a SourceError: what cannot be read says what was expected. */
export const readVerdictSheet = (path: string): VerdictSheet =>
  statSync(path).isDirectory() ? readFolder(path) : readFile(path);

function readFile(path: string): VerdictSheet {
  if (path.endsWith('.jsonl')) return readPredicted(path);
  const stated = statedIn(path);
  if (stated) return sheetOf(stated, labelOf(path));
  try {
    return readPredicted(path);
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    throw new SourceError(
      `${path} is neither a run report (resolved_ids), leaderboard results (resolved), nor predictions (instance_id, model_patch):\n${error.message}`,
    );
  }
}

/** Leaderboard folders are named for the entry, not for the file inside. */
const labelOf = (path: string): string =>
  RESULTS.some((name) => basename(name) === basename(path))
    ? basename(entryFolder(path))
    : basename(path).replace(/\.jsonl?$/, '');

function readFolder(folder: string): VerdictSheet {
  for (const path of RESULTS.map((name) => join(folder, name)).filter(existsSync)) {
    const stated = statedIn(path);
    if (stated) return sheetOf(stated, labelOf(path));
  }
  for (const name of PREDICTIONS)
    if (existsSync(join(folder, name)))
      return { ...readPredicted(join(folder, name)), label: basename(folder) };
  const report = reportBeside(folder);
  if (report) return sheetOf(report, labelOf(report.path));
  throw new SourceError(`${folder} holds neither results.json, predictions nor a run report`);
}

/** The first run report that lies in a folder. Other files of JSON are not opened further than their beginning. */
export function reportBeside(
  folder: string,
  except?: string,
): (StatedVerdicts & { readonly path: string }) | null {
  for (const name of readdirSync(folder).sort()) {
    const path = join(folder, name);
    if (!name.endsWith('.json') || name === except) continue;
    const head = beginningOf(path, 65_536);
    if (!RUN_REPORT_KEYS.some((key) => hasKeys(head, key))) continue;
    const read = readRunReport(readForeignFile(path));
    if (read.ok) return { ...statedByRunReport(read.value), path };
    if (read.fault === 'damaged') throw new SourceError(`${path}: ${read.message}`);
  }
  return null;
}

/** Reports lie beside predictions: per instance in any folder below, or a run report in the same folder. */
function readPredicted(path: string): VerdictSheet {
  const read = parsePredictions(readForeignFile(path), path);
  if (!read.ok) throw new SourceError(read.problems.join('\n'));
  const { predictions } = read;
  const verdicts = verdictsBelow(dirname(path), new Set(predictions.map((p) => p.instance_id)));
  const label = labelOf(path);
  if ([...verdicts.values()].every((verdict) => verdict === null)) {
    const report = reportBeside(dirname(path), basename(path));
    if (report) return { ...sheetOf(report, label), model: modelOf(predictions) };
  }
  return sheetOfPredictions(predictions, verdicts, label);
}

/** logs/run_evaluation/<run>/<model>/<id>, or <id> beside the predictions; null where a report cannot be read, which is an error to the harness. */
function verdictsBelow(root: string, wanted: ReadonlySet<string>): Map<string, boolean | null> {
  return new Map(
    findInstanceFolders(root, wanted).map(({ path, name }) => {
      const file = join(path, FILES.report);
      const report = existsSync(file) ? readInstanceReport(readForeignFile(file), name) : null;
      return [name, report?.ok ? report.value.resolved : null];
    }),
  );
}

const STATED: Readonly<Record<ForeignVerdict['verdict'], Stated>> = {
  resolved: true,
  unresolved: false,
  empty_patch: false,
  error: 'error',
  pending: 'incomplete',
  incomplete: 'incomplete',
};

export const sheetOfRunReport = (report: ReportedRun, label: string): VerdictSheet =>
  sheetOf(statedByRunReport(report), label);

const sheetOf = ({ verdicts, warnings, ...stated }: StatedVerdicts, label: string): VerdictSheet => ({
  ...stated,
  label,
  model: null,
  verdicts: new Map([...verdicts].map(([id, { verdict, lost }]) => [id, lost ?? STATED[verdict]])),
  warnings: [
    ...(stated.open ? [`${label} lists resolved ids only: every other instance is taken as unresolved`] : []),
    ...warnings.map((warning) => `${label} ${warning}`),
  ],
});

function modelOf(predictions: readonly Prediction[]): string | null {
  const model = predictions[0]?.model_name_or_path ?? NO_MODEL;
  return model === NO_MODEL ? null : model;
}

/** `reports`: instance id to the harness's verdict; null where it ran and left none that can be read, absent where it never ran. */
function sheetOfPredictions(
  predictions: readonly Prediction[],
  reports: ReadonlyMap<string, boolean | null>,
  label: string,
): VerdictSheet {
  // Without any report nobody graded these, and an empty patch is a failure only of a graded side.
  const unseen = (patch: string | null): Stated =>
    reports.size > 0 && isEmptyPatch(patch) ? false : 'not_graded';
  return {
    label,
    kind: 'predictions',
    model: modelOf(predictions),
    verdicts: new Map(
      predictions.map(({ instance_id: id, model_patch: patch }) => {
        const verdict = reports.get(id);
        return [id, verdict === undefined ? unseen(patch) : (verdict ?? 'error')];
      }),
    ),
    open: null,
    facts: new Map(),
    warnings:
      reports.size === 0 ? [`no reports were found beside ${label}: nothing of it can be compared`] : [],
  };
}
