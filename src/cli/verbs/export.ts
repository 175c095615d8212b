/** `swebatch export RUN WHAT`: the run's files made again from the database, tables for other tools, or a leaderboard entry. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parse } from 'yaml';
import { writeAtomically } from '../../base/files/atomicWrite.ts';
import { VERSION } from '../../base/files/packageFile.ts';
import { pathInside } from '../../base/files/pathInside.ts';
import { inert } from '../../base/text/inert.ts';
import { WRITTEN_ATTEMPTS, WRITTEN_FORMATS } from '../../formats/formats.ts';
import { instanceFolder } from '../../formats/harness/logFolders.ts';
import { publishedMessages } from '../../model/dialects/published/publishedMessages.ts';
import { exportSummary } from '../../report/exportSummary.ts';
import { junitXml } from '../../report/gate/gateDocument.ts';
import { jsonText } from '../../report/render/document.ts';
import { trialsCsv } from '../../report/render/trialsCsv.ts';
import {
  parseMetadata,
  SPLITS,
  type Split,
  type SubmissionMetadata,
} from '../../report/submission/review.ts';
import { type SubmissionResult, writeSubmission } from '../../report/submission/writeSubmission.ts';
import {
  exportAttempts,
  exportConfig,
  exportManifest,
  exportPredictions,
  exportPredictionsFile,
  exportRecord,
  exportTrajectories,
} from '../../run/record/exportRun.ts';
import { partFolder } from '../../run/record/partFolder.ts';
import { recordedTrials } from '../../run/record/recordedReplies.ts';
import { recordingOf } from '../../run/record/recording.ts';
import { pricesOfRun } from '../../run/record/tokenPrices.ts';
import { openForReading, refuseShard, requireRun, resultsRoot } from '../../run/resultsRoot.ts';
import { redactorOfArms } from '../../run/secrets.ts';
import { reportData } from '../../run/standing.ts';
import { UserError } from '../../run/userError.ts';
import type { Store } from '../../store/open.ts';
import { armsOf, instancesOf, type RunRow } from '../../store/records/runs.ts';
import { exportHtml } from '../../viewer/bundle.ts';
import { filledText } from '../flags/checks.ts';
import { type Args, defineVerb, flags, json, namedRun, output, string } from '../flags/verb.ts';
import { EXIT, printData, printResult, say } from '../terminal/context.ts';

const FILES = ['all', 'preds', 'trajs', 'summary', 'manifest'] as const;
const TEXTS = ['csv', 'junit', 'config', 'html'] as const;
const wordsOf = (formats: readonly { readonly word: string }[]) => formats.map(({ word }) => word);
const ATTEMPT_FORMATS = wordsOf(WRITTEN_ATTEMPTS);
const RUN_FORMATS = wordsOf(WRITTEN_FORMATS);
const WHAT = [...FILES, ...TEXTS, ...ATTEMPT_FORMATS, 'recording', 'submission', ...RUN_FORMATS];
/** The first of each kind as an example, and what the others are called. */
const asExample = (formats: typeof WRITTEN_FORMATS) =>
  [
    `$0 export last ${formats[0]!.word}`,
    formats.map(({ word, writes }, nth) => (nth === 0 ? writes : `${word}: ${writes}`)).join('; '),
  ] as const;

const splits = Object.keys(SPLITS) as [Split, ...Split[]];

const submissionFlags = flags({
  arm: string('submission: which arm; needed with several'),
  split: { choices: splits, describe: 'submission: default from the dataset name' },
  system: filledText('submission: name of the system in the folder name'),
  metadata: string('submission: metadata.yaml to check and use'),
  acceptModelChange: { type: 'boolean', describe: 'submission: several answering models are meant' },
  acceptFindings: { type: 'boolean', describe: 'submission: findings of the secrets scan were looked at' },
});

const exportFlags = flags({
  run: namedRun,
  what: { choices: WHAT, default: 'all', place: 'optional' },
  output,
  to: string(
    "folder (or file for csv, junit, config, html, recording, preds, manifest); default: the run's folder, or stdout",
  ),
  emitEmpty: { type: 'boolean', describe: 'write "" for trials that were not decided' },
  json,
  ...submissionFlags,
});

export const exportVerb = defineVerb({
  name: 'export',
  describe:
    'predictions, trajectories, tables, the configuration, the model traffic, or a leaderboard submission',
  flags: exportFlags,
  examples: [
    ['$0 export last preds', 'preds.json and all_preds.jsonl'],
    ['$0 export last csv > trials.csv', 'one line a trial'],
    ['$0 export last html --to run.html', 'one page for a mail'],
    asExample(WRITTEN_ATTEMPTS),
    asExample(WRITTEN_FORMATS),
    ['$0 export r1 config | $0 run -c -', 'the same run again'],
    ['$0 export r1 recording --to r1.gz', 'for --model replay:r1.gz, on any machine'],
    ['$0 export r1 submission --split verified --metadata meta.yaml', 'a leaderboard entry'],
  ],
  async run(args) {
    const root = resultsRoot(args.output);
    using store = openForReading(root);
    const run = requireRun(store, args.run);
    if (args.arm !== undefined && args.what !== 'submission')
      throw new UserError('--arm chooses the arm of a submission; everything else is written for all arms');
    if (args.what === 'submission') return await submit(store, run, pathInside(root, run.name), args);
    const to = args.to ?? pathInside(root, run.name);
    const text = args.what === 'html' ? exportHtml(root, run.name) : textOf(store, run, args.what);
    const paths: string[] = [];
    if (RUN_FORMATS.includes(args.what)) {
      const { exportForeign } = await import('../../run/record/exportForeign.ts');
      const dir = args.to ?? join(to, args.what);
      paths.push(...(await exportForeign({ store, run, dir, version: VERSION }, args.what)));
    } else if (args.what === 'recording') paths.push(await writeRecording(store, run, to));
    else if (text === null) paths.push(...(await writeFiles(store, run, args, to)));
    else if (!args.to) {
      printData(text);
      return EXIT.done;
    } else {
      await writeAtomically(to, text);
      paths.push(to);
    }
    printResult(args.json, { run: run.name, written: paths }, () => paths.join('\n'));
    say(`${paths.length} file(s) written`);
    return EXIT.done;
  },
});

/** A folder gets recording.jsonl.gz. */
async function writeRecording(store: Store, run: RunRow, to: string): Promise<string> {
  const folder = statSync(to, { throwIfNoEntry: false })?.isDirectory() === true;
  const path = folder ? join(to, 'recording.jsonl.gz') : to;
  const facts = {
    program: `swebatch ${VERSION}`,
    run: run.name,
    config_hash: run.config_hash,
    dataset_hash: run.dataset_hash,
    arms: armsOf(store, run.id).map(({ name, model }) => ({ name, model })),
  };
  const { json } = redactorOfArms(process.env, run, armsOf(store, run.id));
  await writeAtomically(
    path,
    recordingOf(facts, () => recordedTrials(store, run), json),
  );
  return path;
}

async function writeFiles(
  store: Store,
  row: RunRow,
  args: Args<typeof exportFlags>,
  dir: string,
): Promise<string[]> {
  const run = args.emitEmpty === undefined ? row : { ...row, emit_empty: args.emitEmpty ? 1 : 0 };
  const target = { store, run, dir, version: VERSION };
  const all = args.what === 'all';
  const written: string[] = [];
  const isFile = /\.jsonl?$/.test(dir) && !statSync(dir, { throwIfNoEntry: false })?.isDirectory();
  if (isFile && args.what === 'preds') return [await exportPredictionsFile(target, dir)];
  if (isFile && args.what === 'manifest') return [await exportManifest(target, dir)];
  if (all || args.what === 'preds') written.push(...(await exportPredictions(target)));
  if (all || args.what === 'trajs') written.push(...(await exportTrajectories(target)));
  const isOfAttempts = ATTEMPT_FORMATS.includes(args.what);
  if (isOfAttempts) written.push(...(await exportAttempts(target, args.what)));
  if (all || args.what === 'trajs' || isOfAttempts) written.push(await exportRecord(target));
  if (all || args.what === 'manifest') {
    written.push(await exportManifest(target));
  }
  if (all || args.what === 'summary') {
    const { paths } = await exportSummary(reportData(store, run.id)!, dir, pricesOfRun);
    written.push(...paths);
  }
  return written;
}

function textOf(store: Store, run: RunRow, what: string): string | null {
  if (what === 'config')
    return exportConfig(
      run,
      instancesOf(store, run.id).map((i) => i.instance_id),
    );
  if (what !== 'csv' && what !== 'junit') return null;
  const data = reportData(store, run.id)!;
  return what === 'csv' ? trialsCsv(data) : junitXml(data);
}

async function submit(
  store: Store,
  run: RunRow,
  /** DIR/<run> */
  folder: string,
  args: Args<typeof exportFlags>,
): Promise<number> {
  refuseShard(run, 'an entry is a whole run');
  const arms = armsOf(store, run.id);
  const found = args.arm === undefined ? arms : arms.filter((a) => a.name === args.arm);
  const [arm] = found;
  if (!arm || found.length !== 1)
    throw new UserError(
      args.arm === undefined ? `${run.name} has several arms` : `${run.name} has no arm "${args.arm}"`,
      { hint: `--arm is one of: ${arms.map((a) => inert(a.name)).join(', ')}` },
    );
  const logs = pathInside(folder, partFolder(store, run, arm.name, 1));
  const result = await writeSubmission({
    store,
    data: reportData(store, run.id)!,
    arm: arm.name,
    target: args.to ?? join(folder, 'submission'),
    split: args.split ?? splitOf(run.dataset_source),
    system: args.system ?? 'swebatch',
    metadata: args.metadata === undefined ? null : readMetadata(args.metadata),
    acceptModelChange: args.acceptModelChange ?? false,
    acceptFindings: args.acceptFindings ?? false,
    redactor: redactorOfArms(process.env, run, arms),
    logsFolder: dirname(instanceFolder(logs, run.name, arm.model, 'instance')),
    version: VERSION,
    published: publishedMessages,
  });
  if (args.json) printData(jsonText(result));
  return tell(result, args.json);
}

/** "SWE-bench_Verified_test.parquet" is the split verified; without a hint the board's own name for the whole benchmark. */
function splitOf(source: string): Split {
  const name = source.toLowerCase();
  return splits.find((s) => s !== 'test' && name.includes(s)) ?? 'test';
}

function readMetadata(path: string): SubmissionMetadata {
  if (!existsSync(path)) throw new UserError(`--metadata: there is no file ${path}`);
  let value: unknown;
  try {
    value = parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new UserError(`--metadata: ${path} is not YAML: ${(error as Error).message}`);
  }
  const found = parseMetadata(value);
  if (found.ok) return found.metadata;
  throw new UserError(`${path} would not be accepted:\n${found.problems.map((p) => `  ${p}`).join('\n')}`);
}

function tell(result: SubmissionResult, json: boolean): number {
  if (!result.ok) {
    say(`refused: ${result.problems.map(inert).join('\n         ')}`);
    // Incomplete work has its own exit code; everything else is for the submitter to mend.
    return result.problems.some(
      (p) => / unresolved; \d+\/\d+ predictions$/.test(p) || p.includes('without a verdict'),
    )
      ? EXIT.incomplete
      : EXIT.usage;
  }
  if (!json) printData(result.folder);
  for (const warning of result.warnings) say(`warning: ${inert(warning)}`);
  say(
    `${result.resolved}/${result.total} resolved · ${result.files} files · ${(result.bytes / 1e6).toFixed(1)} MB · hashes in ${result.manifest}`,
  );
  say('logs/ and trajs/ may be ignored by the repository: add the entry with "git add -f"');
  return EXIT.done;
}
