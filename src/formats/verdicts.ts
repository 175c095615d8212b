/**
 * Verdicts that stand apart from a run: what a file or folder says of each instance. A run takes them in (--report, or beside its predictions), and a
 * comparison takes them as they stand. Read at once, because the library's `compare` is synchronous.
 */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { percent } from '../base/text/numbers.ts';
import { COUNTED_CLASSES, exitClassOf } from '../outcome.ts';
import { beginningOf, hasKeys, readForeignFile, usable } from './foreignFile.ts';
import {
  type ForeignInstance,
  type ForeignRun,
  type ForeignVerdict,
  type ForeignVerdicts,
  type Printed,
  type StatedVerdicts,
  trialKey,
} from './foreignFormat.ts';
import { instanceOfPrediction, runFromInstanceReports, statedByRunReport } from './harness/reports.ts';
import { RUN_REPORT_KEYS, readRunReport } from './harness/runReport.ts';
import { entryFolder, RESULTS, verdictsOfLeaderboard } from './leaderboard/results.ts';
import { isEmptyPatch, NO_MODEL, PREDICTIONS, parsePredictions } from './predictions.ts';
import { verdictsOfMap } from './pro/pro.ts';
import { SourceError } from './sourceError.ts';

/** A run report, a leaderboard entry's results.json, or verdicts by instance. Throws a SourceError for what is none of them, or is damaged. */
export function verdictsIn(path: string): StatedVerdicts {
  const stated = statedIn(path);
  if (typeof stated === 'string') throw new SourceError(`${path} cannot be used: ${stated}`);
  return stated;
}

/** The verdicts of a file; for a file of another kind, why it is no run report. */
function statedIn(path: string): StatedVerdicts | string {
  const read = readRunReport(readForeignFile(path));
  const report = usable(path, read);
  const stated = verdictsOfMap(path) ?? (report ? statedByRunReport(report) : verdictsOfLeaderboard(path));
  return stated ?? (read.ok ? '' : read.message);
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

/**
 * The run with the verdicts of `report`; without it with those that lie with it, which are of instance folders below or of a run report beside.
 * Folders say more of each instance, the report states a number too. `except`: a file that is no report.
 */
export function withReportNear(
  run: ForeignRun,
  folder: string,
  { report, except }: { readonly report?: string | undefined; readonly except?: string } = {},
): ForeignRun {
  if (report !== undefined) return withReport(run, report);
  const { verdicts, warnings } = runFromInstanceReports(
    folder,
    new Set(run.instances.map(({ instanceId }) => instanceId)),
  );
  const beside = reportBeside(folder, except);
  if (verdicts.size === 0) return beside ? withVerdicts(run, beside) : run;
  const graded = { ...run, verdicts, warnings: [...run.warnings, ...warnings] };
  return beside?.printed ? withPrinted(graded, beside.printed) : graded;
}

/** A file of predictions. */
export function readPredictionsFile(path: string): ForeignRun {
  const read = parsePredictions(readForeignFile(path), path);
  const instances = (read.ok ? read.predictions : []).map((each) =>
    instanceOfPrediction(each.instance_id, each.model_name_or_path, each.model_patch ?? ''),
  );
  const said = read.ok
    ? { warnings: read.warnings, problems: [] }
    : { warnings: [], problems: read.problems };
  return { folder: path, instances, verdicts: new Map(), ...said };
}

/** The run with the stated verdicts; where only some ids are named, every other instance is unresolved. Instances that never ran are missing. */
function withVerdicts(run: ForeignRun, stated: StatedVerdicts): ForeignRun {
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

/** The run with a warning of the other tool's number, where the same verdicts come to another one here. */
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
    const counts = COUNTED_CLASSES.has(exitClassOf(instance.exitReason));
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

/** Verdicts as a comparison takes them. */
export interface VerdictSheet {
  readonly label: string;
  readonly kind: StatedVerdicts['kind'] | 'predictions';
  readonly model: string | null;
  readonly verdicts: ForeignVerdicts;
  readonly open: StatedVerdicts['open'];
  readonly facts: ReadonlyMap<string, unknown>;
  readonly warnings: readonly string[];
}

/** Throws a SourceError that says what was expected of a file that cannot be read. */
export const readVerdictSheet = (path: string): VerdictSheet =>
  statSync(path).isDirectory() ? sheetOfFolder(path) : sheetOfFile(path);

function sheetOfFile(path: string): VerdictSheet {
  if (path.endsWith('.jsonl')) return sheetOfPredictions(path, labelOf(path));
  const stated = statedIn(path);
  if (typeof stated !== 'string') return sheetOf(stated, labelOf(path));
  try {
    return sheetOfPredictions(path, labelOf(path));
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

function sheetOfFolder(folder: string): VerdictSheet {
  const within = (names: readonly string[]) => names.map((name) => join(folder, name)).filter(existsSync);
  for (const path of within(RESULTS)) {
    const stated = statedIn(path);
    if (typeof stated !== 'string') return sheetOf(stated, labelOf(path));
  }
  const [predictions] = within(PREDICTIONS);
  if (predictions !== undefined) return sheetOfPredictions(predictions, basename(folder));
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
    const report = usable(path, readRunReport(readForeignFile(path)));
    if (report) return { ...statedByRunReport(report), path };
  }
  return null;
}

function sheetOf({ warnings, printed: _, ...stated }: StatedVerdicts, label: string): VerdictSheet {
  const rest = `${label} lists resolved ids only: every other instance is taken as unresolved`;
  const told = warnings.map((warning) => `${label} ${warning}`);
  return { ...stated, label, model: null, warnings: [...(stated.open ? [rest] : []), ...told] };
}

/** Reports lie beside predictions: per instance in any folder below, or a run report in the same folder. */
function sheetOfPredictions(path: string, label: string): VerdictSheet {
  const { instances, problems } = readPredictionsFile(path);
  if (problems.length > 0) throw new SourceError(problems.join('\n'));
  const named = instances[0]?.model ?? NO_MODEL;
  const model = named === NO_MODEL ? null : named;
  const ids = new Set(instances.map(({ instanceId }) => instanceId));
  const { verdicts: below } = runFromInstanceReports(dirname(path), ids);
  if ([...below.values()].every(({ verdict }) => verdict === 'error')) {
    const report = reportBeside(dirname(path), basename(path));
    if (report) return { ...sheetOf(report, label), model };
  }
  // Without any report nobody graded these, and an empty patch is a failure only of a graded side.
  const unseen = (patch: string | null): ForeignVerdict => ({
    ...{ reason: null, report: null, grader: 'harness' },
    ...(below.size > 0 && isEmptyPatch(patch)
      ? { verdict: 'empty_patch' }
      : { verdict: 'pending', lost: 'not_graded' }),
  });
  const bare = `no reports were found beside ${label}: nothing of it can be compared`;
  return {
    label,
    kind: 'predictions',
    model,
    verdicts: new Map(
      instances.map(({ instanceId: id, modelPatch }) => [id, below.get(id) ?? unseen(modelPatch)]),
    ),
    open: null,
    facts: new Map(),
    warnings: below.size === 0 ? [bare] : [],
  };
}
