/** A run in the form of another tool: what its writer asks for, from the record, one trial at a time. */
import { join } from 'node:path';
import { writeAtomically } from '../../base/files/atomicWrite.ts';
import { pathInside } from '../../base/files/pathInside.ts';
import { hubReposOf } from '../../dataset/read/locate.ts';
import { writerOf } from '../../formats/formats.ts';
import type { WrittenArm, WrittenRun, WrittenTrial, WrittenUsage } from '../../formats/writtenRun.ts';
import { type ScoredTrial, scoredTrials, scoreOf } from '../../report/measure/score.ts';
import type { Store } from '../../store/open.ts';
import { type AttemptRecord, attemptRecords, predictionRows } from '../../store/records/attemptBodies.ts';
import { type EndedCallRow, endedCalls } from '../../store/records/modelCalls.ts';
import type { ReportArm, RunData } from '../../store/records/runData.ts';
import { instancesOf } from '../../store/records/runs.ts';
import { reportData } from '../standing.ts';
import type { ExportTarget } from './exportRun.ts';
import { recordFile } from './recordFile.ts';

/** Returns what was written. */
export async function exportForeign(
  { store, run, dir, version }: ExportTarget,
  format: string,
): Promise<string[]> {
  const write = await writerOf(format);
  const data = reportData(store, run.id)!;
  const written: string[] = [];
  for (const { path, content } of write(writtenRun(store, data, version))) {
    await writeAtomically(pathInside(dir, path), content);
    written.push(join(dir, path));
  }
  return written;
}

function writtenRun(store: Store, data: RunData, version: string): WrittenRun {
  const { run, trials } = data;
  return {
    name: run.name,
    createdAt: run.createdAt,
    finishedAt: run.finishedAt,
    version,
    dataset: {
      source: run.datasetSource,
      repo: hubReposOf(run.datasetSource)[0] ?? null,
      revision: run.datasetRevision,
      hash: run.datasetHash,
    },
    ids: instancesOf(store, run.id).map(({ instance_id }) => instance_id),
    epochs: new Set(trials.map(({ epoch }) => epoch)).size,
    arms: data.arms.map((arm) => writtenArm(store, data, arm)),
    record: (arm) => Buffer.concat([...recordFile(store, run.id, arm)]),
  };
}

function writtenArm(store: Store, { run, trials }: RunData, { name, model, config }: ReportArm): WrittenArm {
  const rows = scoredTrials(trials.filter(({ arm }) => arm === name));
  const epochs = new Set(trials.map(({ epoch }) => epoch)).size;
  const { resolved, overInstances } = scoreOf(rows, epochs);
  const agent = config.agent as { agent_class?: unknown } | undefined;
  const score = overInstances ?? (resolved.p === null ? null : { mean: resolved.p, n: resolved.n });
  return {
    name,
    model,
    score: score && { mean: score.mean, n: score.n },
    agent:
      typeof agent?.agent_class === 'string' && agent.agent_class !== 'default'
        ? agent.agent_class
        : 'swebatch',
    *trials() {
      const byTrial = new Map(rows.map((row) => [trialKeyOf(row.trial), row]));
      const patches = new Map(predictionRows(store, run.id).map((row) => [trialKeyOf(row), row.modelPatch]));
      const calls = new Map<string, EndedCallRow[]>();
      for (const attempt of attemptRecords(store, run.id)) {
        if (attempt.arm !== name) continue;
        const key = trialKeyOf(attempt);
        const all = [...(calls.get(key) ?? []), ...endedCalls(store, attempt.attemptId)];
        calls.set(key, all);
        const row = byTrial.get(key);
        // Attempts of a trial come in their order, and the last of them has its result.
        if (row?.trial.attemptId !== attempt.attemptId) continue;
        yield trialOf(store, row, attempt, patches.get(key) ?? '', all);
        calls.delete(key);
      }
    },
  };
}

const trialKeyOf = ({ arm, instanceId, epoch }: { arm: string; instanceId: string; epoch: number }): string =>
  JSON.stringify([arm, instanceId, epoch]);

function trialOf(
  store: Store,
  { trial, standing }: ScoredTrial,
  attempt: AttemptRecord,
  patch: string,
  calls: readonly EndedCallRow[],
): WrittenTrial {
  return {
    attempt: { ...attempt, calls: endedCalls(store, attempt.attemptId) },
    patch,
    repo: trial.repo,
    verdict: standing.valid ? { resolved: standing.resolved, reward: trial.reward ?? null } : null,
    missing: standing.valid ? null : standing.why,
    usage: new Map(
      [...Map.groupBy(calls, (call) => call.model_answered ?? trial.model)].map(([model, of]) => [
        model,
        usageOf(of),
      ]),
    ),
  };
}

function usageOf(calls: readonly EndedCallRow[]): WrittenUsage {
  const sum = (of: (call: EndedCallRow) => number | null) =>
    calls.reduce((all, call) => all + (of(call) ?? 0), 0);
  return {
    calls: calls.length,
    input: sum((call) => call.input_tokens),
    cacheRead: sum((call) => call.cache_read_tokens),
    cacheWrite: sum((call) => call.cache_write_tokens),
    output: sum((call) => call.output_tokens),
    reasoning: sum((call) => call.reasoning_tokens),
    costNano: calls.some(({ cost_nano }) => cost_nano === null) ? null : sum((call) => call.cost_nano),
  };
}
