// Tasks by an address: fetched once, pinned by what they are, and nothing of a hostile registry or repository leads out of the cache.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { headOf, readInstance } from '../../src/dataset/dataset.ts';
import { addedDatasets } from '../../src/dataset/read/addedDatasets.ts';
import { addDataset, pinTasks, requireDataset } from '../../src/run/datasets.ts';
import { newestVersion } from '../../src/suites/harbor/registry.ts';
import { tempDir } from '../support/cli.ts';
import { startFakeHub } from '../support/fakeHub.ts';
import { harborTask } from '../support/kinds/harborTask.ts';

interface Place {
  readonly dir: string;
  readonly env: Record<string, string>;
  readonly git: (...args: string[]) => string;
  /** The repository of `tasks/one` and `tasks/two`. */
  readonly url: string;
}

function place(): Place {
  const dir = tempDir('named-tasks-');
  const repo = join(dir, 'suite.git');
  const env = {
    ...{ PATH: process.env.PATH!, HOME: dir, XDG_CACHE_HOME: join(dir, 'cache') },
    ...{ GIT_CONFIG_NOSYSTEM: '1', GIT_AUTHOR_NAME: 'a', GIT_AUTHOR_EMAIL: 'a@example.org' },
    ...{ GIT_COMMITTER_NAME: 'a', GIT_COMMITTER_EMAIL: 'a@example.org' },
    SWEBATCH_HARBOR_REGISTRY: join(dir, 'registry.json'),
  };
  mkdirSync(repo);
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', repo, ...args], { env, encoding: 'utf8', stdio: 'pipe' }).trim();
  git('init', '-q');
  harborTask(join(repo, 'tasks'), 'one');
  harborTask(join(repo, 'tasks'), 'two');
  git('add', '.');
  git('commit', '-qm', 'two tasks');
  return { dir, env, git, url: pathToFileURL(repo).href };
}

const silent = () => {};
const idsOf = async (source: string, env: Record<string, string>) => {
  const { rows } = await requireDataset(source, { env });
  return rows.map((row) => headOf(row).instance_id);
};
const registry = ({ env }: Place, datasets: unknown) =>
  writeFileSync(env.SWEBATCH_HARBOR_REGISTRY!, JSON.stringify(datasets));
const dataset = (name: string, version: string, tasks: readonly Record<string, unknown>[]) => ({
  ...{ name, version, description: 'made', tasks },
});

test('a folder of a repository at a commit is fetched once, and found again without the repository', async () => {
  const { dir, env, git, url } = place();
  const commit = git('rev-parse', 'HEAD');
  const source = `git+${url}#tasks/one@${commit}`;
  const said: string[] = [];
  const first = await requireDataset(source, { env }, (text) => said.push(text));
  expect(first.rows.map((row) => headOf(row).instance_id)).toEqual(['one']);
  expect([first.source, first.revision]).toEqual([source, commit]);
  expect(said).toEqual([`fetching ${source}`]);
  renameSync(join(dir, 'suite.git'), join(dir, 'away'));
  expect((await requireDataset(source, { env })).fileHash).toBe(first.fileHash);
  expect(addedDatasets(env)[source]).toMatchObject({ source, revision: commit, fileHash: first.fileHash });
});

test('an address without a commit stands for what it was first, until it is pulled again', async () => {
  const { dir, env, git, url } = place();
  const source = `git+${url}#tasks`;
  expect(await idsOf(source, env)).toEqual(['one', 'two']);
  harborTask(join(dir, 'suite.git', 'tasks'), 'three');
  git('add', '.');
  git('commit', '-qm', 'a third');
  expect(await idsOf(source, env)).toEqual(['one', 'two']);
  await pinTasks(source, { env, say: silent });
  expect(await idsOf(source, env)).toEqual(['one', 'three', 'two']);
});

test('a copy that is gone is fetched again, and refused where it is not what it was', async () => {
  const { dir, env, git, url } = place();
  const source = `git+${url}`;
  const { fileHash } = await requireDataset(source, { env });
  const gone = () => rmSync(addedDatasets(env)[source]!.path, { recursive: true });
  gone();
  expect((await requireDataset(source, { env })).fileHash).toBe(fileHash);
  gone();
  writeFileSync(join(dir, 'suite.git/tasks/one/instruction.md'), 'Something else.\n');
  git('commit', '-qam', 'another task');
  await expect(requireDataset(source, { env })).rejects.toThrow('is not what it was');
  // Changed in the cache.
  await pinTasks(source, { env, say: silent });
  writeFileSync(join(addedDatasets(env)[source]!.path, 'tasks/one/instruction.md'), 'Easier.\n');
  await expect(requireDataset(source, { env })).rejects.toThrow('has changed since it was added');
});

test('a name of a registry is its tasks at their commits, in the newest version where none is named', async () => {
  const here = place();
  const { dir, env, git, url } = here;
  const commit = git('rev-parse', 'HEAD');
  writeFileSync(join(dir, 'suite.git/tasks/two/instruction.md'), 'A later version.\n');
  git('commit', '-qam', 'later');
  harborTask(dir, 'local-task');
  const at = (name: string, more = {}) => ({ name, git_url: url, path: `tasks/${name}`, ...more });
  registry(here, [
    dataset('made/suite', '1.9', [at('one')]),
    dataset('made/suite', '1.10', [
      ...[at('one', { git_commit_id: commit }), at('two', { git_commit_id: commit })],
      { name: 'made/local', path: 'local-task' },
    ]),
  ]);
  const found = await requireDataset('harbor:made/suite', { env });
  expect(found.rows.map((row) => headOf(row).instance_id)).toEqual(['local', 'one', 'two']);
  expect(found.revision).toBe('1.10');
  expect(readInstance(found.rows[2]!).problem_statement).toContain('Write "hello"');
  expect(await idsOf('harbor:made/suite@1.9', env)).toEqual(['one']);
  await expect(requireDataset('harbor:made/suit', { env })).rejects.toThrow('did you mean made/suite?');
  await expect(requireDataset('harbor:made/suite@2', { env })).rejects.toThrow('it has 1.9, 1.10');
  expect(newestVersion(['1.9', '1.10', 'beta'])).toBe('1.10');
  expect(newestVersion(['2.0', 'head'])).toBe('head');
});

test('a repository of task folders on the hub is copied whole, at its commit', async () => {
  const { env } = place();
  const commit = 'c'.repeat(40);
  const text = (value: string) => new TextEncoder().encode(value);
  const hub = await startFakeHub({});
  try {
    hub.repos['made/tasks'] = {
      commit,
      files: {
        'one/task.toml': text('schema_version = "1.3"\n[environment]\ndocker_image = "debian:12"\n'),
        'one/instruction.md': text('Do it.\n'),
        'one/tests/test.sh': text('true\n'),
      },
    };
    const hubEnv = { ...env, HF_ENDPOINT: hub.url };
    const found = await requireDataset('hf:made/tasks', { env: hubEnv });
    expect(found.rows.map((row) => [headOf(row).instance_id, row.refused])).toEqual([['one', undefined]]);
    expect(found.revision).toBe(commit);
  } finally {
    await hub.close();
  }
  expect(await idsOf('hf:made/tasks', env)).toEqual(['one']);
});

test.each([
  ['a path above the repository', { name: 'x', path: '../../etc' }, 'cannot be cloned|not a path in'],
  ['a name that is a path', { name: '..', path: 'tasks/one' }, 'not a path in'],
  ['another transport', { name: 'x', git_url: 'ext::sh -c touch% hit', path: 'tasks/one' }, 'not fetched'],
  [
    'an option for a commit',
    { name: 'x', git_commit_id: '--upload-pack=x', path: 'tasks/one' },
    'not a branch',
  ],
  ['a file for a folder', { name: 'x', path: 'tasks/one/task.toml' }, 'not a folder'],
  ['a link to elsewhere', { name: 'x', path: 'out' }, 'leads outside|not a folder'],
])('%s in a registry is refused, and nothing is left of it', async (_, task, why) => {
  const here = place();
  const { dir, env, git, url } = here;
  symlinkSync(dirname(dir), join(dir, 'suite.git', 'out'));
  git('add', '.');
  git('commit', '-qm', 'a link');
  registry(here, [dataset('made/suite', '1', [{ git_url: url, ...task }])]);
  await expect(requireDataset('harbor:made/suite', { env })).rejects.toThrow(new RegExp(why));
  expect(addedDatasets(env)).toEqual({});
  expect(existsSync(join(dir, 'hit'))).toBe(false);
});

test('what is no address, no registry and no repository is told', async () => {
  const here = place();
  const { dir, env } = here;
  const fails = (source: string) => expect(requireDataset(source, { env })).rejects;
  await fails('git+made').toThrow('is not the address of a repository');
  await fails(`git+file://${dir}/none`).toThrow('cannot be cloned');
  await fails('harbor:made/suite').toThrow('cannot be read');
  registry(here, { datasets: 3 });
  await fails('harbor:made/suite').toThrow('is no registry of datasets');
});

test('files that Git LFS did not bring refuse the tasks', async () => {
  const { dir, env, git, url } = place();
  const pointer = 'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n';
  writeFileSync(join(dir, 'suite.git/tasks/one/data.bin'), pointer);
  git('add', '.');
  git('commit', '-qm', 'large');
  await expect(addDataset({ source: `git+${url}`, env })).rejects.toThrow('lies in Git LFS');
});
