/** Files of the SWE-bench harness as a run: predictions and what was reported of them, run reports, folders of instance reports. */
import { existsSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { hasKeys, listingOf, topOf } from '../foreignFile.ts';
import type { Claim, ForeignFormat, ForeignRun, Listing, StatedVerdicts } from '../foreignFormat.ts';
import { RESOLVED_LIST } from '../leaderboard/results.ts';
import { readMiniFolder } from '../miniSweAgent/miniSweAgent.ts';
import { PREDICTIONS } from '../predictions.ts';
import { readPredictionsFile, reportBeside, verdictsIn, withPrinted, withReportNear } from '../verdicts.ts';
import { runFromInstanceReport, runFromReport } from './reports.ts';
import { RUN_REPORT_KEYS } from './runReport.ts';

const isRunReport = (head: string): boolean => RUN_REPORT_KEYS.some((key) => hasKeys(head, key));
/** A verdict of an instance; the leaderboard's results.json has a list there. */
const VERDICT = /"resolved"\s{0,100}:\s{0,100}(?:true|false)/;

const RUN_REPORT = { words: 'a run report of the harness', verdictsAlone: true };
const PREDICTED = { words: 'predictions', verdictsAlone: true };

export const harness: ForeignFormat = {
  recognise: ({ name, files, head }) =>
    files === null ? claimOfFile(name, head('')) : claimOfFolder(files, head),
  read(source, report) {
    const isFolder = statSync(source).isDirectory();
    const top = isFolder ? PREDICTIONS.map((name) => join(source, name)).find(existsSync) : source;
    return top !== undefined && (isFolder || isPredictions(top))
      ? readPredicted(source, top, report)
      : readPlain(source, report);
  },
};

function claimOfFile(name: string, head: string): Claim | null {
  if (name.endsWith('.jsonl')) return { ...PREDICTED, certain: 'sure', reads: 'below' };
  if (isRunReport(head)) return { ...RUN_REPORT, certain: 'likely' };
  if (name === 'report.json' && VERDICT.test(head) && !RESOLVED_LIST.test(head))
    return { words: 'an instance report of the harness', certain: 'likely' };
  return hasKeys(head, 'model_patch') ? { ...PREDICTED, certain: 'possible', reads: 'below' } : null;
}

function claimOfFolder(files: readonly string[], head: Listing['head']): Claim | null {
  const top = topOf(files);
  const predicted = PREDICTIONS.some((file) => top.includes(file));
  if (files.some((file) => /\/(?:report\.json|run_instance\.log)$/.test(file)))
    return predicted
      ? { words: "predictions with the harness's reports", certain: 'possible', verdictsAlone: true }
      : { words: 'instance reports of the harness', certain: 'possible' };
  if (predicted) return { ...PREDICTED, certain: 'possible' };
  return top.some((file) => file.endsWith('.json') && isRunReport(head(file)))
    ? { ...RUN_REPORT, certain: 'possible' }
    : null;
}

const isPredictions = (file: string): boolean =>
  claimOfFile(basename(file), listingOf(file)!.head(''))?.words === PREDICTED.words;

/** Mini-swe-agent's own names are read by its rules: broken lines are told, and the others are taken. */
function readPredicted(source: string, file: string, report: string | undefined): ForeignRun {
  const predicted = readPredictionsFile(file);
  const whole = file !== source && basename(file) !== 'predictions.jsonl' ? readPlain(source) : predicted;
  return withReportNear(whole, dirname(file), { report, except: basename(file) });
}

/** Trajectories, predictions or reports: files say by themselves what they are. */
export function readPlain(source: string, report?: string): ForeignRun {
  if (statSync(source).isDirectory()) {
    const run = readMiniFolder(source, report);
    const isEmpty = run.instances.length === 0 && run.problems.length === 0;
    const stated = isEmpty ? reportBeside(source) : null;
    return stated ? runOf(stated.path, stated) : run;
  }
  return runFromInstanceReport(source) ?? runOf(source, verdictsIn(source));
}

/** The verdicts of a file as the whole of a run. */
export function runOf(path: string, { verdicts, printed, warnings }: StatedVerdicts): ForeignRun {
  const run = runFromReport(path, verdicts);
  const told = warnings.map((warning) => `${basename(path)} ${warning}`);
  const whole = { ...run, warnings: [...run.warnings, ...told] };
  return printed ? withPrinted(whole, { ...printed, of: printed.of || run.instances.length }) : whole;
}
