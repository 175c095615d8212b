// A port inside of a container without network, with a real engine: what comes through, what the agent can do to it, and how it dies.
import type { Duplex } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildPrograms } from '../../../scripts/buildPrograms.ts';
import type { Doorway, Environment } from '../../../src/environment/environment.ts';
import { LABELS } from '../../../src/environment/owner.ts';
import { docker, dockerAvailable } from '../../support/docker.ts';
import { testDocker } from '../../support/dockerEnvironment.ts';

const here = testDocker({ network: 'none' });
const available = await dockerAvailable();
let environment: Environment;
let door: Doorway;

/** Answers with what it got, as soon as it gets it. */
const echo = (connection: Duplex): void => {
  connection.on('error', () => undefined);
  connection.pipe(connection);
};

/** Runs JavaScript in the container; its output. */
async function inside(script: string, timeoutS = 120): Promise<string> {
  await environment.putFile('/tmp/probe.mjs', script);
  const { output, exitCode } = await environment.execute('node /tmp/probe.mjs', { timeoutS });
  return exitCode === 0 ? output.trim() : `exit ${exitCode}: ${output}`;
}

async function relayId(port = 13131): Promise<string> {
  const { containerId } = environment.info;
  // Those of this process: what other tests run may be gone before it is inspected.
  const all = await docker.listContainers({ filters: { label: [`${LABELS.pid}=${process.pid}`] } });
  const inspected = await Promise.all(all.map(({ Id }) => docker.getContainer(Id).inspect()));
  const found = inspected.find(
    ({ HostConfig, Config }) =>
      HostConfig.NetworkMode === `container:${containerId}` && Config.Cmd?.[0] === String(port),
  );
  return found!.Id;
}

describe.skipIf(!available)('a port inside of a container', () => {
  beforeAll(async () => {
    buildPrograms();
    environment = await here.start();
    door = await environment.listen(13131, echo);
  });
  afterAll(() => here.stop());

  test('the loopback is the only network, and the port on it answers', async () => {
    const seen = await inside(`
      import { connect } from 'node:net';
      import { readdirSync } from 'node:fs';
      const socket = connect(13131, '127.0.0.1');
      let got = '';
      socket.on('data', (data) => (got += data)).on('end', () => console.log(readdirSync('/sys/class/net').join(), got));
      socket.end('hello');
    `);
    expect(seen).toBe('lo hello');
  });

  test('the relay is bare, and the agent sees no process of it', async () => {
    const { HostConfig, Config } = await docker.getContainer(await relayId()).inspect();
    expect(HostConfig).toMatchObject({
      ReadonlyRootfs: true,
      PidsLimit: 8,
      CapDrop: ['ALL'],
      Privileged: false,
    });
    expect(HostConfig.Binds ?? []).toEqual([]);
    expect(Config.Labels['swebatch.run']).toBe('test-run');
    const { output } = await environment.execute('cat /proc/[0-9]*/cmdline | tr "\\0" " "');
    expect(output).not.toContain('/relay');
    expect(
      await inside(`
        import { connect } from 'node:net';
        connect(13131, '127.0.0.1').on('connect', () => { console.log('there'); process.exit(); });
      `),
    ).toBe('there');
  });

  test('50 MB go through and come back as they were, also to a reader that is slow', async () => {
    const seen = await inside(`
      import { connect } from 'node:net';
      import { createHash, randomBytes } from 'node:crypto';
      const all = randomBytes(50 << 20);
      const socket = connect(13131, '127.0.0.1');
      const hash = createHash('sha256');
      let got = 0;
      socket.on('readable', async () => {
        for (let part; (part = socket.read()); ) {
          hash.update(part);
          got += part.length;
          if (got < 1 << 20) await new Promise((resolve) => setTimeout(resolve, 5));
        }
      });
      socket.on('end', () => console.log(got, hash.digest('hex') === createHash('sha256').update(all).digest('hex')));
      socket.end(all);
    `);
    expect(seen).toBe(`${50 << 20} true`);
  });

  test('1000 connections at a time are carried, half-open ones too', async () => {
    const seen = await inside(`
      import { connect } from 'node:net';
      const idle = [];
      const one = (n) => new Promise((resolve, reject) => {
        const socket = connect({ port: 13131, host: '127.0.0.1', allowHalfOpen: true });
        let got = '';
        socket.on('error', reject).on('data', (data) => { got += data; if (got === 'n' + n) resolve(idle.push(socket)); });
        socket.write('n' + n);
        if (n % 2) socket.end();
      });
      await Promise.all(Array.from({ length: 1000 }, (_, n) => one(n)));
      console.log(idle.length);
      process.exit();
    `);
    expect(seen).toBe('1000');
  });

  test('a program that breaks its connections off leaves none behind', async () => {
    const open = new Set<Duplex>();
    const second = await environment.listen(13132, (connection) => {
      open.add(connection);
      connection.on('close', () => open.delete(connection)).on('error', () => undefined);
      connection.write(Buffer.alloc(1 << 20));
    });
    await inside(`
      import { connect } from 'node:net';
      let left = 50;
      for (let n = 0; n < 50; n += 1) {
        const socket = connect(13132, '127.0.0.1');
        socket.once('data', () => { socket.resetAndDestroy(); if ((left -= 1) === 0) process.exit(); });
      }
    `);
    await expect.poll(() => open.size).toBe(0);
    await second.close();
  });

  test('a relay that is killed is told once, as the death of the environment', async () => {
    let connection: Duplex | undefined;
    const third = await environment.listen(13133, (one) => {
      connection = one;
    });
    const id = await relayId(13133);
    void inside(`
      import { connect } from 'node:net';
      connect(13133, '127.0.0.1').on('close', () => process.exit());
    `);
    await expect.poll(() => connection).toBeDefined();
    await docker.getContainer(id).kill();
    const error = await third.broken;
    expect(error).toMatchObject({ name: 'EnvironmentError', code: 'died', sub: 'relay' });
    expect(error.evidence).toMatchObject({ relay: id });
    await expect.poll(() => connection!.destroyed).toBe(true);
    await third.close();
  });

  test('a port that is taken is refused with the reason', async () => {
    await expect(environment.listen(13131, echo)).rejects.toMatchObject({
      code: 'start_failed',
      evidence: { said: expect.stringContaining('cannot be opened') },
    });
  });

  test('closing the environment removes the relay, and is no death of it', async () => {
    const id = await relayId();
    let died = false;
    void door.broken.then(() => {
      died = true;
    });
    await environment.close();
    await expect(docker.getContainer(id).inspect()).rejects.toThrow('no such container');
    expect(died).toBe(false);
  });
});
