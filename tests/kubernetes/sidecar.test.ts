// The sidecar of an installed agent in a real cluster: what comes through its port, what the agent can do to it, and how it dies.

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { buildPrograms } from '../../scripts/buildPrograms.ts';
import type { Environment } from '../../src/environment/environment.ts';
import type { Program } from '../../src/environment/programs/program.ts';
import { packageAt } from '../support/agents/packages.ts';
import { docker } from '../support/docker.ts';
import { containersOfPod, kubectl } from './clusterTools.ts';
import { testCluster } from './testCluster.ts';

const cluster = testCluster();
const PORT = 13131;
afterEach(() => cluster.stop());
afterAll(() => cluster.stop());
beforeAll(() => void buildPrograms());

const echo = (connection: Duplex): void => {
  connection.on('error', () => undefined);
  connection.pipe(connection);
};

/** Runs JavaScript in the agent's container; its output. */
async function inside(environment: Environment, script: string): Promise<string> {
  await environment.putFile('/tmp/probe.mjs', script);
  const { output, exitCode } = await environment.execute('node /tmp/probe.mjs', { timeoutS: 120 });
  return exitCode === 0 ? output.trim() : `exit ${exitCode}: ${output}`;
}

const program = async (): Promise<Program> => ({
  name: 'demo@1.0.0',
  architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
  variants: [
    {
      libc: null,
      packages: [
        await packageAt(join(mkdtempSync(join(tmpdir(), 'sidecar-')), 'demo.tgz'), [
          { name: 'package/bin/hello', content: '#!/bin/sh\necho hello\n', mode: 0o755 },
          { name: 'package/lib/big', content: 'x'.repeat(30_000_000) },
        ]),
      ],
    },
  ],
});

describe('a port in a pod without network', () => {
  test('carries 20 MB as they were and 500 connections at a time, and another pod does not reach it', async () => {
    const environment = await cluster.start({ config: { network: 'none' }, options: { relay: true } });
    await environment.listen(PORT, echo);
    const seen = await inside(
      environment,
      `
      import { connect } from 'node:net';
      import { createHash, randomBytes } from 'node:crypto';
      const all = randomBytes(20 << 20);
      const socket = connect(${PORT}, '127.0.0.1');
      const hash = createHash('sha256');
      let got = 0;
      socket.on('data', (part) => { hash.update(part); got += part.length; });
      socket.on('end', () => console.log(got, hash.digest('hex') === createHash('sha256').update(all).digest('hex')));
      socket.end(all);
    `,
    );
    expect(seen).toBe(`${20 << 20} true`);
    const many = await inside(
      environment,
      `
      import { connect } from 'node:net';
      await Promise.all(Array.from({ length: 500 }, (_, n) => new Promise((resolve, reject) => {
        const socket = connect(${PORT}, '127.0.0.1');
        let got = '';
        socket.on('error', reject).on('data', (data) => { got += data; if (got === 'n' + n) resolve(); });
        socket.write('n' + n);
      })));
      console.log('all');
      process.exit();
    `,
    );
    expect(many).toBe('all');
    // Neighbours without the policy: what refuses them is the relay's address alone.
    const open = { network: 'bridge' } as const;
    const owner = await cluster.start({ config: open, options: { relay: true } });
    await owner.listen(PORT, echo);
    const stranger = await cluster.start({ config: open, options: { relay: true } });
    const address = kubectl('get', 'pod', owner.info.containerId!, '-o', 'jsonpath={.status.podIP}');
    const knock = `for at in ${address} 127.0.0.1; do timeout 5 bash -c "exec 3<>/dev/tcp/$at/${PORT}" 2>/dev/null && echo reached || echo refused; done`;
    expect((await stranger.execute(knock)).output).toBe('refused\nrefused\n');
  });

  test('belongs to a relay that the agent neither sees nor can end, which has no rights and small limits', async () => {
    const environment = await cluster.start({
      ...{ config: { network: 'none', env: { TOLD_TO_THE_AGENT: '1' } } },
      options: { relay: true, program: await program() },
    });
    const door = await environment.listen(PORT, echo);
    const { output } = await environment.execute(
      'cat /proc/[0-9]*/cmdline | tr "\\0" " "; ls /opt; kill -9 -1; echo still',
    );
    expect(output).not.toMatch(/swebatch-relay|sleep 86400/);
    const pod = environment.info.containerId!;
    const relay = (line: string) => kubectl('exec', pod, '-c', 'swebatch-relay', '--', 'sh', '-c', line);
    expect(relay('id -u; id -g; touch /x /etc/x 2>&1; env')).toMatch(
      /^65534\n65534\n.*Read-only file system/,
    );
    expect(relay('env')).not.toContain('TOLD_TO_THE_AGENT');
    expect(relay('grep -E "CapEff|NoNewPrivs" /proc/self/status').split(/\s+/)).toEqual(
      expect.arrayContaining(['0000000000000000', '1']),
    );
    expect(
      relay('cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null; true'),
    ).toBe('268435456\n');
    expect(relay('ls /var/run/secrets 2>&1 || true')).toContain('No such file');
    expect(
      await inside(
        environment,
        `
        import { connect } from 'node:net';
        connect(${PORT}, '127.0.0.1').on('connect', () => { console.log('there'); process.exit(); });
      `,
      ),
    ).toBe('there');
    await door.close();
    await expect.poll(() => relay('cat /proc/[0-9]*/cmdline | tr "\\0" " "')).not.toContain('relay 13131');
  });

  test('that loses its relay ends the attempt as infrastructure, and says so once', async () => {
    const environment = await cluster.start({ options: { relay: true } });
    const door = await environment.listen(PORT, echo);
    const [id] = await containersOfPod(environment.info.containerId!, 'swebatch-relay');
    await docker.getContainer(id!).kill();
    expect(await door.broken).toMatchObject({ code: 'died', sub: 'relay', fromWithin: false });
    expect((await environment.execute('echo lives')).output).toBe('lives\n');
    await environment.close();
  });

  test('whose pod is deleted ends as that', async () => {
    const environment = await cluster.start({ options: { relay: true } });
    const door = await environment.listen(PORT, echo);
    kubectl('delete', 'pod', environment.info.containerId!, '--grace-period=0', '--force');
    expect(await door.broken).toMatchObject({ code: 'died', sub: 'killed' });
  });
});

describe('a program in a pod', () => {
  test('is there when the agent begins, cannot be changed by it, and is no part of the patch', async () => {
    const environment = await cluster.start({ options: { relay: true, program: await program() } });
    const said = await environment.execute(
      '/opt/swebatch-program/demo/bin/hello; touch /opt/swebatch-program/demo/bin/hello; rm -rf /opt/swebatch-program; mount -o remount,rw /opt/swebatch-program; wc -c </opt/swebatch-program/demo/lib/big',
    );
    expect(said.output).toMatch(/^hello\ntouch: .*Read-only file system/);
    expect(said.output).toMatch(/\n30000000\n$/);
    expect((await environment.capturePatch()).state).toBe('empty');
  });

  test('leaves the agent its own limit of the disk', async () => {
    const environment = await cluster.start({
      ...{ config: { disk: '50m' } },
      options: { relay: true, program: await program() },
    });
    const writing = environment.execute('dd if=/dev/zero of=/big bs=1M count=200; sleep 300', {
      timeoutS: 240,
    });
    await expect(writing).rejects.toMatchObject({ code: 'disk_full', fromWithin: true });
  });
});
