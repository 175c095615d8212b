// Whatever a sitting has opened is closed when it cannot go on, also before its first trial.
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, expect, test } from 'vitest';
import { agentConfigSchema } from '../../src/agent/agentConfig.ts';
import { runConfigSchema } from '../../src/config/configSchema.ts';
import { environmentConfigSchema } from '../../src/environment/environments.ts';
import { gradingConfigSchema } from '../../src/grading/gradingConfig.ts';
import { modelConfigSchema } from '../../src/model/modelConfig.ts';
import { workOn } from '../../src/run/run.ts';
import { insertRun } from '../../src/store/records/runs.ts';
import { freshStore } from '../store/storeFixtures.ts';
import { tempDir } from '../support/cli.ts';

/** Names of what the modules below were asked to close. */
const closed: string[] = [];
Object.assign(globalThis, { noteClosed: (name: string) => void closed.push(name) });
afterEach(() => void closed.splice(0));

const root = tempDir();
const moduleFile = (name: string, text: string): string => {
  mkdirSync(root, { recursive: true });
  writeFileSync(join(root, name), text);
  return join(root, name);
};
const MODEL = moduleFile(
  'model.mjs',
  `export const createModel = () => null; export const close = async () => noteClosed('model');`,
);
/** Its `close` throws: the others are closed nevertheless. */
const ENVIRONMENT = moduleFile(
  'environment.mjs',
  `export const createEnvironmentFactory = () => ({
    kind: 'own', start() {}, close() { noteClosed('environment'); throw new Error('cannot be closed'); },
  });`,
);
const INSTANCE = { instance_id: 'a__a-1', repo: 'a/a', base_commit: '0'.repeat(40), problem_statement: '' };

interface Wrong {
  readonly row?: object;
  readonly agents?: readonly object[];
  readonly environment?: string;
  readonly grading?: object;
  /** Address of the engine. */
  readonly engine?: string;
}

async function sitting({ row = INSTANCE, agents = [{}], environment, grading, engine }: Wrong) {
  const store = freshStore();
  const arm = (agent: object) => ({
    agent: agentConfigSchema.parse(agent),
    environment: environmentConfigSchema.parse({ environment_class: environment ?? ENVIRONMENT }),
    model: modelConfigSchema.parse({ model_class: MODEL, model_name: 'own' }),
  });
  const run = insertRun(store, {
    run: {
      name: 'r1',
      created_at: '2026-01-01T00:00:00.000Z',
      ...{ config: '{}', config_hash: 'c', manifest: '{}', budget_nano: null, emit_empty: 0, imported: 0 },
      ...{ dataset_source: 'd.jsonl', dataset_revision: null, dataset_hash: 'h' },
    },
    arms: agents.map((agent, n) => ({ name: `arm-${n}`, model: 'own', config: JSON.stringify(arm(agent)) })),
    instances: [
      {
        ...{ instance_id: INSTANCE.instance_id, repo: INSTANCE.repo, difficulty: '', image: 'i', weight: 1 },
        ...{ row_hash: 'h', row: JSON.stringify(row) },
      },
    ],
    epochs: 1,
  });
  const config = runConfigSchema.parse({});
  const sitting = {
    ...{ store, root, row: run, config },
    grading: gradingConfigSchema.parse(grading ?? {}),
    arms: agents.map((agent, n) => ({ name: `arm-${n}`, ...arm(agent) })),
  };
  const env = engine === undefined ? {} : { DOCKER_HOST: engine };
  try {
    return await workOn(sitting, { env, cwd: root, tell: () => {} });
  } finally {
    store.close();
  }
}

/** An engine that answers, has no containers, and knows nothing of images. */
const withoutImages = createServer((request, response) => {
  const path = request.url ?? '';
  response.statusCode = path.includes('/images/') ? 500 : 200;
  response.setHeader('content-type', 'application/json');
  response.end(
    path.includes('/images/')
      ? '{"message":"no images today"}'
      : path.includes('/containers/json')
        ? '[]'
        : '{}',
  );
});
const address = await new Promise<string>((listening) =>
  withoutImages.listen(0, '127.0.0.1', () =>
    listening(`tcp://127.0.0.1:${(withoutImages.address() as AddressInfo).port}`),
  ),
);
afterAll(() => void withoutImages.close());

test.each<[what: string, wrong: Wrong, message: RegExp, closes: string[]]>([
  // Read before anything is opened.
  ['a row that is no instance', { row: {} }, /instance_id/, []],
  [
    'a second arm that cannot be started',
    { agents: [{}, { agent_class: './absent.ts' }] },
    /absent\.ts cannot be loaded/,
    ['model', 'environment', 'model'],
  ],
  [
    'a log parser that is not there',
    { grading: { enabled: true, parsers: { own: './absent.ts' } } },
    /absent\.ts cannot be loaded/,
    ['model', 'environment'],
  ],
  [
    'images that nobody can be asked about',
    { environment: 'docker', engine: address },
    /no images today/,
    ['model'],
  ],
])('%s: the arms are closed', async (_what, wrong, message, closes) => {
  await expect(sitting(wrong)).rejects.toThrow(message);
  expect(closed.sort()).toEqual(closes.sort());
});
