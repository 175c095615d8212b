/** An environment of the user's: its starts and the results of its commands are checked before they are used. */
import { z } from 'zod';
import { lacks, type NamedModule, problemWith, watchedModule } from '../userModule.ts';
import { completeFactory, type PlainEnvironment, type PlainFactory } from './capabilities.ts';
import type { EnvironmentFactory } from './environment.ts';
import type { EnvironmentConfig } from './environmentConfig.ts';

const FACTORY = ['start', 'close'];
const FUNCTIONS = ['execute', 'templateVars', 'capturePatch', 'putFile', 'getFile', 'close'];

const infoSchema = z.looseObject({
  kind: z.string(),
  transport: z.string(),
  history: z.enum(['sealed', 'absent', 'failed', 'skipped']),
  notes: z.array(z.string()),
});

const resultSchema = z.looseObject({
  output: z.string(),
  raw: z.instanceof(Uint8Array),
  exitCode: z.int(),
  timedOut: z.boolean(),
  totalBytes: z.int().min(0),
  omittedBytes: z.int().min(0),
  replacedBytes: z.int().min(0),
  durationMs: z.number(),
  oomKilled: z.boolean(),
  transport: z.string(),
  exceptionInfo: z.string(),
});

const patchSchema = z.looseObject({
  patch: z.instanceof(Uint8Array),
  state: z.enum(['ok', 'empty', 'invalid', 'oversized']),
  warnings: z.array(z.string()),
});

const RESULTS = {
  execute: (result: unknown) => problemWith(resultSchema, result),
  capturePatch: (patch: unknown) => problemWith(patchSchema, patch),
  templateVars: (vars: unknown) => problemWith(z.looseObject({}), vars),
  getFile: (content: unknown) => problemWith(z.instanceof(Uint8Array), content),
};

export async function userEnvironmentFactory(
  module: NamedModule,
  create: (config: EnvironmentConfig) => unknown,
  config: EnvironmentConfig,
): Promise<EnvironmentFactory> {
  const { createEnvironmentFactory } = watchedModule(
    module,
    { createEnvironmentFactory: create as (given: EnvironmentConfig) => PlainFactory },
    {
      createEnvironmentFactory: (made) =>
        lacks(made, FACTORY) === null ? null : 'it must return an object with kind, start and close',
    },
  );
  const factory = watchedModule(module, await createEnvironmentFactory(config), {
    start(made) {
      const missing = lacks(made, FUNCTIONS);
      if (missing !== null) return `it has no ${missing}`;
      return problemWith(infoSchema, (made as PlainEnvironment).info);
    },
  });
  return completeFactory({
    ...factory,
    start: async (request) => watchedModule(module, await factory.start(request), RESULTS),
  });
}
