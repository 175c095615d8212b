// Whatever a sitting has opened is closed when it cannot go on, also before its first trial.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { agentConfigSchema } from '../../src/agent/agentConfig.ts';
import { createRedactor } from '../../src/base/text/redact.ts';
import { runConfigSchema } from '../../src/config/runConfig.ts';
import { environmentConfigSchema } from '../../src/environment/environments.ts';
import type { RunImages } from '../../src/environment/places/images/runImages.ts';
import { gradingConfigSchema } from '../../src/grading/gradingConfig.ts';
import { modelConfigSchema } from '../../src/model/modelConfig.ts';
import { createStopLadder } from '../../src/run/control/stop.ts';
import { createEvents } from '../../src/run/events.ts';
import type { SessionEngines } from '../../src/run/places/sessionEngines.ts';
import { runSession } from '../../src/run/run.ts';
import { insertRun } from '../../src/store/records/runs.ts';
import { trialsOf } from '../../src/store/records/trials.ts';
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
  readonly engines?: SessionEngines;
}

async function sitting({ row = INSTANCE, agents = [{}], environment, grading, engines }: Wrong) {
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
  const stored = { store, root, run, config, grading: gradingConfigSchema.parse(grading ?? {}) };
  const ports = {
    secret: () => undefined,
    redactor: createRedactor([]),
    events: createEvents(() => {}),
    stop: createStopLadder({ onInterrupt: 'finish', graceS: 1, exitNow: () => {} }),
    leaseOwner: 'me',
    version: '0',
    cwd: root,
    log: () => {},
  };
  try {
    return await runSession(stored, trialsOf(store, run.id), ports, engines);
  } finally {
    store.close();
  }
}

const withoutRegistry = {
  images: {
    ensureOn: () => () => Promise.reject(new Error('not here')),
    plan: () => Promise.reject(new Error('no engine answers')),
  } as unknown as RunImages,
};

test.each<[what: string, wrong: Wrong, message: RegExp, closes: string[]]>([
  ['a row that is no instance', { row: {} }, /instance_id/, ['model', 'environment']],
  [
    'a second arm that cannot be started',
    { agents: [{}, { agent_class: './absent.ts' }] },
    /absent\.ts cannot be loaded/,
    ['model', 'environment', 'model', 'environment'],
  ],
  [
    'a log parser that is not there',
    { grading: { enabled: true, parsers: { own: './absent.ts' } } },
    /absent\.ts cannot be loaded/,
    ['model', 'environment'],
  ],
  [
    'images that nobody can be asked about',
    { environment: 'docker', engines: withoutRegistry },
    /no engine answers/,
    ['model'],
  ],
])('%s: the arms are closed', async (_what, wrong, message, closes) => {
  await expect(sitting(wrong)).rejects.toThrow(message);
  expect(closed.sort()).toEqual(closes.sort());
});
