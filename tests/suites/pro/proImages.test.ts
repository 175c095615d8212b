// Images of SWE-bench Pro that are built from the two Dockerfiles of an instance.

import { execFile } from 'node:child_process';
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, test } from 'vitest';
import { headOf, readInstance, readRowHash } from '../../../src/dataset/dataset.ts';
import { loadDataset } from '../../../src/suites/loadDataset.ts';
import { proDockerfile } from '../../../src/suites/pro/pro.ts';
import { rememberBuilds } from '../../../src/suites/suites.ts';
import { cli, tempDir } from '../../support/cli.ts';
import { docker, dockerAvailable } from '../../support/docker.ts';
import { BASE_IMAGE } from '../../support/dockerEnvironment.ts';

const MIRROR = '000000000000.dkr.ecr.us-west-2.amazonaws.com';

test('one file of two stages: the mirror of nobody else is left out, and the second stands on the first', () => {
  const base = `# base\nFROM ${MIRROR}/docker-hub/library/python:3.11-slim\nRUN mkdir /app\n`;
  const instance = `FROM ${MIRROR}/sweap-images/a.b:base_a__b___2023.abc\nENV A=1\n`;
  expect(proDockerfile(base, instance)).toBe(
    '# base\nFROM python:3.11-slim AS swebatch-base\nRUN mkdir /app\n\n\nFROM swebatch-base\nENV A=1\n',
  );
  expect(proDockerfile('FROM node:18 AS x\nFROM x AS y', 'from base_c__d')).toBe(
    'FROM node:18 AS x\nFROM x AS swebatch-base\n\nfrom swebatch-base',
  );
});
test.each([
  ['FROM a', undefined],
  [undefined, 'FROM base_x'],
  ['', 'FROM base_x'],
  ['RUN true', 'FROM base_x'],
  ['FROM a', 'FROM python:3.11'],
  [7, 'FROM base_x'],
])('%j and %j are no recipe', (base, instance) => {
  expect(proDockerfile(base, instance)).toBeUndefined();
});

/** A clone of Pro's repository with its rows and its folders. */
function clone(
  dir: string,
  tasks: Record<string, readonly [base: string, instance: string] | undefined>,
): string {
  const at = join(dir, 'clone');
  const rows = Object.keys(tasks).map((instance_id) => ({
    ...{ instance_id, repo: 'a/b', base_commit: 'c', problem_statement: 'p', dockerhub_tag: 't' },
    ...{
      before_repo_set_cmd: 'true',
      selected_test_files_to_run: '[]',
      fail_to_pass: "['t']",
      pass_to_pass: '[]',
    },
  }));
  const put = (path: string, text: string) => {
    mkdirSync(join(at, path, '..'), { recursive: true });
    writeFileSync(join(at, path), text);
  };
  put('helper_code/rows.jsonl', rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  for (const [id, files] of Object.entries(tasks)) {
    put(`run_scripts/${id}/run_script.sh`, 'true\n');
    put(`run_scripts/${id}/parser.py`, 'pass\n');
    if (files) put(`dockerfiles/base_dockerfile/${id}/Dockerfile`, files[0]);
    if (files) put(`dockerfiles/instance_dockerfile/${id}/Dockerfile`, files[1]);
  }
  return at;
}

test('without the choice a tag is pulled; with it each has the image of its recipe, and one without a recipe is refused', async () => {
  const at = clone(tempDir(), {
    one: ['FROM a', 'FROM base_x'],
    two: ['FROM a', 'FROM base_x\nRUN b'],
    none: undefined,
  });
  const tagged = await loadDataset(at, {});
  const built = await loadDataset(at, { images: 'built' });
  if (!tagged.ok || !built.ok) throw new Error('not read');
  expect(tagged.dataset.rows.flatMap((row) => rememberBuilds(readInstance(row)))).toEqual([]);
  const images = built.dataset.rows.map((row) => headOf(row).image);
  expect(images).toEqual([
    expect.stringMatching(/^swebatch\.internal\/pro:[0-9a-f]{32}$/),
    expect.stringMatching(/^swebatch\.internal\/pro:[0-9a-f]{32}$/),
    'jefzda/sweap-images:t',
  ]);
  expect(images[0]).not.toBe(images[1]);
  expect(built.dataset.rows.map(({ refused }) => refused)).toEqual([
    ...[undefined, undefined, 'its image cannot be built, for no Dockerfile comes with it'],
  ]);
  expect(built.dataset.rows.map(readRowHash)).toEqual(tagged.dataset.rows.map(readRowHash));
});

const suites = process.env.SWEBATCH_SUITES ?? '';
test.skipIf(!existsSync(join(suites, 'SWE-bench_Pro-os')) || suites === '')(
  'every pair of Dockerfiles of its repository is a recipe (needs SWEBATCH_SUITES)',
  () => {
    const pairs = globSync(join(suites, 'SWE-bench_Pro-os/dockerfiles/base_dockerfile/*/Dockerfile'));
    const read = (path: string) => readFileSync(path, 'utf8');
    const made = pairs.map((path) => proDockerfile(read(path), read(path.replace('base_', 'instance_'))));
    expect([made.filter(Boolean).length, made.length]).toEqual([731, 731]);
  },
);

describe.skipIf(!(await dockerAvailable()))('on a real engine', () => {
  const made: string[] = [];
  afterAll(async () => {
    for (const image of made) await docker.getImage(image).remove({ force: true });
  });
  test('"images build" makes the image of both stages; one that fails says so with the end of its log', async () => {
    const dir = tempDir();
    const mark = `pro-${process.pid}-${Date.now()}`;
    const at = clone(dir, {
      good: [
        `FROM ${BASE_IMAGE}\nRUN mkdir -p /app && echo ${mark} > /app/base\n`,
        'FROM base_x\nRUN cp /app/base /app/instance\n',
      ],
      bad: [`FROM ${BASE_IMAGE}\nRUN echo ${mark} goes wrong; exit 7\n`, 'FROM base_x\n'],
    });
    const env = { XDG_CACHE_HOME: join(dir, 'cache'), XDG_STATE_HOME: join(dir, 'state') };
    const added = await cli(['datasets', 'add', at, '--images', 'built', '--json'], { env });
    expect(added.code, added.stderr).toBe(0);
    const built = await cli(['images', 'build', 'clone'], { env });
    const loaded = await loadDataset('clone', { env });
    if (!loaded.ok) throw new Error('not read');
    const image = readInstance(loaded.dataset.rows[0]!).image!;
    made.push(image);
    expect(built.code).not.toBe(0);
    expect(built.stdout + built.stderr).toContain(`${mark} goes wrong`);
    const shows = ['run', '--rm', '--network', 'none', image, 'cat', '/app/instance'];
    expect((await promisify(execFile)('docker', shows)).stdout).toContain(mark);
  });
});
