// What an engine cannot give, and what cannot be graded, is told by run, its plan and doctor alike, before anything is made.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Docker from 'dockerode';
import tar from 'tar-stream';
import { describe, expect, test } from 'vitest';
import { cli, tempDir } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';

const docker = await dockerAvailable();
const folder = tempDir('swebatch-refused-');
const rows = (name: string, more: object): string => {
  const row = {
    instance_id: 'a__a-1',
    repo: 'nobody/nothing',
    version: '1',
    base_commit: 'a'.repeat(40),
    image: 'swebatch-test/none:1',
    problem_statement: 'x',
    patch: '',
    test_patch: '',
    FAIL_TO_PASS: '["t"]',
    PASS_TO_PASS: '[]',
    ...more,
  };
  writeFileSync(join(folder, name), `${JSON.stringify(row)}\n`);
  return join(folder, name);
};
const UNGRADABLE = rows('rows.jsonl', {});
const replies = join(folder, 'replies.json');
writeFileSync(replies, '[]');
const MODEL = ['-m', `scripted:${replies}`];

const asked = (...more: string[]) => askedOf(UNGRADABLE, ...more);

const askedOf = async (dataset: string, ...more: string[]) => {
  const words = ['--subset', dataset, ...MODEL, ...more];
  const [run, plan, doctor] = await Promise.all([
    cli(['run', ...words, '-o', join(folder, 'run')]),
    cli(['run', ...words, '-o', join(folder, 'plan'), '--dry-run']),
    cli(['doctor', ...words, '-o', join(folder, 'doctor')]),
  ]);
  return { run, plan, doctor };
};

test('tasks without a grader are refused with --evaluate, and left out where that is asked for', async () => {
  const { run, plan, doctor } = await asked('--evaluate', '-c', 'environment.environment_class=local');
  for (const said of [run, plan]) {
    expect(said.code).toBe(2);
    expect(said.stderr).toContain('1 of 1 tasks cannot be graded:\n  a__a-1: ');
    expect(said.stderr).toContain('leave --evaluate out to run them without verdicts');
  }
  expect(doctor.code).toBe(2);
  expect(doctor.stdout).toContain('FAIL dataset: 1 of 1 tasks cannot be graded');
  expect(doctor.stdout).toContain('fix: leave --evaluate out to run them without verdicts');
});

test('a split that a file does not have is refused', async () => {
  const { run, plan, doctor } = await asked('--split', 'dev');
  for (const said of [run, plan]) {
    expect(said.code).toBe(2);
    expect(said.stderr).toContain('has no split "dev": it has none at all; leave --split out');
  }
  expect(doctor.stdout).toContain('has no split "dev"');
});

describe.skipIf(!docker)('an engine', () => {
  test.each([
    [
      'processors that it has not',
      'environment.cpus=4096',
      /environment\.cpus is 4096, and it has \d+ processors/,
    ],
    [
      'a network that is not there',
      'environment.network=nowhere',
      /it has no network "nowhere", but .*bridge/,
    ],
    ['less memory than it gives', 'environment.memory=1k', /it refuses such a container: .*6MB/],
    ['a platform that is none', 'environment.platform=nonsense', /it refuses such a container: .*nonsense/],
  ])('is not asked for %s', async (_what, key, text) => {
    const { run, plan, doctor } = await asked('-c', key);
    expect(run.code).toBe(2);
    expect(run.stderr).toMatch(text);
    expect(plan.stderr).toMatch(/warning: a run would be refused: engine for arm /);
    expect(plan.stderr).toMatch(text);
    expect(doctor.code).toBe(2);
    expect(doctor.stdout).toMatch(text);
    const names = (await new Docker().listContainers({ all: true })).flatMap(({ Names }) => Names);
    expect(names.filter((name) => name.includes('swebatch-preflight'))).toEqual([]);
  });

  // The copy says what it is built for; that no program in it could run here needs no emulator to show.
  test('is not asked to start copies of images that are built for another platform', async () => {
    const engine = new Docker();
    const image = 'swebatch-test/one-file:platform';
    const files = tar.pack();
    files.entry({ name: 'file' }, 'x');
    files.finalize();
    const [repo, tag] = image.split(':');
    // Its types know files of this machine alone.
    const stream = files as unknown as NodeJS.ReadableStream;
    const imported: NodeJS.ReadableStream = await engine.importImage(stream, { repo, tag });
    await new Promise((done) => engine.modem.followProgress(imported, done));
    const { Architecture } = await engine.getImage(image).inspect();
    const other = Architecture === 'amd64' ? 'arm64' : 'amd64';
    try {
      const dataset = rows('there.jsonl', { image });
      const platform = `environment.platform=linux/${other}`;
      const text = `copies of ${image} are built for linux/${Architecture}, and environment.platform is linux/${other}`;
      const { run, plan, doctor } = await askedOf(dataset, '-c', platform);
      expect(run.code).toBe(2);
      expect(run.stderr).toContain(text);
      expect(run.stderr).toContain('with --pull always, or set environment.platform=linux/');
      expect(plan.stderr).toContain('warning: a run would be refused: engine: its');
      expect(plan.stderr).toContain(text);
      expect(doctor.code).toBe(2);
      expect(doctor.stdout).toContain(text);
      const anew = await cli([
        'run',
        '--subset',
        dataset,
        ...MODEL,
        '-c',
        platform,
        '--pull',
        'always',
        '--dry-run',
      ]);
      expect(anew.stderr).not.toContain(text);
    } finally {
      await engine.getImage(image).remove({ force: true });
    }
  });
});
