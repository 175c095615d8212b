/**
 * `evaluate gold`: a run of the agent that applies the solutions of tasks, each in the environment where an agent would work, graded like
 * any other. What it resolves is how far this machine can be trusted with the dataset.
 */
import { sha256 } from '../../base/sha256.ts';
import { beginRun } from '../../run/begin.ts';
import type { Caller } from '../../run/caller.ts';
import { preflight } from '../../run/plan/preflight.ts';
import { plan } from '../../run/plan.ts';
import { hasBegun, makeAndOpen, requireRun } from '../../run/resultsRoot.ts';
import { type Calibrated, calibration } from '../../store/records/evaluations.ts';
import {
  type DatasetChoice,
  type EvaluateOptions,
  type Evaluation,
  evaluationOf,
  gradingConfig,
  requireParsers,
} from './gradeRun.ts';

interface GoldOptions extends EvaluateOptions {
  readonly dataset: DatasetChoice;
  readonly name?: string | undefined;
  /** How often each task is solved anew. */
  readonly repeat?: number | undefined;
}

export async function evaluateGold(
  options: GoldOptions,
  caller: Caller,
): Promise<Evaluation & { readonly calibration: readonly Calibrated[] }> {
  const { results: root, dataset, instances = [], grading = {}, again = false, repeat = 1 } = options;
  const config = gradingConfig(grading);
  await requireParsers(config, caller.cwd);
  const { subset, split, dataDir } = dataset;
  const planned = await plan(
    {
      ...{ results: root, name: options.name, dataDir, redoExisting: again },
      dataset: {
        ...{ subset, split, skip_unsupported: true },
        ...(instances.length > 0 && { instances: [...instances] }),
      },
      settings: {
        agent: { agent_class: 'oracle' },
        // A task may be solved without a change of its work tree.
        run: { epochs: repeat, workers: config.workers, breaker: { empty_patches: 0 } },
        grading: { ...grading, enabled: true },
      },
    },
    caller,
  );
  const { dataset: of, configHash, selected } = planned.request;
  const tag = sha256(JSON.stringify([of.source, of.split, of.fileHash, of.wanted, configHash])).slice(0, 8);
  const request = { ...planned.request, name: options.name ?? `evaluate-gold-${tag}` };
  await preflight(planned.resolved, caller, !hasBegun(root, request.name));
  using store = makeAndOpen(root);
  const outcome = await beginRun(store, { ...planned, request }, caller);
  const run = requireRun(store, request.name);
  const lost = outcome.counts.infra ?? 0;
  const ungraded = (outcome.graded?.ungraded ?? 0) + lost;
  const ids = new Set(selected.map(({ instance }) => instance.instance_id));
  return {
    ...(await evaluationOf({ store, root, run, config }, ungraded, outcome.interruptedBy)),
    calibration: calibration(store).filter((row) => ids.has(row.instance_id)),
  };
}
