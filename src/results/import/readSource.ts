/** Reads what another tool left, whatever it is, and finds its verdicts. Throws a UserError for what cannot be read. */
import { existsSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { PREDICTIONS } from '../../formats/sourceKind.ts';
import { UserError } from '../../run/userError.ts';
import type { ImportedRun } from './importedRun.ts';
import { kindOfSource } from './lookAtSource.ts';
import { printedLine } from './printedLine.ts';
import { readAtifFiles } from './readAtifFiles.ts';
import { readHarborJob } from './readHarborJob.ts';
import { readInspectLogs } from './readInspectLog.ts';
import { readMiniRun } from './readMiniRun.ts';
import { readPredictionsFile } from './readPredictionsFile.ts';
import {
  type GradedElsewhere,
  type RunReportVerdicts,
  runFromInstanceReport,
  runFromInstanceReports,
  runFromReport,
  type Verdicts,
  verdictsOfLeaderboard,
  verdictsOfRunReport,
} from './readReports.ts';

/** `report`: where the verdicts are, when they are not in the source. */
export async function readSource(source: string, report?: string | undefined): Promise<GradedElsewhere> {
  if (!existsSync(source))
    throw new UserError(`there is no file or folder ${source}`, {
      hint: 'name a folder of mini-swe-agent, logs/run_evaluation of the harness, or a run report',
    });
  const kind = kindOfSource(source);
  switch (kind) {
    case 'results_root':
      throw new UserError(`${source} is a results root of swebatch`, { hint: 'name its runs with -o' });
    case 'inspect_log':
    case 'inspect_logs':
      return (await readInspectLogs(source)) ?? readPlain(source, report);
    case 'harbor_job':
      return readHarborJob(source) ?? readPlain(source, report);
    case 'atif':
      return withReport(readAtifFiles(source), report);
    case 'leaderboard':
      return leaderboardEntry(source, report);
    case 'predictions':
    case 'graded_predictions':
      return predictions(source, report);
    default:
      return readPlain(source, report);
  }
}

/** Trajectories, predictions or reports: files say by themselves what they are. */
function readPlain(source: string, report: string | undefined): GradedElsewhere {
  if (!statSync(source).isDirectory()) {
    const single = runFromInstanceReport(source);
    if (single) return single;
    const read = verdictsOfRunReport(source);
    return withPrinted(runFromReport(source, checked(read)), read);
  }
  const mini = readMiniRun(source);
  if (mini.instances.length === 0 && mini.problems.length === 0)
    return withReport(runFromInstanceReports(source), report);
  const ids = new Set(mini.instances.map(({ instanceId }) => instanceId));
  return withReport({ imported: mini, verdicts: runFromInstanceReports(source, ids).verdicts }, report);
}

/** Mini-swe-agent's own names are read by its rules: broken lines are told, and the others are taken. */
function predictions(source: string, report: string | undefined): GradedElsewhere {
  const isFolder = statSync(source).isDirectory();
  const file = isFolder ? join(source, PREDICTIONS.find((name) => existsSync(join(source, name)))!) : source;
  const { run, report: beside } = readPredictionsFile(file);
  const whole = isFolder && basename(file) !== 'predictions.jsonl' ? readPlain(source, undefined) : run;
  const graded = { imported: whole.imported, verdicts: run.verdicts };
  if (report !== undefined) return withReport(graded, report);
  return beside ? withPrinted(graded, beside) : graded;
}

function withReport(run: GradedElsewhere, report: string | undefined): GradedElsewhere {
  if (report === undefined) return run;
  const read = verdictsAt(report, run.imported);
  return withPrinted({ ...run, verdicts: checked(read) }, read);
}

/** Its predictions are the instances; one that lists resolved ids alone would be a run in which everything is resolved. */
function leaderboardEntry(folder: string, report: string | undefined): GradedElsewhere {
  const run = readPlain(folder, undefined);
  if (run.imported.instances.length === 0)
    throw new UserError(`${folder} lists resolved instances and has no predictions`, {
      hint: 'compare reads it all the same: every other instance is taken as unresolved there',
    });
  const results = ['results/results.json', 'results.json'].map((name) => join(folder, name)).find(existsSync);
  return withReport({ ...run, imported: withoutTrajectories(run.imported) }, report ?? results);
}

/** Only mini-swe-agent leaves no trajectory where the environment did not start; entries of others may publish none at all. */
function withoutTrajectories(imported: ImportedRun): ImportedRun {
  if (imported.instances.some(({ file }) => file !== null)) return imported;
  return { ...imported, instances: imported.instances.map((each) => ({ ...each, exitReason: 'submitted' })) };
}

function withPrinted(run: GradedElsewhere, read: RunReportVerdicts): GradedElsewhere {
  const line = read.ok && read.printed ? [printedLine(read.printed, run)] : [];
  return { ...run, imported: { ...run.imported, warnings: [...run.imported.warnings, ...line] } };
}

/** A run report, a leaderboard entry's results.json, or a folder of instance reports. */
function verdictsAt(path: string, run: GradedElsewhere['imported']): RunReportVerdicts {
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found) throw new UserError(`there is no report ${path}`);
  if (!found.isDirectory()) return verdictsOfLeaderboard(path, run) ?? verdictsOfRunReport(path);
  const { verdicts } = runFromInstanceReports(path);
  if (verdicts.size === 0) throw new UserError(`there are no instance folders in ${path}`);
  return { ok: true, verdicts };
}

function checked(read: RunReportVerdicts): Verdicts {
  if (!read.ok) throw new UserError(read.message);
  return read.verdicts;
}
