/** `swebatch import`: results of others as runs of ours: mini-swe-agent's folders, and what the harness or sb-cli reported. */
import { mkdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { loadDataset } from '../../dataset/read/loadDataset.ts';
import type { Outcome } from '../../outcome.ts';
import { exportRun } from '../../runner/record/exportRun.ts';
import { importedName } from '../../service/import/importedName.ts';
import { importRun } from '../../service/import/importRun.ts';
import { readMiniRun } from '../../service/import/readMiniRun.ts';
import {
  type GradedElsewhere,
  type RunReportVerdicts,
  runFromInstanceReport,
  runFromInstanceReports,
  runFromReport,
  type Verdicts,
  verdictsOfLeaderboard,
  verdictsOfRunReport,
} from '../../service/import/readReports.ts';
import { commandOn, databasePath, resultsRoot } from '../../service/resultsRoot.ts';
import { UserError } from '../../service/userError.ts';
import { VERSION } from '../../service/version.ts';
import { openStore, type Store } from '../../store/open.ts';
import { insertEvaluation } from '../../store/records/evaluations.ts';
import { type RunRow, runByName } from '../../store/records/runs.ts';
import { trialLines } from '../../store/records/trialResults.ts';
import { attemptById } from '../../store/records/trials.ts';
import { filled, runName } from '../flags/checks.ts';
import { json, output } from '../flags/commonFlags.ts';
import { type Args, flags } from '../flags/flags.ts';
import { defineVerb } from '../flags/verb.ts';
import { EXIT, printJson, say } from '../terminal/context.ts';
import { hubVariables } from './datasets.ts';

const importFlags = flags({
  source: {
    type: 'string',
    place: 'required',
    check: z.string().min(1),
    describe:
      "mini-swe-agent's folder (preds.json, *.traj.json), the harness's logs/run_evaluation folder or a report.json in it, or a run report of the harness or of sb-cli",
  },
  output,
  runId: {
    type: 'string',
    check: runName('must be 1 to 100 of A-Z a-z 0-9 _ . -'),
    describe: "name of the run; default: the source's",
  },
  subset: {
    type: 'string',
    check: filled,
    describe: 'its dataset, so that it can be graded and reported by repository',
  },
  split: { type: 'string', check: filled, describe: 'split of the dataset' },
  dataDir: {
    type: 'string',
    check: filled,
    describe: 'folder with local copies of the named datasets',
  },
  report: {
    type: 'string',
    check: filled,
    describe:
      "run report of the harness or of sb-cli, a leaderboard entry's results.json, or a folder of instance reports: the verdicts",
  },
  json,
});
type ImportArgs = Args<typeof importFlags>;

export const importVerb = defineVerb({
  name: 'import',
  describe: 'take what another tool ran or graded as a run',
  flags: importFlags,
  examples: [
    ['$0 import gpt.run.json --subset verified', 'verdicts of the harness or of sb-cli'],
    ['$0 import ../mini-out --subset verified --report gpt.run.json', 'with dataset and verdicts'],
  ],
  async run(args) {
    const { imported, verdicts } = read(args);
    for (const warning of imported.warnings) say(`warning: ${warning}`);
    if (imported.problems.length > 0) throw new UserError(imported.problems.join('\n'));
    if (imported.instances.length === 0)
      throw new UserError(`nothing to import in ${args.source}`, {
        hint: 'it holds neither trajectories, predictions nor reports',
      });
    const dataset = args.subset ? await datasetFor(args.subset, args) : null;
    const root = resultsRoot(args.output);
    mkdirSync(root, { recursive: true });
    const store = openStore(databasePath(root));
    try {
      const name = args.runId ?? importedName(args.source);
      if (resolve(args.source) === join(root, name))
        throw new UserError(
          `${args.source} is where the files of run ${name} would be written; choose another --run-id`,
        );
      if (runByName(store, name))
        throw new UserError(`there is a run ${name} already; choose another --run-id`);
      const run = importRun(store, {
        name,
        imported,
        rows: new Map(dataset?.rows.map((r) => [r.instance.instance_id, r]) ?? []),
        dataset: { source: args.subset ?? args.source, revision: dataset?.revision ?? null },
        createdAt: new Date().toISOString(),
      });
      const judged = importVerdicts(store, run, verdicts);
      await exportRun({ store, run, dir: join(root, run.name), version: VERSION });
      if (args.json) printJson({ run: run.name, instances: imported.instances.length, verdicts: judged });
      say(
        `imported ${imported.instances.length} instances${verdicts.size > 0 ? ` and ${judged} verdicts` : ''} as run ${run.name}; look at it with ${commandOn(root, `report ${run.name}`)}`,
      );
      return EXIT.done;
    } finally {
      store.close();
    }
  },
});

/** A folder of trajectories or predictions, a folder of instance reports, or a run report. */
function read({ source, report }: ImportArgs): GradedElsewhere {
  const found = statSync(source, { throwIfNoEntry: false });
  if (!found) throw new UserError(`there is no ${source}`);
  if (!found.isDirectory())
    return runFromInstanceReport(source) ?? runFromReport(source, checked(verdictsOfRunReport(source)));
  const mini = readMiniRun(source);
  const run =
    mini.instances.length > 0 || mini.problems.length > 0
      ? { imported: mini, verdicts: new Map() }
      : runFromInstanceReports(source);
  return report === undefined ? run : { ...run, verdicts: verdictsAt(report, run.imported) };
}

/** A run report, a leaderboard entry's results.json, or a folder of instance reports. */
function verdictsAt(path: string, run: GradedElsewhere['imported']): Verdicts {
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found) throw new UserError(`--report: there is no file ${path}`);
  if (!found.isDirectory()) return checked(verdictsOfLeaderboard(path, run) ?? verdictsOfRunReport(path));
  const { verdicts } = runFromInstanceReports(path);
  if (verdicts.size === 0) throw new UserError(`--report: there are no instance folders in ${path}`);
  return verdicts;
}

function checked(read: RunReportVerdicts): Verdicts {
  if (!read.ok) throw new UserError(read.message);
  return read.verdicts;
}

async function datasetFor(subset: string, args: ImportArgs) {
  const loaded = await loadDataset(subset, {
    ...(args.split ? { split: args.split } : {}),
    ...(args.dataDir ? { dataDir: args.dataDir } : {}),
    env: hubVariables(),
  });
  if (!loaded.ok) throw new UserError(loaded.problems.map((p) => p.message).join('\n'));
  return loaded.dataset;
}

const OUTCOME: Record<string, { outcome: Outcome; resolved: number | null } | undefined> = {
  resolved: { outcome: 'resolved', resolved: 1 },
  unresolved: { outcome: 'unresolved', resolved: 0 },
  empty_patch: { outcome: 'empty_patch', resolved: null },
  error: { outcome: 'infra', resolved: null },
};

function importVerdicts(store: Store, run: RunRow, verdicts: Verdicts): number {
  let count = 0;
  for (const line of trialLines(store, run.id)) {
    const found = verdicts.get(line.instance_id);
    const verdict = found && OUTCOME[found.verdict];
    const attempt = line.attempt_id === null ? undefined : attemptById(store, line.attempt_id);
    if (!verdict || !attempt) continue;
    count += 1;
    insertEvaluation(store, {
      run_id: run.id,
      trial_id: line.trial_id,
      attempt_id: attempt.id,
      instance_id: line.instance_id,
      model: line.model,
      patch_sha256: attempt.patch_sha256 ?? '',
      spec_hash: '',
      dialect: found.grader,
      ...verdict,
      resolved_strict: null,
      report: found.report,
      log: null,
      apply_method: null,
      exit_code: null,
      infra_reason: found.reason,
      suspicion: '[]',
      error_message: null,
      network: null,
      image_digest: null,
      source: 'import',
      started_at: new Date().toISOString(),
      duration_ms: null,
    });
  }
  return count;
}
