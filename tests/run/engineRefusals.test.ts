// What an engine cannot give, and what cannot be graded, is told by run, its plan and doctor alike, before anything is made.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Docker from 'dockerode';
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

const asked = async (...more: string[]) => {
  const words = ['--subset', UNGRADABLE, ...MODEL, ...more];
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
});
