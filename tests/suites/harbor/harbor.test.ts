// Harbor task folders: what is read, what is warned about, what is refused, and that nothing outside of a folder is read.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Dataset, headOf, readInstance, readRowHash } from '../../../src/dataset/dataset.ts';
import { harborTaskOf } from '../../../src/suites/harbor/readTask.ts';
import { loadDataset } from '../../../src/suites/loadDataset.ts';
import { harborTask } from '../../support/kinds/harborTask.ts';
import { needsOf, planGrading } from '../../support/suites.ts';

const root = () => mkdtempSync(join(tmpdir(), 'harbor-'));

async function loaded(folder: string): Promise<Dataset> {
  const result = await loadDataset(folder);
  if (!result.ok) throw new Error(result.problems.map(({ message }) => message).join('\n'));
  return result.dataset;
}

/** The only task of a folder, with this task.toml. */
async function taskWith(toml: string, files: Readonly<Record<string, string | null>> = {}) {
  const dataset = await loaded(harborTask(root(), 'task', { 'task.toml': toml, ...files }));
  return { row: dataset.rows[0]!, warnings: dataset.warnings };
}

const IMAGE = '[environment]\ndocker_image = "debian:12"\n';

describe('a folder of tasks', () => {
  test('each folder is an instance: its name, its instruction and its image', async () => {
    const dir = root();
    harborTask(dir, 'second');
    harborTask(dir, 'first', {
      'task.toml': `${IMAGE}[metadata]\nrepository_url = "https://github.com/org/name"\ndifficulty = "hard"\n`,
    });
    mkdirSync(join(dir, 'not-a-task'));
    const { rows } = await loaded(dir);
    expect(rows.map((row) => headOf(row).instance_id)).toEqual(['first', 'second']);
    expect(readInstance(rows[0]!)).toMatchObject({
      kind: 'harbor',
      image: 'debian:12',
      repo: 'org/name',
      difficulty: 'hard',
      problem_statement: 'Write "hello" to hello.txt.\n',
    });
  });

  test('one task folder, and a repository with tasks/, are datasets too', async () => {
    const dir = root();
    const one = harborTask(join(dir, 'tasks'), 'one');
    for (const source of [one, dir])
      expect((await loaded(source)).rows.map((row) => headOf(row).instance_id)).toEqual(['one']);
  });

  test('the hash of a row changes with each file that counts, and with no path of this machine', async () => {
    const hashWith = async (files: Record<string, string>) =>
      readRowHash((await loaded(harborTask(root(), 'task', files))).rows[0]!);
    const same = await hashWith({});
    expect(await hashWith({})).toBe(same);
    for (const path of ['instruction.md', 'tests/test.sh', 'solution/solve.sh', 'environment/data.txt'])
      expect(await hashWith({ [path]: 'other\n' })).not.toBe(same);
  });
});

describe('task.toml', () => {
  test('what the task asks of its container', async () => {
    const { row } = await taskWith(
      `version = "1.0"
[environment]
docker_image = "debian:12"
cpus = 3
memory_mb = 2048
storage_mb = 4096
workdir = "/app"
allow_internet = false
env = { A = "1", B = "\${HOME_DIR:-/root}" }
[environment.healthcheck]
command = "test -e /ready"
[agent]
timeout_sec = 600
user = 1000
`,
    );
    expect(needsOf(readInstance(row)).container).toMatchObject({
      cwd: '/app',
      network: 'none',
      cpus: 3,
      memoryMb: 2048,
      diskMb: 4096,
      worker: '1000',
      user: undefined,
      env: { A: '1', B: '/root' },
      lifetimeS: 2400,
      startupCommand: expect.stringContaining("check 'test -e /ready'"),
    });
  });

  test('sizes of older schemas, and the network that is the default of the format', async () => {
    const { row } = await taskWith('[environment]\ndocker_image = "debian:12"\nmemory = "2G"\n');
    expect(needsOf(readInstance(row)).container).toMatchObject({
      memoryMb: 2048,
      network: 'public',
      cwd: 'image',
    });
  });

  test('the hosts that each phase reaches: the policy of a phase goes before that of its environment, with its hosts', async () => {
    const { row } = await taskWith(`[environment]
docker_image = "debian:12"
network_mode = "allowlist"
allowed_hosts = ["PyPI.org", "*.example.com", "192.0.2.0/24"]
mcp_servers = [{ name = "web", url = "https://files.example.com/sse" }]
[agent]
network_mode = "allowlist"
allowed_hosts = ["files.example.com"]
[verifier]
network_mode = "no-network"
`);
    expect(row.refused).toBeUndefined();
    const setup = { allow: ['PyPI.org', '*.example.com', '192.0.2.0/24'] };
    const needs = needsOf(readInstance(row));
    expect(needs).toMatchObject({
      container: { network: { allow: ['files.example.com'] }, setupNetwork: setup },
      opensHosts: true,
    });
    // Its list is another in the same container while the tests run.
    expect(needs.judgedApart).toBeUndefined();
    expect(harborTaskOf(readInstance(row)).verifier.network).toBe('none');
  });

  test.each([
    ['', '', { network: 'public' }, 'public'],
    ['network_mode = "allowlist"', '', { network: { allow: [] } }, { allow: [] }],
    [
      'network_mode = "no-network"',
      '[verifier]\nnetwork_mode = "allowlist"\nallowed_hosts = ["a.com"]',
      { network: 'none' },
      { allow: ['a.com'] },
    ],
    [
      '',
      '[agent]\nnetwork_mode = "allowlist"\nallowed_hosts = ["a.com"]',
      { network: { allow: ['a.com'] }, setupNetwork: 'public' },
      'public',
    ],
    // No network of the agent is none from the beginning, as it always was.
    ['', '[agent]\nnetwork_mode = "no-network"', { network: 'none' }, 'public'],
  ])('%j and %j', async (environment, phases, container, verifier) => {
    const { row } = await taskWith(`${IMAGE}${environment}\n${phases}\n`);
    const { network, setupNetwork } = needsOf(readInstance(row)).container!;
    expect({ network, ...(setupNetwork !== undefined && { setupNetwork }) }).toEqual(container);
    expect(harborTaskOf(readInstance(row)).verifier.network).toEqual(verifier);
  });

  test('the MCP servers that its agent is to have, also one of its own container without network', async () => {
    const { row } = await taskWith(`[environment]
docker_image = "debian:12"
network_mode = "no-network"
[[environment.mcp_servers]]
name = "files"
transport = "stdio"
command = "python3"
args = ["/srv/files.py"]
[[environment.mcp_servers]]
name = "web"
transport = "http"
url = "http://127.0.0.1:8000/mcp"
`);
    expect(row.refused).toBeUndefined();
    expect(needsOf(readInstance(row)).toolServers).toEqual([
      { name: 'files', transport: 'stdio', command: 'python3', args: ['/srv/files.py'] },
      { name: 'web', transport: 'streamable-http', url: 'http://127.0.0.1:8000/mcp' },
    ]);
  });

  test('a verifier of its own: its image is built from tests/, and brings the tests', async () => {
    const { row } = await taskWith(`${IMAGE}[verifier]\nenvironment_mode = "separate"\n`, {
      'tests/Dockerfile': 'FROM debian:12\n',
    });
    expect(harborTaskOf(readInstance(row)).verifier.separate).toMatchObject({
      image: expect.stringMatching(/^swebatch\.internal\/harbor:[0-9a-f]{32}$/),
      bundled: true,
    });
  });

  test('a key that the format does not have is a warning that names it, once for all tasks', async () => {
    const dir = root();
    for (const id of ['a', 'b'])
      harborTask(dir, id, { 'task.toml': `${IMAGE}colour = "red"\n[agent]\nmood = 1\n` });
    const { rows, warnings } = await loaded(dir);
    expect(rows.map(({ refused }) => refused)).toEqual([undefined, undefined]);
    expect(warnings).toEqual([
      '2 tasks, such as a: task.toml has a key that is not known here: agent.mood',
      '2 tasks, such as a: task.toml has a key that is not known here: environment.colour',
    ]);
  });

  test('an unknown key of an artifact is a warning too, and the artifact counts', async () => {
    const { row, warnings } = await taskWith(
      `artifacts = ["/a", { source = "/b", colour = "red" }]\n${IMAGE}`,
    );
    expect(warnings).toEqual(['task: task.toml has a key that is not known here: artifacts.1.colour']);
    expect(harborTaskOf(readInstance(row)).artifacts).toEqual([
      { source: '/a', exclude: [] },
      { source: '/b', exclude: [] },
    ]);
  });

  test.each([
    ['[environment', 'task.toml cannot be read'],
    [
      '[environment]\n\ncpus = [\n',
      'task.toml cannot be read: Invalid TOML document: invalid value at line 4, column 1',
    ],
    ['[environment]\ncpus = "two"\n', 'task.toml: environment.cpus: must be a number'],
    [`${IMAGE}[verifier]\ntimeout_sec = -5\n`, 'task.toml: verifier.timeout_sec: must be 0 or more'],
    [
      `${IMAGE}network_mode = "allowlist"\nallowed_hosts = ["https://a.com"]\n`,
      'environment.allowed_hosts: "https://a.com" is no range of addresses',
    ],
    [
      `${IMAGE}[agent]\nnetwork_mode = "allowlist"\nallowed_hosts = ["a.com:8080"]\n`,
      'agent.allowed_hosts: "a.com:8080" must name a host without a port',
    ],
    [
      `${IMAGE}[verifier]\nnetwork_mode = "allowlist"\nallowed_hosts = ["a*.com"]\n`,
      'verifier.allowed_hosts: "a*.com" is no host',
    ],
    [
      `${IMAGE}network_mode = "allowlist"\nallowed_hosts = ["a.com"]\nmcp_servers = [{ name = "web", url = "https://b.com/sse" }]\n`,
      'the MCP server web is at b.com, which a container without network does not reach',
    ],
    [`${IMAGE}os = "Windows"\n`, 'environment.os is windows'],
    [`${IMAGE}allowed_hosts = ["a.com"]\n`, 'environment.allowed_hosts is set without network_mode'],
    [`${IMAGE}[verifier]\nallowed_hosts = ["a.com"]\n`, 'verifier.allowed_hosts is set without network_mode'],
    [`${IMAGE}memory = "2G"\nmemory_mb = 1024\n`, 'environment has memory and memory_mb'],
    [`${IMAGE}memory = "much"\n`, '"much" is not a size'],
    // Without a transport it is one of "sse", as in Harbor.
    [`${IMAGE}mcp_servers = [{ name = "files", command = "x" }]\n`, 'the MCP server files names no url'],
    [
      `${IMAGE}mcp_servers = [{ name = "files", transport = "stdio" }]\n`,
      'the MCP server files names no command',
    ],
    [
      `${IMAGE}network_mode = "no-network"\nmcp_servers = [{ name = "web", url = "http://mcp:8000/sse" }]\n`,
      'the MCP server web is at mcp, which a container without network does not reach',
    ],
    [
      `${IMAGE}mcp_servers = [{ name = "web", url = "http://mcp", headers = { Authorization = "\${TOKEN}" } }]\n`,
      'the MCP server web wants headers of this machine',
    ],
    [`${IMAGE}mcp_servers = [{ name = "web", url = "file:///etc/x" }]\n`, 'web is not reached by file:'],
    [
      `${IMAGE}mcp_servers = [{ name = "web", url = "mcp" }]\n`,
      'web has an address that cannot be read: mcp',
    ],
    [`${IMAGE}mcp_servers = [{ name = "a b", url = "http://x" }]\n`, 'mcp_servers.0.name: must be letters'],
    [`${IMAGE}mcp_servers = [{ name = "a", transport = "ws" }]\n`, 'mcp_servers.0.transport'],
    [
      `${IMAGE}mcp_servers = [{ name = "a", url = "http://x" }, { name = "a", url = "http://y" }]\n`,
      'environment.mcp_servers has a twice',
    ],
    ['[environment]\n', 'it names no image'],
    ['[environment]\ndocker_image = "../x"\n', 'is not an image name'],
  ])('%j is refused: %s', async (toml, reason) => {
    const { row } = await taskWith(toml);
    expect(row.refused).toContain(reason);
    expect(readInstance(row).instance_id).toBe('task');
    // A file of predictions may have one for it, and gold has.
    expect(planGrading(readInstance(row))).toEqual({
      ok: false,
      reason: `task cannot be graded: ${row.refused}`,
    });
  });

  test.each([
    ['instruction.md', 'it has no instruction.md'],
    ['tests/test.sh', 'it has no tests/test.sh'],
  ])('without %s it is refused', async (path, reason) => {
    const dataset = await loaded(harborTask(root(), 'task', { [path]: null }));
    expect(dataset.rows[0]!.refused).toBe(reason);
  });
});

describe('links', () => {
  test.each(['tests/secret', 'environment/secret', 'solution/secret', 'instruction.md'])(
    '%s that leads out of the folder is refused, and the others go on',
    async (path) => {
      const dir = root();
      writeFileSync(join(dir, 'outside.txt'), 'a secret');
      const bad = harborTask(dir, 'bad', {
        'environment/x': '',
        ...(path === 'instruction.md' && { [path]: null }),
      });
      symlinkSync(join(dir, 'outside.txt'), join(bad, path));
      harborTask(dir, 'good');
      const { rows } = await loaded(dir);
      expect(rows.map(({ refused }) => refused)).toEqual([
        `${path} is a link that leads out of the task's folder`,
        undefined,
      ]);
      expect(JSON.stringify(rows)).not.toContain('a secret');
    },
  );

  test('a folder that is a link to another place is refused', async () => {
    const dir = root();
    mkdirSync(join(dir, 'elsewhere'));
    writeFileSync(join(dir, 'elsewhere', 'test.sh'), 'a secret');
    const bad = harborTask(dir, 'bad', { 'tests/test.sh': null });
    symlinkSync(join(dir, 'elsewhere'), join(bad, 'tests'));
    expect((await loaded(dir)).rows[0]!.refused).toBe("tests is a link that leads out of the task's folder");
  });

  test('a link to a file of the same task is read as that file', async () => {
    const task = harborTask(root(), 'task');
    symlinkSync('test.sh', join(task, 'tests', 'again.sh'));
    expect((await loaded(task)).rows[0]!.refused).toBeUndefined();
  });
});

const REAL = join(import.meta.dirname, '../../../../shared/data/tasks/deep-swe.tar.xz');

test.skipIf(!existsSync(REAL))(
  'the published tasks of deep-swe are all read, without a warning (shared/data)',
  async () => {
    const dir = root();
    execFileSync('tar', ['xJf', REAL, '-C', dir]);
    const { rows, warnings } = await loaded(dir);
    expect(rows).toHaveLength(23);
    expect(rows.filter(({ refused }) => refused !== undefined)).toEqual([]);
    expect(warnings).toEqual([]);
    for (const instance of rows.map(readInstance))
      expect(harborTaskOf(instance)).toMatchObject({
        network: 'none',
        agent: { timeout_s: 5400 },
        artifacts: [{ source: '/logs/artifacts/model.patch' }],
        verifier: { network: 'none', separate: { bundled: true } },
      });
  },
);
