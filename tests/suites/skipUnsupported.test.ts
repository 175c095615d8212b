// Tasks that cannot run here: all are told with their reasons before anything starts, or left out where the person says so.
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { beyondAgents, beyondEngine, beyondServices } from '../../src/run/plan/unsupported.ts';
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

test('a task that asks for more processors than the engine has is refused, also for its verifier alone', async () => {
  const folder = join(tempDir(), 'tasks');
  harborTask(folder, 'enough', { 'task.toml': `${IMAGE}cpus = 4\n` });
  harborTask(folder, 'many', { 'task.toml': `${IMAGE}cpus = 4.5\n` });
  harborTask(folder, 'none', { 'task.toml': IMAGE });
  harborTask(folder, 'verifier', { 'task.toml': `${IMAGE}[verifier.environment]\ncpus = 16\n` });
  const loaded = await loadDataset(folder);
  if (!loaded.ok) throw new Error(loaded.problems[0]!.message);
  expect(beyondEngine(loaded.dataset.rows, 4).map(({ refused }) => refused)).toEqual([
    undefined,
    'it asks for 4.5 processors, and the engine has 4',
    undefined,
    'it asks for 16 processors, and the engine has 4',
  ]);
  expect(beyondEngine(loaded.dataset.rows, Number.POSITIVE_INFINITY)).toEqual(loaded.dataset.rows);

  harborTask(folder, 'enough', { 'task.toml': `${IMAGE}memory_mb = 16384\n` });
  harborTask(folder, 'many', { 'task.toml': `${IMAGE}memory = "32G"\ncpus = 8\n` });
  harborTask(folder, 'verifier', { 'task.toml': `${IMAGE}[verifier.environment]\nmemory_mb = 65536\n` });
  const large = await loadDataset(folder);
  if (!large.ok) throw new Error(large.problems[0]!.message);
  // A machine that is sold with 16 GB.
  expect(beyondEngine(large.dataset.rows, 4, 15.4 * 2 ** 30).map(({ refused }) => refused)).toEqual([
    undefined,
    'it asks for 8 processors, and the engine has 4; it asks for 32 GiB of memory, and the engine has 15.4 GiB',
    undefined,
    'it asks for 64 GiB of memory, and the engine has 15.4 GiB',
  ]);
});

test('a task with MCP servers is refused for every agent that does not take them, each with its reason', async () => {
  const folder = join(tempDir(), 'tasks');
  const server = (lines: string) => `${IMAGE}[[environment.mcp_servers]]\nname = "files"\n${lines}\n`;
  harborTask(folder, 'plain', { 'task.toml': IMAGE });
  harborTask(folder, 'stdio', { 'task.toml': server('transport = "stdio"\ncommand = "serve"') });
  harborTask(folder, 'stream', { 'task.toml': server('url = "http://localhost:1/sse"') });
  const loaded = await loadDataset(folder);
  if (!loaded.ok) throw new Error(loaded.problems[0]!.message);
  const refusals = async (...classes: string[]) =>
    (
      await beyondAgents(
        loaded.dataset.rows,
        classes.map((agent_class) => ({
          agent: { agent_class },
          environment: { environment_class: 'docker' },
        })),
      )
    ).map(({ refused }) => refused);
  const takers = 'codex, claude-code, opencode, gemini-cli and acp do';
  const untaken = (agent: string) => `it has MCP servers (files), which ${agent} does not take; ${takers}`;
  expect(await refusals('claude-code@2.1.330', 'opencode', 'gemini-cli')).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  for (const [name, said] of [
    ['default', 'the built-in agent'],
    ['command', 'the agent command'],
    ['./own.ts', 'the agent ./own.ts'],
  ] as const)
    expect(await refusals(name)).toEqual([undefined, untaken(said), untaken(said)]);
  expect(await refusals('codex')).toEqual([
    ...[undefined, undefined],
    'the agent codex does not speak sse, as its MCP server files does',
  ]);
  expect((await refusals('opencode', 'default'))[1]).toBe(untaken('the built-in agent'));
});

test('a task of several steps is refused where end states cannot be kept', async () => {
  const folder = join(tempDir(), 'tasks');
  harborTask(folder, 'plain', { 'task.toml': IMAGE });
  harborTask(folder, 'stepped', {
    'task.toml': `${IMAGE}[[steps]]\nname = "one"\n`,
    'steps/one/instruction.md': 'Do it.\n',
  });
  const loaded = await loadDataset(folder);
  if (!loaded.ok) throw new Error(loaded.problems[0]!.message);
  const refusedIn = async (environment_class: string) =>
    (
      await beyondAgents(loaded.dataset.rows, [
        { agent: { agent_class: 'codex' }, environment: { environment_class } },
      ])
    ).map(({ refused }) => refused);
  expect(await refusedIn('docker')).toEqual([undefined, undefined]);
  for (const other of ['local', 'kubernetes', './own.ts'])
    expect(await refusedIn(other)).toEqual([undefined, expect.stringContaining(`and not with ${other}`)]);
});

test('a task with services is refused where they are not started, and where they would be gone before it is graded', async () => {
  const folder = join(tempDir(), 'tasks');
  harborTask(folder, 'alone', {
    'task.toml': IMAGE,
    'environment/docker-compose.yaml': 'services: { main: { environment: { A: b } } }\n',
  });
  harborTask(folder, 'served', {
    'task.toml': IMAGE,
    'environment/docker-compose.yaml': 'services: { db: { image: "postgres:17" } }\n',
  });
  const loaded = await loadDataset(folder);
  if (!loaded.ok) throw new Error(loaded.problems[0]!.message);
  const { rows } = loaded.dataset;
  const refusals = (of: readonly { readonly refused?: string | undefined }[]) =>
    of.map(({ refused }) => refused);
  const arm = (environment_class: string) => ({
    agent: { agent_class: 'codex' },
    environment: { environment_class },
  });
  expect(refusals(await beyondAgents(rows, [arm('docker')]))).toEqual([undefined, undefined]);
  expect(refusals(await beyondAgents(rows, [arm('kubernetes')]))).toEqual([undefined, undefined]);
  for (const other of ['local', './own.ts'])
    expect(refusals(await beyondAgents(rows, [arm('docker'), arm(other)]))).toEqual([
      undefined,
      `its services are started with environment.environment_class docker or kubernetes alone, and not with ${other}`,
    ]);
  expect(beyondServices(rows, { graded: true, engine: 'Docker' })).toEqual(rows);
  expect(refusals(beyondServices(rows, { graded: true, engine: 'Podman' }))).toEqual([
    undefined,
    'its services are started on engines of Docker alone, and this one is Podman',
  ]);
  expect(refusals(beyondServices(rows, { graded: false, engine: undefined }))).toEqual([
    undefined,
    expect.stringContaining('set grading.enabled'),
  ]);
});

test('in pods a task is refused for services that one pod cannot give, for a verifier with another network, and for images that are built', async () => {
  const folder = join(tempDir(), 'tasks');
  const services = (lines: string) => ({
    'task.toml': IMAGE,
    'environment/docker-compose.yaml': `services: { db: { image: "postgres:17", ${lines} } }\n`,
  });
  harborTask(folder, 'again', services('restart: always'));
  harborTask(folder, 'built', {
    ...services('working_dir: /'),
    'task.toml': 'schema_version = "1.3"\n',
    'environment/Dockerfile': 'FROM debian:12\n',
  });
  harborTask(folder, 'other', {
    ...services('working_dir: /'),
    'task.toml': `${IMAGE}network_mode = "no-network"\n[verifier]\nnetwork_mode = "public"\n`,
  });
  harborTask(folder, 'plain', services('working_dir: /'));
  const loaded = await loadDataset(folder);
  if (!loaded.ok) throw new Error(loaded.problems[0]!.message);
  const { rows } = loaded.dataset;
  const refusals = async (environment: { environment_class: string; pull?: 'never' | 'missing' }) =>
    (await beyondAgents(rows, [{ agent: { agent_class: 'codex' }, environment }])).map(
      ({ refused }) => refused,
    );
  const reasons = [
    'its services are no containers of one pod: db is restarted (restart: always), and a pod starts none of its containers again',
    expect.stringMatching(
      /^1 image of it is built \(swebatch\.internal\/harbor:\w+\), and Kubernetes builds none: bring them to its nodes and set environment\.pull=never, or name published ones$/,
    ),
    "its verifier has another network than its agent, and its services end with its agent's container in Kubernetes",
    undefined,
  ];
  expect(await refusals({ environment_class: 'kubernetes', pull: 'missing' })).toEqual(reasons);
  // Whoever pulls nothing has brought them.
  expect(await refusals({ environment_class: 'kubernetes', pull: 'never' })).toEqual(
    reasons.with(1, undefined),
  );
  expect(await refusals({ environment_class: 'docker' })).toEqual(Array(4).fill(undefined));
});

test('a task of several steps has no services', () => {
  const folder = harborTask(tempDir(), 'stepped', {
    'task.toml': `${IMAGE}[[steps]]\nname = "one"\n`,
    'steps/one/instruction.md': 'Do it.\n',
    'environment/docker-compose.yaml': 'services: { db: { image: "postgres:17" } }\n',
  });
  expect(readTask(folder).refused).toBe('it has several steps, and services beside them');
});
