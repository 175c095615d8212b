// A run that is written as another tool's results reads back through our own reader with the same figures.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readEvalResults } from '../../src/formats/hubScores/hubScores.ts';
import { summarize } from '../../src/report/measure/summary.ts';
import { openSource } from '../../src/results/import/openSource.ts';
import { exportForeign } from '../../src/run/record/exportForeign.ts';
import { requireRun } from '../../src/run/resultsRoot.ts';
import { openStore, type Store } from '../../src/store/open.ts';
import { loadRunData } from '../../src/store/records/reportQueries.ts';
import { openMemory, recordRun } from '../report/recordedRun.ts';
import { tempDir } from '../support/cli.ts';

const IDS = Array.from({ length: 7 }, (_, n) => `a__a-${n}`);
const MESSAGES = [
  { role: 'system', content: 'You fix code.' },
  { role: 'user', content: 'Résumé 文: it is broken.' },
  {
    role: 'assistant',
    content: 'I look.',
    tool_calls: [{ id: 'c1', type: 'function', function: { name: 'bash', arguments: '{"command":"ls"}' } }],
  },
  { role: 'tool', content: 'a.py', tool_call_id: 'c1' },
];

/** Of each kind of end: resolved, unresolved, at a limit, lost, tried twice, not graded. */
function recorded(epochs: number, arms: readonly string[]) {
  const store = openMemory();
  recordRun(store, {
    ids: IDS,
    epochs,
    arms,
    happened: (id, arm, epoch) => {
      const k = Number(id.at(-1)) + epoch + arms.indexOf(arm);
      const graded = (resolved: boolean) => ({
        ...{
          patch: `diff ${id}\n`,
          outcome: resolved ? ('resolved' as const) : ('unresolved' as const),
          resolved,
        },
        ...{ cost: 1_000_000 * (k + 1), steps: 1, messages: MESSAGES },
      });
      if (k % 7 === 3) return [{ reason: 'env_died' as const, patch: '', cost: 7_000_000, steps: 1 }];
      if (k % 7 === 4) return [{ ...graded(false), reason: 'limit_steps' as const }];
      if (k % 7 === 5) return [{ reason: 'env_died' as const, patch: '', cost: 9_000_000 }, graded(true)];
      return [graded(k % 2 === 0)];
    },
  });
  return store;
}

/** A sum over epochs in another order differs in its last digit. */
const rounded = (_: string, value: unknown) =>
  typeof value === 'number' ? Number(value.toPrecision(12)) : value;

/** The other tools name arms by themselves: sorted by what they cost. */
const figures = (store: Store, run: string) =>
  summarize(loadRunData(store, requireRun(store, run).id)!)
    .arms.map((arm) => ({
      ...{ planned: arm.planned, valid: arm.valid, epochs: arm.epochs, instances: arm.instances },
      ...{ resolved: arm.resolved, estimate: arm.estimate, cost: arm.accounting.cost },
      tokens: { ...arm.accounting.tokens, reasoning: 0 },
    }))
    .toSorted((a, b) => a.cost.nano! - b.cost.nano!)
    .map((arm) => JSON.parse(JSON.stringify(arm, rounded)) as object);

const RUNS: readonly (readonly [epochs: number, arms: readonly string[]])[] = [
  [1, ['default']],
  [3, ['default']],
  [2, ['a', 'b']],
];

test.each(['inspect', 'harbor'].flatMap((format) => RUNS.map((run) => [format, ...run] as const)))(
  '%s of %i epochs and arms %j',
  async (format, epochs, arms) => {
    const dir = join(tempDir(), 'out');
    const store = recorded(epochs, arms);
    const written = await exportForeign(
      { store, run: requireRun(store, 'r1'), dir, version: '1.2.3' },
      format,
    );
    expect(written.length).toBeGreaterThan(0);
    const opened = await openSource(dir, { env: { XDG_CACHE_HOME: tempDir() }, tell: () => {} });
    using back = openStore(join(opened!.root, 'swebatch.db'), { readonly: true });
    expect(figures(back, opened!.run)).toEqual(figures(store, 'r1'));
  },
);

test('hf: the value of an arm is its rate, and what it is of stands beside it', async () => {
  const dir = tempDir();
  const store = recorded(2, ['a', 'b']);
  await exportForeign({ store, run: requireRun(store, 'r1'), dir, version: '1.2.3' }, 'hf');
  const arms = summarize(loadRunData(store, requireRun(store, 'r1').id)!).arms;
  const files = readdirSync(join(dir, '.eval_results')).sort();
  expect(files).toEqual(['r1_a.yaml', 'r1_b.yaml']);
  for (const [k, file] of files.entries()) {
    const [entry] = readEvalResults(readFileSync(join(dir, '.eval_results', file), 'utf8'));
    expect(entry!.resolved).toBeCloseTo(arms[k]!.estimate!.mean, 12);
    expect(entry!.notes).toContain(`mean of ${arms[k]!.estimate!.n} of 7 instances, 2 epoch(s)`);
  }
});
