// Every number that a person can set has an end that no real one comes near: a slip of the hand is refused where it is read.
import { expect, test } from 'vitest';
import type { z } from 'zod';
import { allVerbs } from '../../src/cli/verbs.ts';
import { SECTIONS } from '../../src/config/configSchema.ts';
import { loadConfig } from '../../src/config/loadConfig.ts';

type Def = { readonly type: string } & Readonly<Record<string, unknown>>;
const defOf = (schema: unknown): Def => (schema as z.core.$ZodType)._zod.def as unknown as Def;

/** Schemas of numbers below a schema, wherever they stand. */
function numbersOf(schema: unknown, path: string): [path: string, schema: z.ZodType][] {
  const def = defOf(schema);
  if (def.type === 'number') return [[path, schema as z.ZodType]];
  const inner = ['innerType', 'element', 'valueType', 'in', 'out', 'left', 'right'].flatMap((key) =>
    def[key] ? numbersOf(def[key], path) : [],
  );
  const options = ((def.options as unknown[]) ?? []).flatMap((one) => numbersOf(one, path));
  const fields = Object.entries((def.shape as object) ?? {}).flatMap(([key, one]) =>
    numbersOf(one, `${path}.${key}`),
  );
  return [...inner, ...options, ...fields];
}

/** Only tells one draw from another. */
const isSeed = (path: string): boolean => path.endsWith('seed');
const takes = (schema: z.ZodType, value: unknown): boolean => schema.safeParse(value).success;

test('every number of the configuration has one', () => {
  const numbers = Object.entries(SECTIONS).flatMap(([name, schema]) => numbersOf(schema, name));
  const paths = new Set(numbers.map(([path]) => path));
  expect(paths.size).toBeGreaterThan(60);
  for (const known of ['run.workers', 'model.prices.input', 'suite.judge.rpm', 'run.retry.reasons'])
    expect(paths).toContain(known);
  // A duration's end is in days as well, so it is checked beside its form.
  const open = numbers.filter(([path, one]) => !isSeed(path) && takes(one, 1e15));
  expect(open.map(([path]) => path)).toEqual(['environment.container_timeout']);
});

test('every number of the command line has one', async () => {
  const flags = (await allVerbs()).flatMap(({ flags: own }) =>
    Object.entries(own).flatMap(([flag, one]) => (one.type === 'number' ? [{ flag, one }] : [])),
  );
  expect(flags.length).toBeGreaterThan(15);
  const open = flags.filter(({ flag, one }) => !isSeed(flag) && (!one.check || takes(one.check, 1e15)));
  // It is looked up among those that there are.
  expect(open.map(({ flag }) => flag)).toEqual(['attempt']);
});

test.each([
  ['run.workers=999999999', 'run.workers: must be 10000 or less (it is 999999999)'],
  ['run.epochs=5000000', 'run.epochs: must be 1000 or less (it is 5000000)'],
  ['agent.cost_limit=1e12', 'agent.cost_limit: must be 1000000 or less (it is 1000000000000)'],
  ['model.total_timeout_s=1e10', 'model.total_timeout_s: must be 31622400 or less (it is 10000000000)'],
  ['environment.memory=999999999t', 'environment.memory: must be 1024t or less (it is "999999999t")'],
  [
    'environment.container_timeout=99999d',
    'environment.container_timeout: must be 366d or less (it is "99999d")',
  ],
  [
    'environment.container_timeout=1e15',
    'environment.container_timeout: must be 366d or less (it is 1000000000000000)',
  ],
  ['environment.max_output_bytes=1e15', 'environment.max_output_bytes: must be 268435456 or less'],
  ['run.disk_floor=5000t', 'run.disk_floor: must be 1024t or less (it is "5000t")'],
  ['grading.memory=lots', 'grading.memory: "lots" is not a size'],
])('%s is refused with its key, its value and the end', (set, says) => {
  expect(() => loadConfig({ specs: [set], readFile: () => null, cwd: '/' })).toThrow(says);
});
