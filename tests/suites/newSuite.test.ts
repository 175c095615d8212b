// A new suite is one folder and one line. A copy of the sources gets one as CONTRIBUTING says, and the program of the copy adds its dataset, checks it,
// plans a run and grades predictions in containers.

import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { REPO, tempDir } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';
import { BASE_IMAGE } from '../support/dockerEnvironment.ts';

const available = await dockerAvailable();
const dir = tempDir('kind-');
const copy = join(dir, 'swebatch');

const TOY = `import { allPassed, notGradable, planOwnRules } from '../../grading/ownRules.ts';
import type { Suite } from '../suite.ts';

export const toy: Suite = {
  rows: {
    columns: (raw) => ({ ...raw, instance_id: \`toy-\${raw.toy}\`, repo: 'toy/toy', base_commit: 'HEAD', problem_statement: 'play', FAIL_TO_PASS: ['said'], image: '${BASE_IMAGE}' }),
  },
  grading(instance, { harness }) {
    const word = String(instance.extra.word ?? '');
    if (word === '') return notGradable(instance, 'its row has no word');
    return planOwnRules(
      {
        ...{ instance, script: 'cat /toy/patch.diff\\n', cwd: '/', decides: { word } },
        files: (patch) => ({ '/toy/patch.diff': patch }),
        judge: async (_, run) => ({
          ...{ ok: true, log: run.log, applied: true },
          verdict: allPassed({ failToPass: ['said'], passToPass: [] }, new Set(run.log.includes(word) ? ['said'] : [])),
        }),
      },
      harness,
    );
  },
};
`;
const LINE = `{ name: 'toy', isRow: (raw) => raw.toy !== undefined, load: async () => (await import('./toy/toy.ts')).toy },`;

beforeAll(() => {
  for (const part of ['src', 'package.json', 'configs'])
    cpSync(join(REPO, part), join(copy, part), { recursive: true });
  symlinkSync(join(REPO, 'node_modules'), join(copy, 'node_modules'));
  mkdirSync(join(copy, 'src/suites/toy'));
  writeFileSync(join(copy, 'src/suites/toy/toy.ts'), TOY);
  const table = join(copy, 'src/suites/suites.ts');
  const text = readFileSync(table, 'utf8');
  const opened = 'const SUITES: readonly SuiteLine[] = [';
  expect(text).toContain(opened);
  writeFileSync(table, text.replace(opened, `${opened}\n  ${LINE}`));
  const rows = [{ toy: 1, word: 'hello' }, { toy: 2, word: 'bye' }, { toy: 3 }];
  writeFileSync(join(dir, 'toys.jsonl'), rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
});

async function program(...args: string[]) {
  const env = { ...process.env, XDG_CACHE_HOME: join(dir, 'cache'), NO_COLOR: '1' };
  const ran = promisify(execFile)(process.execPath, [join(copy, 'src/cli/bin.ts'), ...args], {
    cwd: dir,
    env,
  });
  return ran.catch((error: { stdout: string; stderr: string }) => error);
}

test('its rows are read and told of, and a run of them is planned', async () => {
  const added = await program('datasets', 'add', 'toys.jsonl', '--json');
  expect(JSON.parse(added.stdout), added.stderr).toMatchObject({
    name: 'toys',
    kinds: { toy: 3 },
    gradable: 2,
  });
  const checked = await program('datasets', 'check', 'toys', '--json');
  expect(JSON.parse(checked.stdout), checked.stderr).toMatchObject({
    unfit: [{ instance_id: 'toy-3', what: 'ungradable', why: 'its row has no word' }],
  });
  const planned = await program(
    'run',
    '--subset',
    'toys',
    '-m',
    'fake',
    '-c',
    'model.prices=free',
    '--dry-run',
    '--json',
  );
  expect(planned.stdout, planned.stderr).toContain('toy-2');
});

test.skipIf(!available)('predictions of it are graded by its rules', async () => {
  const patch = 'diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+hello\n';
  const lines = [1, 2].map((toy) => ({
    instance_id: `toy-${toy}`,
    model_name_or_path: 'm',
    model_patch: patch,
  }));
  writeFileSync(join(dir, 'preds.jsonl'), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  const graded = await program(
    'evaluate',
    'preds.jsonl',
    '-d',
    join(dir, 'toys.jsonl'),
    '-i',
    'toy-1,toy-2',
    '--json',
  );
  expect(JSON.parse(graded.stdout), graded.stderr).toMatchObject([
    { report: { resolved_ids: ['toy-1'], unresolved_ids: ['toy-2'] } },
  ]);
});
