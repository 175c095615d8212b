// The hash of a configuration covers what makes it another experiment, and every key is classed.
import { expect, test } from 'vitest';
import { allPaths, configHash, FIELD_CLASSES } from '../../src/config/configSchema.ts';
import { loadConfig } from '../../src/config/loadConfig.ts';

const config = (...specs: string[]) =>
  loadConfig({ specs: ['run.workers=1', ...specs], readFile: () => null, cwd: '/' }).config;

const unclassed = (classes: Readonly<Record<string, unknown>>) =>
  allPaths().filter((path) => !['identity', 'runtime'].includes(String(classes[path])));

test('every key is classed as identity or runtime, beside it in the schema', () => {
  expect(unclassed(FIELD_CLASSES)).toEqual([]);
  expect(allPaths().length).toBeGreaterThan(90);
});
test('a new key that nobody classed is found', () => {
  const { 'agent.step_limit': _, ...known } = FIELD_CLASSES;
  expect(unclassed(known)).toEqual(['agent.step_limit']);
});
test('identity fields change the hash, runtime fields do not', () => {
  const base = configHash(config());
  expect(configHash(config('agent.step_limit=9'))).not.toBe(base);
  expect(configHash(config('model.model_kwargs.temperature=0'))).not.toBe(base);
  expect(configHash(config('arms=[{"name":"a"}]'))).not.toBe(base);
  expect(configHash(config('run.workers=9', 'model.retry.max_retries=9', 'model.api_key_env=OTHER'))).toBe(
    base,
  );
});
test('limits of grading containers leave the hash of earlier runs as it was until they are set', () => {
  const now = config();
  const { pids_limit, cpus } = now.grading;
  expect([pids_limit, cpus]).toEqual([undefined, undefined]);
  expect(configHash(config('grading.pids_limit=100'))).not.toBe(configHash(now));
});
test('the order of keys does not matter', () => {
  expect(configHash(config('model.model_kwargs={"a":1,"b":2}'))).toBe(
    configHash(config('model.model_kwargs={"b":2,"a":1}')),
  );
});
