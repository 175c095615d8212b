// The published datasets themselves, where the shared folder is there.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readInstance } from '../../src/dataset/dataset.ts';
import { imageOf } from '../../src/dataset/instance.ts';
import { selectInstances } from '../../src/dataset/select.ts';
import { loadDataset } from '../../src/suites/loadDataset.ts';

const dataDir = join(import.meta.dirname, '..', '..', '..', 'shared', 'data', 'datasets');
async function load(source: string, split?: string) {
  const result = await loadDataset(source, { dataDir, split });
  if (!result.ok) throw new Error(result.problems.map((p) => p.message).join('\n'));
  return result.dataset;
}

describe.skipIf(!existsSync(dataDir))('published datasets (needs ../shared/data/datasets)', () => {
  test.each([
    ['verified', 'test', 500],
    ['lite', 'test', 300],
    ['lite', 'dev', 23],
    ['full', 'dev', 225],
    ['multilingual', 'test', 300],
    ['multimodal', 'dev', 102],
  ])(
    '%s %s has %i instances, each with tests, script and the official image name',
    async (source, split, count) => {
      const { rows } = await load(source, split);
      expect(rows).toHaveLength(count);
      for (const instance of rows.map(readInstance)) {
        expect(instance.FAIL_TO_PASS.length + instance.PASS_TO_PASS.length).toBeGreaterThan(0);
        expect(instance.eval_script).toContain('>>>>> Start Test Output');
        expect(`docker.io/${imageOf(instance)}`.replace('docker.io/docker.io', 'docker.io')).toBe(
          imageOf({ instance_id: instance.instance_id }),
        );
      }
    },
  );

  test('the classic columns of Lite dev are those of its Parquet, but for two test ids that a revision changed', async () => {
    const classic = await load(join(dataDir, 'SWE-bench_Lite_dev.classic-columns.jsonl'));
    const parquet = new Map(
      (await load('lite', 'dev')).rows.map((row) => [readInstance(row).instance_id, readInstance(row)]),
    );
    const drifted: string[] = [];
    for (const instance of classic.rows.map(readInstance)) {
      const { eval_script, log_parser, eval_type, image, ...published } = parquet.get(instance.instance_id)!;
      expect({ ...instance, FAIL_TO_PASS: [] }).toEqual({ ...published, FAIL_TO_PASS: [] });
      if (instance.FAIL_TO_PASS.join() !== published.FAIL_TO_PASS.join()) drifted.push(instance.instance_id);
    }
    expect(drifted).toHaveLength(2);
  });

  test('a stratified sample of Verified covers every stratum at 100', async () => {
    const { rows } = await load('verified');
    const drawn = selectInstances(rows, { sample: 100, stratify: ['repo', 'difficulty'], seed: 7 });
    if (drawn.kind !== 'selected') throw new Error('nothing selected');
    expect(drawn.warnings).toEqual([]);
    expect(drawn.rows.reduce((sum, row) => sum + row.weight, 0)).toBeCloseTo(500, 6);
  });
});
