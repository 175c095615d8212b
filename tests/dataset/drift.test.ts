// What changed between two readings of a dataset, and the round trip of convert.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { datasetText } from '../../src/dataset/convert.ts';
import { datasetDrift } from '../../src/dataset/drift.ts';
import { loadDataset } from '../../src/dataset/read/load.ts';
import { rowHashOf } from '../../src/dataset/read/row.ts';
import { instanceOf } from './rows.ts';

test('drift names revisions, what came and went, and whose verdict may change', () => {
  const before = { revision: '1'.repeat(40), rows: ['a-1', 'b-2', 'c-3', 'd-4'].map((id) => instanceOf(id)) };
  const after = {
    revision: '2'.repeat(40),
    rows: [
      instanceOf('a-1'),
      instanceOf('b-2', { hints_text: 'new' }),
      instanceOf('c-3', { PASS_TO_PASS: ['t'] }),
      instanceOf('e-5'),
    ],
  };
  expect(datasetDrift(before, after)).toEqual({
    same: false,
    added: ['e-5'],
    removed: ['d-4'],
    changed: ['b-2', 'c-3'],
    grading: ['c-3'],
    message:
      'the dataset changed: revision 111111111111 → 222222222222; 1 added (e-5); 1 removed (d-4); 2 changed (b-2, c-3); 1 with other tests or scripts (c-3)',
  });
  expect(datasetDrift(before, { ...before, rows: before.rows.toReversed() })).toMatchObject({
    same: true,
    message: '',
  });
  expect(datasetDrift(before, { ...before, revision: null })).toMatchObject({
    same: true,
    message: 'the dataset changed: revision 111111111111 → unknown',
  });
});

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
      expect(loaded.ok && loaded.dataset.rows.map((row) => row.rowHash)).toEqual(rows.map(rowHashOf));
    } finally {
      rmSync(dir, { recursive: true });
    }
  },
);
