// A run that is written as another tool's results reads back through our own reader with the same figures.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { readEvalResults } from '../../src/formats/hubScores/hubScores.ts';
import { summarize } from '../../src/report/measure/summary.ts';
import { openSource } from '../../src/results/import/openSource.ts';
import { exportForeign } from '../../src/run/record/exportForeign.ts';
import { requireRun } from '../../src/run/resultsRoot.ts';
import { openStore } from '../../src/store/open.ts';
import { loadRunData } from '../../src/store/records/runData.ts';
import { tempDir } from '../support/cli.ts';
import { figures, recordedEnds } from '../support/foreign/recordedEnds.ts';
import { harborModels } from '../support/python/harborModels.ts';

const RUNS: readonly (readonly [epochs: number, arms: readonly string[]])[] = [
  [1, ['default']],
  [3, ['default']],
  [2, ['a', 'b']],
];

/** What is left for the readers of the format itself: our rows lie in a file, or in an entry of a log, of another name. */
function withoutRecord(dir: string): void {
  let found = 0;
  for (const name of readdirSync(dir)) {
    const path = join(dir, name);
    if (name === 'record.jsonl.gz') rmSync(path);
    else if (!name.endsWith('.eval')) continue;
    else
      writeFileSync(
        path,
        readFileSync(path, 'latin1').replaceAll('swebatch/record.jsonl.gz', 'swebatch/others.jsonl.gz'),
        'latin1',
      );
    found += 1;
  }
  expect(found).toBeGreaterThan(0);
}

test.each(['inspect', 'harbor'].flatMap((format) => RUNS.map((run) => [format, ...run] as const)))(
  '%s of %i epochs and arms %j',
  async (format, epochs, arms) => {
    const dir = join(tempDir(), 'out');
    const store = recordedEnds(epochs, arms);
    const written = await exportForeign(
      { store, run: requireRun(store, 'r1'), dir, version: '1.2.3' },
      format,
    );
    expect(written.length).toBeGreaterThan(0);
    withoutRecord(dir);
    const opened = await openSource(dir, { env: { XDG_CACHE_HOME: tempDir() }, tell: () => {} });
    using back = openStore(join(opened!.root, 'swebatch.db'), { readonly: true });
    expect(figures(back, opened!.run)).toEqual(figures(store, 'r1'));
  },
);

test('harbor: the name of an eval leads its viewer to the trials of that agent, model and source', async () => {
  const dir = join(tempDir(), 'out');
  const store = recordedEnds(1, ['a', 'b']);
  store.exec(`UPDATE runs SET dataset_source = 'datasets/demo/demo.jsonl'`);
  await exportForeign({ store, run: requireRun(store, 'r1'), dir, version: '1.2.3' }, 'harbor');
  const read = (...path: string[]) => JSON.parse(readFileSync(join(dir, ...path), 'utf8'));
  const trials = readdirSync(dir, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const named = trials.map(({ name }) => {
    const { agent_info, source } = read(name, 'result.json');
    return [agent_info.name, agent_info.model_info.name, source].join('__');
  });
  expect(named.length).toBeGreaterThan(0);
  expect(Object.keys(read('result.json').stats.evals).sort()).toEqual([...new Set(named)].sort());
});

test('harbor 0.26 reads the job, calls the same rewards valid and computes the same numbers from the trials', async (context) => {
  const models = await harborModels();
  if (typeof models === 'string') {
    expect(process.env.SWEBATCH_REQUIRE_DOCKER, models).toBeUndefined();
    return context.skip(models);
  }
  for (const [epochs, arms] of [...RUNS, [5, ['default']] as const]) {
    const dir = join(tempDir(), 'out');
    const store = recordedEnds(epochs, arms);
    await exportForeign({ store, run: requireRun(store, 'r1'), dir, version: '1.2.3' }, 'harbor');
    const { computed, stated, trials } = models.computeJob(dir);
    expect(inOrder(stated)).toEqual(inOrder(computed));
    const ours = trials.map(({ name }) => {
      const { reward_valid: valid, exception_info } = JSON.parse(
        readFileSync(join(dir, name, 'result.json'), 'utf8'),
      );
      return { name, valid, policies: exception_info ? [exception_info.policy] : [] };
    });
    expect(ours).toEqual(trials);
    const { arms: summed } = summarize(loadRunData(store, requireRun(store, 'r1').id)!);
    const means = Object.values((stated as { evals: Record<string, { metrics: { mean: number }[] }> }).evals);
    for (const [k, { resolved }] of summed.entries())
      expect(means[k]!.metrics[0]!.mean).toBeCloseTo(resolved.p!, 12);
  }
});

/** Names of trials without their order, and numbers without their last digit. */
const inOrder = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value), (_, each) =>
    Array.isArray(each) ? each.toSorted() : typeof each === 'number' ? Number(each.toPrecision(12)) : each,
  );

test('hf: the value of an arm is its rate, and what it is of stands beside it', async () => {
  const dir = tempDir();
  const store = recordedEnds(2, ['a', 'b']);
  await exportForeign({ store, run: requireRun(store, 'r1'), dir, version: '1.2.3' }, 'hf');
  const arms = summarize(loadRunData(store, requireRun(store, 'r1').id)!).arms;
  const files = readdirSync(join(dir, '.eval_results')).sort();
  expect(files).toEqual(['r1_a.yaml', 'r1_b.yaml']);
  for (const [k, file] of files.entries()) {
    const [entry] = readEvalResults(readFileSync(join(dir, '.eval_results', file), 'utf8'));
    expect(entry!.resolved).toBeCloseTo(arms[k]!.estimate!.mean, 12);
    // The Hub refuses an entry without it.
    expect(parse(readFileSync(join(dir, '.eval_results', file), 'utf8'))[0].dataset.task_id).toBe('default');
    expect(entry!.notes).toContain(`mean of ${arms[k]!.estimate!.n} of 7 instances, 2 epoch(s)`);
    // It holds no instances: what would open it as a run tells the rate and what to write instead.
    await expect(openSource(join(dir, '.eval_results', file), { env: {}, tell: () => {} })).rejects.toThrow(
      `${(100 * arms[k]!.estimate!.mean).toFixed(1)} %`,
    );
  }
  for (const folder of [dir, join(dir, '.eval_results')])
    await expect(openSource(folder, { env: {}, tell: () => {} })).rejects.toThrow(
      new RegExp(arms.map((arm) => `${(100 * arm.estimate!.mean).toFixed(1)} %`).join('[^]*')),
    );
});
