// A dataset is run with the images of a builder who was named; its rows stay what they are.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { headOf, readInstance, readRowHash } from '../../src/dataset/dataset.ts';
import { IMAGE_BUILDERS, imageNameOf, imagesProblem } from '../../src/dataset/imageNames.ts';
import { imageOf } from '../../src/dataset/instance.ts';
import { addDataset } from '../../src/run/datasets.ts';
import { loadDataset } from '../../src/suites/loadDataset.ts';

describe('names', () => {
  test.each([
    ['swebench', 'docker.io/swebench/sweb.eval.x86_64.astropy_1776_astropy-12907:latest'],
    ['swebench-arm64', 'docker.io/swebench/sweb.eval.arm64.astropy_1776_astropy-12907:latest'],
    ['epoch', 'ghcr.io/epoch-research/swe-bench.eval.x86_64.astropy__astropy-12907:latest'],
    ['swe-gym', 'docker.io/xingyaoww/sweb.eval.x86_64.astropy_s_astropy-12907:latest'],
    ['registry.example.org/mine/{id:-}:v2', 'registry.example.org/mine/astropy-astropy-12907:v2'],
  ])('%s', (images, name) => {
    expect(imagesProblem(images)).toBeNull();
    expect(imageNameOf(images, 'astropy__astropy-12907')).toBe(name);
  });
  test('the first is what a row has without any', () => {
    expect(imageNameOf('swebench', 'a__b-1')).toBe(imageOf({ instance_id: 'a__b-1' }));
    expect(IMAGE_BUILDERS[0]).toBe('swebench');
  });
  test('ids in capitals make a name that registries take', () => {
    expect(imageNameOf('swe-gym', 'Project-MONAI__MONAI-1')).toContain('project-monai_s_monai-1');
  });
  test.each([
    ['epochs', /is none of swebench/],
    ['ghcr.io/x/fixed:latest', /has no \{id\}/],
    ['../{id}', /makes names that are none/],
    ['{id} {id}', /makes names that are none/],
  ])('%s is refused', (images, why) => {
    expect(imagesProblem(images)).toMatch(why);
  });
});

describe('datasets add --images', () => {
  let dir: string;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'swebatch-images-'));
  });
  afterEach(() => rmSync(dir, { recursive: true, force: true }));
  const row = (id: string, more = {}) => ({
    ...{ instance_id: id, repo: 'a/b', base_commit: 'c', problem_statement: 'p', ...more },
  });

  test.each([0, undefined])(
    'holds for every row, also one that names another, read at once or again (%s)',
    async (heldBytes) => {
      const source = join(dir, 'gym.jsonl');
      const rows = [row('a__b-1'), row('a__b-2', { image: 'own/image:1' })];
      writeFileSync(source, rows.map((one) => `${JSON.stringify(one)}\n`).join(''));
      const env = { PATH: process.env.PATH, XDG_CACHE_HOME: join(dir, 'cache') };
      const plain = await loadDataset(source, { env });
      await addDataset({ source, env, images: 'swe-gym' });
      const loaded = await loadDataset('gym', { env, ...(heldBytes !== undefined && { heldBytes }) });
      if (!loaded.ok || !plain.ok) throw new Error('not loaded');
      const names = ['a_s_b-1', 'a_s_b-2'].map((id) => `docker.io/xingyaoww/sweb.eval.x86_64.${id}:latest`);
      expect(loaded.dataset.rows.map((one) => imageOf(readInstance(one)))).toEqual(names);
      expect(loaded.dataset.rows.map((one) => imageOf(headOf(one)))).toEqual(names);
      expect(loaded.dataset.rows.map(readRowHash)).toEqual(plain.dataset.rows.map(readRowHash));
    },
  );

  test('a name of a builder with a slip is told, and nothing is added', async () => {
    const source = join(dir, 'gym.jsonl');
    writeFileSync(source, `${JSON.stringify(row('a__b-1'))}\n`);
    const env = { PATH: process.env.PATH, XDG_CACHE_HOME: join(dir, 'cache') };
    await expect(addDataset({ source, env, images: 'swegym' })).rejects.toThrow(
      /the choice of images "swegym" is none of/,
    );
    expect((await loadDataset('gym', { env })).ok).toBe(false);
  });
});
