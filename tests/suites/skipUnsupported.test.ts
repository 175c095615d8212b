// Tasks that cannot run here: all are told with their reasons before anything starts, or left out where the person says so.
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { headOf } from '../../src/dataset/dataset.ts';
import { refusalsOf, type TaskFacts } from '../../src/run/plan/checks.ts';
import { readTask } from '../../src/suites/harbor/readTask.ts';
import { loadDataset } from '../../src/suites/loadDataset.ts';
import { cli, tempDir } from '../support/cli.ts';
import { harborTask } from '../support/kinds/harborTask.ts';

const IMAGE = '[environment]\ndocker_image = "debian:12"\n';

function tasks(): { dir: string; folder: string } {
  const dir = tempDir();
  const folder = join(dir, 'tasks');
  harborTask(folder, 'good');
  harborTask(folder, 'also-good');
  harborTask(folder, 'broken', { 'task.toml': '[environment' });
  harborTask(folder, 'tpu', { 'task.toml': `${IMAGE}tpu = 2\ncolour = "red"\n` });
  mkdirSync(join(dir, 'elsewhere'));
  writeFileSync(join(dir, 'elsewhere', 'secret'), 'a secret');
  symlinkSync(join(dir, 'elsewhere', 'secret'), join(harborTask(folder, 'leaves'), 'tests', 'secret'));
  writeFileSync(join(dir, 'replies.json'), JSON.stringify(['done']));
  return { dir, folder };
}

test('a run is refused with every reason; --skip-unsupported plans the others and names what it left out', async () => {
  const { dir, folder } = tasks();
  const args = [
    'run',
    '--dry-run',
    '--subset',
    folder,
    '-m',
    `scripted:${join(dir, 'replies.json')}`,
    '-o',
    dir,
  ];
  const refused = await cli(args);
  expect(refused.code, refused.stderr).toBe(2);
  expect(refused.stderr).toContain('3 of 5 tasks cannot run here');
  expect(refused.stderr).toContain('broken: task.toml cannot be read');
  expect(refused.stderr).toContain('tpu: environment asks for a TPU');
  expect(refused.stderr).toContain("leaves: tests/secret is a link that leads out of the task's folder");
  expect(refused.stderr).toContain('--skip-unsupported');
  expect(refused.stderr).toContain('task.toml has a key that is not known here: environment.colour');

  const planned = await cli([...args, '--skip-unsupported', '--json']);
  expect(planned.code, planned.stderr).toBe(0);
  const { instances } = JSON.parse(planned.stdout) as { instances: { instance_id: string }[] };
  expect(instances.map(({ instance_id }) => instance_id)).toEqual(['also-good', 'good']);
  expect(`${planned.stdout}${planned.stderr}`).toContain('3 of 5 tasks cannot run here');
});

type Files = Parameters<typeof harborTask>[2];

/** By the name of the task, what refuses it: checks, or sentences. */
async function refused(
  tasks: Record<string, Files>,
  facts: Partial<TaskFacts>,
  by: 'check' | 'why' = 'check',
) {
  const folder = join(tempDir(), 'tasks');
  for (const [name, files] of Object.entries(tasks)) harborTask(folder, name, files);
  const loaded = await loadDataset(folder);
  if (!loaded.ok) throw new Error(loaded.problems[0]!.message);
  const all = { run: [{ graded: true }], engine: [], machine: [], arm: [], grader: [], ...facts };
  const found = loaded.dataset.rows.map(async (row) => {
    const refusals = (await refusalsOf(row, all)).map((one) => one[by]);
    return refusals.length > 0 ? [[headOf(row).instance_id, refusals]] : [];
  });
  return Object.fromEntries((await Promise.all(found)).flat()) as Record<string, string[]>;
}

const engine = (more: object) => ({
  engine: [{ cpus: 4, memoryBytes: 0, gpus: [], name: 'Docker', ...more } as never],
});
const arms = (...of: [agent_class: string, environment_class?: string, pull?: 'never' | 'missing'][]) => ({
  arm: of.map(([agent_class, environment_class = 'docker', pull]) => ({
    agent: { agent_class },
    environment: { environment_class, ...(pull && { pull }) },
  })),
});
const toml = (lines: string): Files => ({ 'task.toml': `${IMAGE}${lines}\n` });
const composed = (services: string, more: Files = {}): Files => ({
  ...{ 'task.toml': IMAGE, 'environment/docker-compose.yaml': `services: { ${services} }\n` },
  ...more,
});

test('a task that asks for more than the engine has is refused, also for its verifier alone', async () => {
  const tasks = {
    enough: toml('cpus = 4\nmemory_mb = 16384'),
    many: toml('memory = "32G"\ncpus = 4.5'),
    none: toml(''),
    verifier: toml('[verifier.environment]\ncpus = 16\nmemory_mb = 65536'),
  };
  // A machine that is sold with 16 GB.
  expect(await refused(tasks, engine({ memoryBytes: 15.4 * 2 ** 30 }), 'why')).toEqual({
    many: [
      'it asks for 4.5 processors, and the engine has 4',
      'it asks for 32 GiB of memory, and the engine has 15.4 GiB',
    ],
    verifier: [
      'it asks for 16 processors, and the engine has 4',
      'it asks for 64 GiB of memory, and the engine has 15.4 GiB',
    ],
  });
  expect(await refused(tasks, engine({ cpus: 0 }))).toEqual({});
});

test('a task with MCP servers is refused for every agent that does not take them, each with its reason', async () => {
  const server = (lines: string) => toml(`[[environment.mcp_servers]]\nname = "files"\n${lines}`);
  const tasks = {
    plain: toml(''),
    stdio: server('transport = "stdio"\ncommand = "serve"'),
    stream: server('url = "http://localhost:1/sse"'),
  };
  const by = (...classes: string[]) =>
    refused(tasks, arms(...classes.map((name): [string] => [name])), 'why');
  const takers = 'codex, claude-code, opencode, gemini-cli and acp do';
  const untaken = (agent: string) => [`it has MCP servers (files), which ${agent} does not take; ${takers}`];
  expect(await by('claude-code@2.1.330', 'opencode', 'gemini-cli')).toEqual({});
  for (const [name, said] of [
    ['default', 'the built-in agent'],
    ['command', 'the agent command'],
    ['./own.ts', 'the agent ./own.ts'],
  ] as const)
    expect(await by('opencode', name)).toEqual({ stdio: untaken(said), stream: untaken(said) });
  expect(await by('codex')).toEqual({
    stream: ['the agent codex does not speak sse, as its MCP server files does'],
  });
});

test.each<[string, Record<string, Files>, Partial<TaskFacts>, Record<string, string[]>]>([
  ...['docker', 'local', 'kubernetes', './own.ts'].map(
    (place): [string, Record<string, Files>, Partial<TaskFacts>, Record<string, string[]>] => [
      `several steps, where end states may be kept or not: ${place}`,
      {
        plain: toml(''),
        stepped: {
          ...toml('[[steps]]\nname = "one"'),
          'steps/one/instruction.md': 'Do it.\n',
        },
      },
      arms(['codex', place]),
      place === 'docker' ? {} : { stepped: ['end states'] },
    ],
  ),
  ...['docker', 'kubernetes', 'local', './own.ts'].map(
    (place): [string, Record<string, Files>, Partial<TaskFacts>, Record<string, string[]>] => [
      `services, where they are started or not: ${place}`,
      {
        alone: composed('main: { environment: { A: b } }'),
        served: composed('db: { image: "postgres:17" }'),
      },
      arms(['codex'], ['codex', place]),
      ['docker', 'kubernetes'].includes(place) ? {} : { served: ['services'] },
    ],
  ),
  ['services on Docker', { served: composed('db: { image: "postgres:17" }') }, engine({}), {}],
  [
    'services on Podman',
    { served: composed('db: { image: "postgres:17" }') },
    engine({ name: 'Podman' }),
    { served: ['services on the engine'] },
  ],
  [
    'services that are gone before the verdict',
    { served: composed('db: { image: "postgres:17" }') },
    { run: [{ graded: false }] },
    { served: ['services to its verdict'] },
  ],
])('%s', async (_what, tasks, facts, expected) => {
  expect(await refused(tasks, facts)).toEqual(expected);
});

test('in pods a task is refused for services that one pod cannot give, for a verifier with another network, and for images that are built', async () => {
  const services = (lines: string, more: Files = {}) =>
    composed(`db: { image: "postgres:17", ${lines} }`, more);
  const tasks = {
    again: services('restart: always'),
    built: services('working_dir: /', {
      'task.toml': 'schema_version = "1.3"\n',
      'environment/Dockerfile': 'FROM debian:12\n',
    }),
    other: services(
      'working_dir: /',
      toml('network_mode = "no-network"\n[verifier]\nnetwork_mode = "public"'),
    ),
    plain: services('working_dir: /'),
  };
  const reasons = {
    again: [
      'its services are no containers of one pod: db is restarted (restart: always), and a pod starts none of its containers again',
    ],
    built: [
      expect.stringMatching(
        /^1 image of it is built \(swebatch\.internal\/harbor:\w+\), and Kubernetes builds none: bring them to its nodes and set environment\.pull=never, or name published ones$/,
      ),
    ],
    other: [
      "its verifier has another network than its agent, and its services end with its agent's container in Kubernetes",
    ],
  };
  expect(await refused(tasks, arms(['codex', 'kubernetes', 'missing']), 'why')).toEqual(reasons);
  // Whoever pulls nothing has brought them.
  const { built: _, ...others } = reasons;
  expect(await refused(tasks, arms(['codex', 'kubernetes', 'never']), 'why')).toEqual(others);
  expect(await refused(tasks, arms(['codex']))).toEqual({});
});

test('a task of several steps has no services', () => {
  const folder = harborTask(tempDir(), 'stepped', {
    'task.toml': `${IMAGE}[[steps]]\nname = "one"\n`,
    'steps/one/instruction.md': 'Do it.\n',
    'environment/docker-compose.yaml': 'services: { db: { image: "postgres:17" } }\n',
  });
  expect(readTask(folder).refused).toBe('it has several steps, and services beside them');
});
