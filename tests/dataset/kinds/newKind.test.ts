// A new kind of dataset is one module here, one there and a line in each table: one is put in the place of another, and works.
import { expect, test, vi } from 'vitest';
import type { DatasetKind } from '../../../src/dataset/kinds/datasetKind.ts';
import { normaliseRow } from '../../../src/dataset/read/row.ts';
import type { GradingKind } from '../../../src/grading/kinds/gradingKind.ts';
import { planGrading } from '../../../src/grading/kinds/gradingKinds.ts';
import { checkDataset } from '../../../src/service/datasets/checkDataset.ts';

vi.mock('../../../src/dataset/kinds/rebenchV2Rows.ts', () => ({
  rebenchV2: {
    name: 'toy',
    rows: {
      is: (raw) => raw.toy !== undefined,
      columns: (raw) => ({
        ...raw,
        instance_id: `toy-${raw.toy}`,
        base_commit: 'abc',
        problem_statement: 'play',
        image: 'toy',
      }),
    },
  } satisfies DatasetKind,
}));
vi.mock('../../../src/grading/kinds/rebench/gradeRebenchV2.ts', () => ({
  rebenchV2: {
    name: 'toy',
    plan: ({ extra, instance_id }) =>
      extra.toy === 1
        ? { ok: true, plan: { specHash: 'toy', grade: () => Promise.reject(new Error('not run here')) } }
        : { ok: false, reason: `${instance_id} cannot be graded: only one toy is there` },
  } satisfies GradingKind,
}));

test('its rows are read, its rules plan the grading, and check tells of it', () => {
  const rows = [1, 2].map((toy) => {
    const read = normaliseRow({ toy });
    if (!read.ok) throw new Error(read.messages.join());
    return { instance: read.instance, rowHash: '', line: toy };
  });
  expect(rows[0]!.instance).toMatchObject({ kind: 'toy', instance_id: 'toy-1', extra: { toy: 1 } });
  expect(planGrading(rows[0]!.instance)).toMatchObject({ ok: true, plan: { specHash: 'toy' } });
  const place = { source: 'toy', path: 'toy', files: [], split: null, revision: null, fileHash: '' };
  expect(checkDataset({ ...place, rows })).toMatchObject({
    ...{ kinds: { toy: 2 }, gradable: 1, images: 1 },
    unfit: [{ instance_id: 'toy-2', what: 'ungradable', why: 'only one toy is there' }],
  });
});
