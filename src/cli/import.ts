/** `swebatch import`: results of others as runs of ours, with their verdicts where a report says them. */
import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Argv } from 'yargs';
import { z } from 'zod';
import { loadDataset } from '../dataset/load.ts';
import { readRunReport } from '../grading/imports.ts';
import type { Outcome } from '../outcome.ts';
import { importedName, readMiniRun } from '../report/importMiniRun.ts';
import { exportRun } from '../runner/exportRun.ts';
import { importRun } from '../runner/importRun.ts';
import { insertEvaluation } from '../store/evaluations.ts';
import { openStore, type Store } from '../store/open.ts';
import { type RunRow, runByName } from '../store/runs.ts';
import { trialLines } from '../store/trialLines.ts';
import { attemptById } from '../store/trials.ts';
import { CliError, databasePath, EXIT, printJson, resultsRoot, say } from './context.ts';
import { hubVariables } from './datasets.ts';
import { checkArgs } from './runArgs.ts';
import { jsonOption, outputOption, type Verb } from './verb.ts';
import { VERSION } from './version.ts';

const argsSchema = z.object({
  folder: z.string().min(1),
  output: z.string(),
  runId: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/, 'must be 1 to 100 of A-Z a-z 0-9 _ . -')
    .optional(),
  subset: z.string().min(1).optional(),
  split: z.string().min(1).optional(),
  dataDir: z.string().min(1).optional(),
  report: z.string().min(1).optional(),
  json: z.boolean(),
});

export const importVerb: Verb = {
  command: 'import <folder>',
  describe: 'take a mini-swe-agent output folder as a run',
  builder: (parser: Argv) =>
    parser
      .positional('folder', {
        type: 'string',
        demandOption: true,
        describe: 'holds preds.json and *.traj.json (formats 1 and 1.1)',
      })
      .option('output', outputOption)
      .option('run-id', {
        type: 'string',
        requiresArg: true,
        describe: "name of the run; default: the folder's",
      })
      .option('subset', {
        type: 'string',
        requiresArg: true,
        describe: 'its dataset, so that it can be graded and reported by repository',
      })
      .option('split', { type: 'string', requiresArg: true, describe: 'split of the dataset' })
      .option('data-dir', {
        type: 'string',
        requiresArg: true,
        describe: 'folder with local copies of the named datasets',
      })
      .option('report', {
        type: 'string',
        requiresArg: true,
        describe: 'run report of the SWE-bench harness or of sb-cli, for the verdicts',
      })
      .option('json', jsonOption)
      .example('$0 import ../mini-out --subset verified --report gpt.run.json', 'with dataset and verdicts'),
  async run(argv) {
    const args = checkArgs(argsSchema, argv);
    if (!statSync(args.folder, { throwIfNoEntry: false })?.isDirectory())
      throw new CliError(`${args.folder} is no folder`);
    const imported = readMiniRun(args.folder);
    for (const warning of imported.warnings) say(`warning: ${warning}`);
    if (imported.instances.length === 0) throw new CliError(`nothing to import in ${args.folder}`);
    const dataset = args.subset ? await datasetFor(args.subset, args) : null;
    const root = resultsRoot(args.output);
    mkdirSync(root, { recursive: true });
    const store = openStore(databasePath(root));
    try {
      const name = args.runId ?? importedName(args.folder).replace(/[^A-Za-z0-9_.-]/g, '_');
      if (runByName(store, name))
        throw new CliError(`there is a run ${name} already; choose another --run-id`);
      const run = importRun(store, {
        name,
        imported,
        rows: new Map(dataset?.rows.map((r) => [r.instance.instance_id, r]) ?? []),
        dataset: { source: args.subset ?? args.folder, revision: dataset?.revision ?? null },
        createdAt: new Date().toISOString(),
      });
      const verdicts = args.report ? importVerdicts(store, run, args.report) : 0;
      await exportRun({ store, run, dir: join(root, run.name), version: VERSION });
      if (args.json) printJson({ run: run.name, instances: imported.instances.length, verdicts });
      say(
        `imported ${imported.instances.length} instances${args.report ? ` and ${verdicts} verdicts` : ''} as run ${run.name}; look at it with "swebatch report ${run.name}"`,
      );
      return EXIT.done;
    } finally {
      store.close();
    }
  },
};

async function datasetFor(subset: string, args: z.infer<typeof argsSchema>) {
  const loaded = await loadDataset(subset, {
    ...(args.split ? { split: args.split } : {}),
    ...(args.dataDir ? { dataDir: args.dataDir } : {}),
    env: hubVariables(),
  });
  if (!loaded.ok) throw new CliError(loaded.problems.map((p) => p.message).join('\n'));
  return loaded.dataset;
}

const OUTCOME: Record<string, { outcome: Outcome; resolved: number | null } | undefined> = {
  resolved: { outcome: 'resolved', resolved: 1 },
  unresolved: { outcome: 'unresolved', resolved: 0 },
  empty_patch: { outcome: 'empty_patch', resolved: null },
  error: { outcome: 'infra', resolved: null },
};

function importVerdicts(store: Store, run: RunRow, path: string): number {
  const report = readRunReport(readFileSync(path, 'utf8'));
  if (!report.ok) throw new CliError(`${path} cannot be used: ${report.message}`);
  let count = 0;
  for (const line of trialLines(store, run.id)) {
    const verdict = OUTCOME[report.value.verdicts.get(line.instance_id) ?? ''];
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
      dialect: report.value.kind,
      ...verdict,
      resolved_strict: null,
      report: null,
      log: null,
      apply_method: null,
      exit_code: null,
      infra_reason: report.value.reasons[line.instance_id] ?? null,
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
