// Lists of hosts from the command to the record: a Harbor task whose phases have one, a row of any dataset with one of the configuration, and where
// no proxy keeps it.

import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { openStore } from '../../../src/store/open.ts';
import { cli, tempDir } from '../../support/cli.ts';
import { dockerAvailable } from '../../support/docker.ts';
import { BASE_IMAGE } from '../../support/dockerEnvironment.ts';
import { harborTask } from '../../support/kinds/harborTask.ts';

const available = await dockerAvailable();
/** A name that leads to this machine, and is not localhost, which programs ask without a proxy. */
const HOST = hostname().toLowerCase();

let server: Server;
let port: number;
let address: string;
beforeAll(async () => {
  ({ address } = await lookup(HOST));
  server = createServer((request, response) => response.end(`answer ${request.url}`));
  server.listen(0);
  await once(server, 'listening');
  ({ port } = server.address() as AddressInfo);
});
afterAll(() => server.close());

/** Python's client reads the variables of its container. */
const ask = (url: string) =>
  `python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())' ${url}`;

const shownSchema = z.object({
  connections: z
    .array(
      z.object({
        phase: z.string(),
        via: z.string(),
        host: z.string(),
        port: z.number(),
        outcome: z.string(),
        reason: z.string().nullable(),
        bytes_in: z.number(),
        bytes_out: z.number(),
        count: z.number(),
      }),
    )
    .default([]),
});
const connectionsIn = async (out: string, run: string, instance: string) => {
  const { stdout } = await cli(['show', run, instance, '-o', out, '--json']);
  return shownSchema.parse(JSON.parse(stdout)).connections;
};
const ID = 'swebatch__cronwheel-23';
const brief = (rows: Awaited<ReturnType<typeof connectionsIn>>) =>
  rows.map(({ phase, via, host, port: to, outcome }) => `${phase} ${via} ${host}:${to} ${outcome}`);

describe.skipIf(!available)('lists of hosts', () => {
  test('a Harbor task that has them is run; each phase has its own, and what was tried is shown', async () => {
    const dir = tempDir('hosts-');
    const tasks = join(dir, 'tasks');
    harborTask(tasks, 'listed', {
      'task.toml': `schema_version = "1.4"
[environment]
network_mode = "allowlist"
allowed_hosts = ["setup.invalid"]
[environment.healthcheck]
command = "${ask('http://setup.invalid/').replaceAll('"', '\\"')}; true"
[agent]
network_mode = "allowlist"
allowed_hosts = ["agent.invalid", "${HOST}"]
[verifier]
network_mode = "allowlist"
allowed_hosts = ["tests.invalid"]
`,
      'environment/Dockerfile': `FROM ${BASE_IMAGE}\nENV HTTP_PROXY=http://10.0.0.1:1\nWORKDIR /app\n`,
      'solution/solve.sh': `#!/bin/bash
${ask(`http://${HOST}:${port}/file`)} > got
${ask(`http://${HOST}/`)}
${ask('https://agent.invalid/')}
${ask('http://setup.invalid/')}
${ask('http://169.254.169.254/latest/meta-data/')}
exit 0
`,
      'tests/test.sh': `#!/bin/bash
${ask('http://tests.invalid/')}
${ask(`http://${HOST}:${port}/tests`)}
grep -c 'answer /file' /app/got > /logs/verifier/reward.txt
`,
    });
    const config = join(dir, 'c.yaml');
    writeFileSync(
      config,
      JSON.stringify({ environment: { network: { allow: [`${HOST}:${port}`, `${address}:${port}`] } } }),
    );
    const out = join(dir, 'out');
    const oracle = ['-c', config, '-c', 'agent.agent_class=oracle', '--run-id', 'o', '--evaluate'];
    const run = await cli(['run', '--subset', tasks, '-o', out, ...oracle]);
    expect(run.stdout + run.stderr).toMatch(/listed graded resolved/);
    const rows = await connectionsIn(out, 'o', 'listed');
    expect(brief(rows)).toEqual([
      // Names that end so are nobody's, so what the list opens fails.
      'setup http setup.invalid:80 failed',
      `agent http ${HOST}:${port} allowed`,
      // The list of the task opens the name, and nothing but the person's an address of this machine.
      `agent http ${HOST}:80 refused`,
      'agent connect agent.invalid:443 failed',
      'agent http setup.invalid:80 refused',
      'agent http 169.254.169.254:80 refused',
      'verifier http tests.invalid:80 failed',
      `verifier http ${HOST}:${port} refused`,
    ]);
    expect(rows[1]).toMatchObject({ reason: null, count: 1 });
    expect(rows[1]!.bytes_in).toBeGreaterThan(50);
    expect(rows[2]!.reason).toContain('which is not public');
    const { stdout } = await cli(['show', 'o', 'listed', '-o', out]);
    expect(stdout).toContain('connections to the outside (8)');
    expect(stdout).toContain(`agent     allowed  ${HOST}:${port}: in `);
    expect(stdout).toMatch(
      /agent +refused +169\.254\.169\.254:80: 169\.254\.169\.254 is not on the list of hosts/,
    );
    const removed = await cli(['delete', 'o', '-o', out, '--yes']);
    expect(removed.code).toBe(0);
  });

  test('services are reached beside a list, and tests that run beside what was left have their own', async () => {
    const dir = tempDir('hosts-services-');
    const tasks = join(dir, 'tasks');
    harborTask(tasks, 'beside', {
      'task.toml': `schema_version = "1.4"
[environment]
network_mode = "no-network"
[agent]
network_mode = "allowlist"
allowed_hosts = ["agent.invalid"]
[verifier]
network_mode = "allowlist"
allowed_hosts = ["tests.invalid"]
`,
      'environment/Dockerfile': `FROM ${BASE_IMAGE}\nWORKDIR /app\nRUN echo served > /app/page\n`,
      'environment/docker-compose.yaml': `services:
  web:
    image: \${MAIN_IMAGE_NAME}
    command: python3 -m http.server 8000
    healthcheck: { test: "python3 -c 'import urllib.request as u; u.urlopen(\\"http://127.0.0.1:8000/page\\")'", interval: 200ms, retries: 50 }
`,
      'solution/solve.sh': `#!/bin/bash
${ask('http://web:8000/page')} > got
${ask('http://agent.invalid/')}
setsid sleep 1000 >/dev/null 2>&1 &
exit 0
`,
      'tests/test.sh': `#!/bin/bash
${ask('http://agent.invalid/')}
${ask('http://tests.invalid/')}
grep -c served /app/got > /logs/verifier/reward.txt
`,
    });
    const out = join(dir, 'out');
    const oracle = ['-c', 'agent.agent_class=oracle', '--run-id', 's', '--evaluate'];
    const run = await cli(['run', '--subset', tasks, '-o', out, ...oracle]);
    expect(run.stdout + run.stderr).toMatch(/beside graded resolved/);
    using store = openStore(join(out, 'swebatch.db'), { readonly: true });
    expect(store.prepare('SELECT suspicion FROM evaluations').pluck().get()).toContain('ran_beside');
    expect(brief(await connectionsIn(out, 's', 'beside'))).toEqual([
      'agent http agent.invalid:80 failed',
      'verifier http agent.invalid:80 refused',
      'verifier http tests.invalid:80 failed',
    ]);
  });

  test('each step of a task has its own list, and another before its agent', async () => {
    const dir = tempDir('hosts-steps-');
    const tasks = join(dir, 'tasks');
    const all = ['setup', 'one', 'two'].map((name) => ask(`http://${name}.invalid/`)).join('\n');
    const step = (name: string) => ({
      [`steps/${name}/instruction.md`]: 'Do it.\n',
      [`steps/${name}/workdir/setup.sh`]: `#!/bin/bash\n${all}\nexit 0\n`,
      [`steps/${name}/solution/solve.sh`]: `#!/bin/bash\n${all}\nexit 0\n`,
      [`steps/${name}/tests/test.sh`]: '#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n',
    });
    harborTask(tasks, 'stepped', {
      'task.toml': `schema_version = "1.4"
[environment]
network_mode = "allowlist"
allowed_hosts = ["setup.invalid"]
[agent]
network_mode = "no-network"
[[steps]]
name = "one"
[steps.agent]
network_mode = "allowlist"
allowed_hosts = ["one.invalid"]
[[steps]]
name = "two"
[steps.agent]
network_mode = "allowlist"
allowed_hosts = ["two.invalid"]
`,
      ...{ 'instruction.md': null, 'tests/test.sh': null, 'solution/solve.sh': null },
      'environment/Dockerfile': `FROM ${BASE_IMAGE}\nWORKDIR /app\n`,
      ...step('one'),
      ...step('two'),
    });
    const out = join(dir, 'out');
    const oracle = ['-c', 'agent.agent_class=oracle', '--run-id', 't', '--evaluate'];
    const run = await cli(['run', '--subset', tasks, '-o', out, ...oracle]);
    expect(run.stdout + run.stderr).toMatch(/stepped graded resolved/);
    const rows = (await connectionsIn(out, 't', 'stepped')).map(
      ({ phase, host, outcome }) => `${phase} ${host.split('.')[0]} ${outcome}`,
    );
    const opened = ['setup setup', 'agent one', 'setup setup', 'agent two'];
    expect(rows.filter((row) => row.endsWith('failed'))).toEqual(opened.map((one) => `${one} failed`));
    expect(rows.filter((row) => row.endsWith('refused'))).toHaveLength(8);
  });

  test('a row of any dataset has those of the configuration', async () => {
    const dir = tempDir('hosts-row-');
    const replies = join(dir, 'replies.json');
    const reply = (command: string) => ({ content: `THOUGHT: next.\n\n\`\`\`bash\n${command}\n\`\`\`` });
    const commands = [
      ask(`http://${HOST}:${port}/row`),
      ask('http://evil.invalid/'),
      'echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT',
    ];
    writeFileSync(replies, JSON.stringify({ replies: commands.map(reply) }));
    const config = join(dir, 'c.yaml');
    writeFileSync(
      config,
      JSON.stringify({ environment: { network: { allow: [`${HOST}:${port}`, `${address}:${port}`] } } }),
    );
    const out = join(dir, 'out');
    const run = await cli([
      ...['run', '--subset', 'datasets/demo/demo.jsonl', '-m', `scripted:${replies}`, '-c', config],
      ...['-o', out, '--run-id', 'r', '-i', ID],
    ]);
    expect(run.stdout + run.stderr).toMatch(/submitted/i);
    expect(brief(await connectionsIn(out, 'r', ID))).toEqual([
      `agent http ${HOST}:${port} allowed`,
      'agent http evil.invalid:80 refused',
    ]);
  });
});

describe('where no proxy keeps a list', () => {
  const listed = (root: string) =>
    harborTask(root, 'listed', {
      'task.toml':
        'schema_version = "1.4"\n[environment]\ndocker_image = "debian:12"\n[verifier]\nnetwork_mode = "allowlist"\n',
    });

  test.each(['kubernetes', 'local'])(
    'the task and the configuration are refused with the reason: %s',
    async (name) => {
      const dir = tempDir('hosts-elsewhere-');
      listed(join(dir, 'tasks'));
      const run = (more: readonly string[]) =>
        cli([
          'run',
          '-o',
          join(dir, 'out'),
          '--dry-run',
          '-m',
          'scripted:x',
          ...more,
          '-c',
          `environment.environment_class=${name}`,
        ]);
      const task = await run(['--subset', join(dir, 'tasks')]);
      expect(task.code).not.toBe(0);
      expect(task.stderr).toContain(
        `its list of hosts is kept with environment.environment_class docker alone, and not with ${name}`,
      );
      const config = join(dir, 'c.yaml');
      writeFileSync(config, JSON.stringify({ environment: { network: { allow: ['pypi.org'] } } }));
      const configured = await run(['--subset', 'datasets/demo/demo.jsonl', '-c', config]);
      expect(configured.code).not.toBe(0);
      expect(configured.stderr).toContain(
        `a list of hosts is kept by a proxy that ${name} environments do not have`,
      );
    },
  );

  test('what is no host is refused with its place', async () => {
    const dir = tempDir('hosts-wrong-');
    const config = join(dir, 'c.yaml');
    writeFileSync(config, JSON.stringify({ environment: { network: { allow: ['https://pypi.org'] } } }));
    const { code, stderr } = await cli([
      ...['run', '-o', join(dir, 'out'), '--dry-run', '--subset', 'datasets/demo/demo.jsonl'],
      ...['-m', 'scripted:x', '-c', config],
    ]);
    expect(code).not.toBe(0);
    expect(stderr).toContain('environment.network');
    expect(stderr).toContain('"https://pypi.org" is no range of addresses');
  });
});
