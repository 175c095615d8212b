// What convert writes, read again.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { datasetText, readRowHash } from '../../src/dataset/dataset.ts';
import { rowHashOf } from '../../src/dataset/read/row.ts';
import { loadDataset } from '../../src/suites/loadDataset.ts';
import { instanceOf } from './rows.ts';

test.each(['json', 'jsonl'] as const)(
  'what convert writes as %s loads back with the same row hashes',
  async (form) => {
    const rows = [
      instanceOf('a-1', { test_cmds: ['x'], FAIL_TO_PASS: ['a', 'b'], created_at: '2020' }),
      instanceOf('instance_b-2', { dockerhub_tag: 't', requirements: 'R', interface: 'I' }),
      instanceOf('c-3', { docker_image: 'i', meta: { n: [1, null] } }),
    ];
    const dir = mkdtempSync(join(tmpdir(), 'swebatch-convert-'));
    try {
      const path = join(dir, `d.${form}`);
      writeFileSync(path, datasetText(rows, form));
      const loaded = await loadDataset(path);
      expect(loaded.ok && loaded.dataset.rows.map(readRowHash)).toEqual(rows.map(rowHashOf));
    } finally {
      rmSync(dir, { recursive: true });
    }
  },
);
