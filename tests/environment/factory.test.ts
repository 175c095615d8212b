// `environment.environment_class`: docker, local, or the path of a module.
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createEnvironmentFactory, environmentConfigSchema } from '../../src/environment/environments.ts';

const open = (environment_class: string, baseDir?: string) =>
  createEnvironmentFactory(environmentConfigSchema.parse({ environment_class }), baseDir ? { baseDir } : {});

test('the built-in ones go by name', async () => {
  for (const name of ['local', 'docker']) {
    const factory = await open(name);
    expect(factory.kind).toBe(name);
    await factory.close();
  }
});

test('a name that is neither ours nor a path is refused with what to use [M-39]', async () => {
  await expect(open('podman')).rejects.toThrow('use docker, kubernetes, local, or the path of a module');
});

test('a module that exports something else is refused by its path', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'swebatch-factory-'));
  writeFileSync(join(dir, 'none.mjs'), 'export const x = 1;');
  writeFileSync(join(dir, 'empty.mjs'), 'export const createEnvironmentFactory = () => ({});');
  await expect(open('./none.mjs', dir)).rejects.toThrow(
    'does not export a function createEnvironmentFactory',
  );
  await expect(open('./empty.mjs', dir)).rejects.toThrow('must return an object with kind, start and close');
});
