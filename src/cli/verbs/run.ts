/** `swebatch run`: an agent over a selection of a dataset. The same run id again goes on where it stopped. */
import { mkdirSync } from 'node:fs';
import { loadDataset } from '../../dataset/read/loadDataset.ts';
import { datasetHash } from '../../dataset/record.ts';
import { selectInstances } from '../../dataset/select/select.ts';
import { armCrash } from '../../runner/control/crash.ts';
import { type ArmConfig, planRun, type RunRequest } from '../../runner/schedule/planRun.ts';
import { gatherManifest } from '../../service/manifest/manifest.ts';
import { armProblems, preflight } from '../../service/plan/preflight.ts';
import {
  commandOn,
  databasePath,
  openForReading,
  requireRun,
  resultsRoot,
} from '../../service/resultsRoot.ts';
import { checkSameImages, checkSameRun } from '../../service/start/continuity.ts';
import { openReplay } from '../../service/start/replayModel.ts';
import { UserError } from '../../service/userError.ts';
import { openStore, type Store } from '../../store/open.ts';
import { insertRun, type RunRow, runByName } from '../../store/records/runs.ts';
import { trialLines } from '../../store/records/trialResults.ts';
import { reopenTrials } from '../../store/records/trials.ts';
import { executeRun, withRunLock } from '../execute.ts';
import { type ResolvedConfig, resolveConfig } from '../flags/configOptions.ts';
import { type RunArgs, runFlags } from '../flags/runFlags.ts';
import { defineVerb } from '../flags/verb.ts';
import { judgeNight, requireBaseline } from '../night.ts';
import { thisProcess } from '../terminal/caller.ts';
import { EXIT, env, say } from '../terminal/context.ts';
import { printPlan } from '../terminal/printPlan.ts';
import { hubVariables } from './datasets.ts';

export const runVerb = defineVerb({
  name: 'run',
  describe: 'run an agent over a dataset; the same --run-id again goes on where it stopped',
  flags: runFlags,
  examples: [
    ['$0 run --subset verified --slice 0:5 -m gpt-5.4 -w 4 --evaluate', 'five instances, graded'],
    ['$0 run --subset lite -c swebench.yaml -c agent.step_limit=100 -m gpt-5.4', 'with a configuration'],
    ['$0 run --subset data.jsonl -m a -m b --epochs 3 --dry-run', 'the plan of two arms and three epochs'],
  ],
  async run(args) {
    const caller = thisProcess();
    armCrash(env('SWEBATCH_CRASH_AT'));
    const resolved = await resolveConfig(args);
    for (const warning of resolved.warnings) say(`warning: ${warning}`);
    const request = await requestFor(args, resolved);
    if (args.dryRun) {
      for (const problem of await armProblems(resolved, caller))
        say(`warning: a run would be refused: ${problem}`);
      return printPlan(request, args);
    }
    await preflight(resolved, caller);
    const root = resultsRoot(args.output);
    mkdirSync(root, { recursive: true });
    const store = openStore(databasePath(root));
    try {
      if (args.baseline) requireBaseline(store, args.baseline, request);
      const code = await withRunLock(store, root, request.name, async () => {
        // Looked up under the lock: another process may have begun the run of this name a moment ago.
        const existing = runByName(store, request.name);
        const run = existing ?? (await newRun(store, request, resolved, args));
        if (existing) {
          checkSameRun(store, existing, request, { allow: args.allowConfigChange, tell: caller.tell });
          await checkSameImages(store, existing, request.arms, {
            allow: args.allowConfigChange,
            env: caller.env,
          });
          if (args.redoExisting) redo(store, existing, request);
        }
        return executeRun({
          store,
          root,
          run: runByName(store, run.name)!,
          config: request.run,
          grading: request.grading,
          images: resolved.images,
          arms: request.arms,
          json: args.json,
          progress: args.progress,
          choose: chooserFor(store, run, request),
        });
      });
      // A night whose budget ended is judged on what it has, without spending more; that it ended stays its exit code.
      const ended = code === EXIT.budget;
      if (!args.baseline || !(code === EXIT.done || code === EXIT.incomplete || ended)) return code;
      const night = ended ? { ...args, remeasure: 0 } : args;
      const verdict = await judgeNight({
        store,
        root,
        runName: request.name,
        args: night,
        json: args.json,
        progress: args.progress,
        config: request.run,
      });
      return ended || verdict === EXIT.done ? code : verdict;
    } finally {
      store.close();
    }
  },
});

/** Only trials of what is selected now: a run that goes on may be asked for a part of itself. */
function chooserFor(store: Store, run: RunRow, request: RunRequest) {
  const wanted = new Set(request.selected.map((s) => s.instance.instance_id));
  const ids = new Set(
    trialLines(store, run.id)
      .filter((l) => wanted.has(l.instance_id))
      .map((l) => l.trial_id),
  );
  return <T extends { id: number }>(trials: readonly T[]) => trials.filter((t) => ids.has(t.id));
}

function redo(store: Store, run: RunRow, request: RunRequest): void {
  const wanted = new Set(request.selected.map((s) => s.instance.instance_id));
  reopenTrials(
    store,
    trialLines(store, run.id)
      .filter((l) => wanted.has(l.instance_id) && l.state === 'sealed')
      .map((l) => l.trial_id),
  );
}

async function newRun(
  store: Store,
  request: RunRequest,
  resolved: ResolvedConfig,
  args: RunArgs,
): Promise<RunRow> {
  const manifest = await gatherManifest(request, resolved, {
    ...thisProcess(),
    failedIn: args.failedIn,
  });
  return insertRun(store, planRun({ ...request, manifest }));
}

/** Dataset and selection: everything that can be wrong is said here, before anything is started or paid. */
async function requestFor(args: RunArgs, resolved: ResolvedConfig): Promise<RunRequest> {
  const { rows_sha256: expected, ...wanted } = resolved.dataset;
  if (!wanted.subset)
    throw new UserError('--subset is missing, and the configuration names no dataset.subset', {
      hint: 'a file (data.jsonl, data.parquet), a folder, or verified, lite, full, multilingual, multimodal',
    });
  const loaded = await loadDataset(wanted.subset, {
    split: wanted.split,
    revision: wanted.revision,
    ...(args.dataDir ? { dataDir: args.dataDir } : {}),
    env: hubVariables(),
  });
  if (!loaded.ok)
    throw new UserError(
      `the dataset cannot be used; ${loaded.problems.length} problem(s), nothing was started:\n${loaded.problems.map((p) => `  ${p.message}`).join('\n')}`,
    );
  const { dataset } = loaded;
  const ids = idsFor(args, wanted.instances);
  const selection = selectInstances(dataset.rows, {
    shuffle: wanted.shuffle ?? false,
    filter: wanted.filter,
    slice: wanted.slice,
    ids,
    limit: wanted.limit,
    sample: wanted.sample,
    stratify: wanted.stratify
      ?.split(',')
      .map((c) => c.trim())
      .filter(Boolean),
    seed: wanted.seed,
  });
  if (selection.kind === 'invalid') throw new UserError(selection.problems.join('\n'));
  if (selection.kind === 'empty') throw new UserError(selection.message);
  for (const warning of selection.warnings) say(`warning: ${warning}`);
  const selected = selection.rows.map(({ row, weight }) => ({
    instance: row.instance,
    rowHash: row.rowHash,
    weight,
  }));
  checkRows(expected, selected, dataset.revision);
  return {
    name: args.runId ?? defaultRunName(),
    createdAt: new Date().toISOString(),
    arms: resolved.arms.map((arm) => asRecorded(arm, args)),
    run: resolved.run,
    grading: resolved.grading,
    images: resolved.images,
    configHash: resolved.hash,
    dataset: {
      source: dataset.source,
      split: dataset.split,
      revision: dataset.revision,
      fileHash: dataset.fileHash,
      count: dataset.rows.length,
      // With the ids that --failed-in came to: another database knows no such run.
      wanted: { ...wanted, ...(ids && { instances: ids }) },
    },
    selected,
    strata: selection.strata,
    manifest: {},
  };
}

/** The configuration of an earlier run says which rows it had: other rows are another run. */
function checkRows(
  expected: string | undefined,
  selected: RunRequest['selected'],
  revision: string | null,
): void {
  if (expected === undefined || datasetHash(selected) === expected) return;
  throw new UserError(
    `the dataset is not the one that the configuration was exported with: its ${selected.length} selected rows (revision ${revision ?? 'not known'}) differ from dataset.rows_sha256`,
    {
      hint: 'name the dataset with its revision (--subset, --revision), or remove dataset.rows_sha256 to run on these rows',
    },
  );
}

/** A replay predicts under the name of the model that it plays. */
function asRecorded(arm: ArmConfig, args: RunArgs): ArmConfig {
  const name = arm.model.model_name ?? '';
  if (!name.startsWith('replay:')) return arm;
  let store: Store | undefined;
  const open = () => {
    store ??= openForReading(resultsRoot(args.output));
    return store;
  };
  try {
    const { arms } = openReplay(name.slice('replay:'.length), open, arm.name);
    return { ...arm, predictsAs: arms[0]!.model };
  } finally {
    store?.close();
  }
}

function idsFor(args: RunArgs, named: readonly string[] | undefined): string[] | undefined {
  if (!args.failedIn) return named && [...named];
  const store = openForReading(resultsRoot(args.output));
  try {
    const run = requireRun(store, args.failedIn);
    const lines = trialLines(store, run.id);
    if (!lines.some((l) => l.outcome !== null))
      throw new UserError(`run ${run.name} has no verdicts`, {
        hint: `grade it with ${commandOn(resultsRoot(args.output), `evaluate ${run.name}`)}`,
      });
    const failed = new Set(lines.filter((l) => l.resolved !== 1).map((l) => l.instance_id));
    return named ? named.filter((id) => failed.has(id)) : [...failed];
  } finally {
    store.close();
  }
}

/** Sorted by time and free of what a path or a label dislikes. */
function defaultRunName(): string {
  const stamp = new Date().toISOString().replace(/[-:]/g, '').replace('T', '-').slice(0, 15);
  return `run-${stamp}-${Math.random().toString(36).slice(2, 6)}`;
}
