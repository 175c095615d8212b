// A container without a network has a loopback with its names, and nothing else, whoever made it: the engine's sandbox or we.
import { execFileSync } from 'node:child_process';
import type Docker from 'dockerode';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { createLoopbackProbe } from '../../../src/environment/docker/noNetwork.ts';
import type { Environment } from '../../../src/environment/environment.ts';
import { docker, dockerAvailable } from '../../support/docker.ts';
import { derivedImage, REPOSITORY_SCRIPT, testDocker } from '../../support/dockerEnvironment.ts';

describe('who makes the network of a container', () => {
  const engine = (info: object) => ({ info: async () => info }) as unknown as Docker;
  const runc = { DefaultRuntime: 'runc' };
  const cases: [what: string, info: object, network: string, user: string, ours: boolean][] = [
    ['root without a network on runc', runc, 'none', '', true],
    ['root by number and group', runc, 'none', '0:1000', true],
    ['a user who could not write the names', runc, 'none', 'dev', false],
    ['a network', runc, 'bridge', '', false],
    ['another runtime', { DefaultRuntime: 'runsc' }, 'none', '', false],
    ['Podman', { ...runc, BuildahVersion: '1' }, 'none', '', false],
  ];
  test.each(cases)('%s', async (_what, info, network, user, ours) => {
    expect(await createLoopbackProbe(engine(info))(network, user)).toBe(ours);
  });

  test('an engine that did not answer is asked again', async () => {
    let asked = 0;
    const has = createLoopbackProbe({
      info: async () => {
        asked += 1;
        if (asked === 1) throw new Error('not now');
        return runc;
      },
    } as unknown as Docker);
    expect([await has('none', ''), await has('none', ''), await has('none', ''), asked]).toEqual([
      false,
      true,
      true,
      2,
    ]);
  });
});

const available = await dockerAvailable();
const here = testDocker({ network: 'none' });
afterAll(() => here.stop());

/** What a program sees of it: devices, both loopbacks, the ports and pings that are free, the names. */
const LOOK = `
ls /sys/class/net
cat /proc/sys/net/ipv4/ip_unprivileged_port_start /proc/sys/net/ipv4/ping_group_range /etc/hosts
python3 - <<'X'
import socket
server = socket.create_server(('localhost', 80))
client = socket.create_connection(('localhost', 80), 5)
server.accept()[0].sendall(b'hello')
print(client.recv(5))
for name, port in (('deb.debian.org', 80), ('192.0.2.1', 80)):
    try:
        socket.create_connection((name, port), 5)
    except OSError as error:
        print(error)
X
`;

const NAMES = 'cat /etc/hosts /etc/resolv.conf';
const look = async (environment: Environment, command: string): Promise<string> =>
  (await environment.execute(command, { timeoutS: 60 })).output;

describe.skipIf(!available)('a container without a network', () => {
  test('is to a program what one of the engine is', async () => {
    const ours = await here.start();
    const made = await docker.getContainer(ours.info.containerId!).inspect();
    expect(made).toMatchObject({ Config: { NetworkDisabled: true } });
    const theirs = await here.start({
      image: await derivedImage(AS_DEV),
      config: { user: 'dev', seal_history: false },
    });
    const other = await docker.getContainer(theirs.info.containerId!).inspect();
    expect(other).not.toMatchObject({ Config: { NetworkDisabled: true } });
    const [seen, inTheirs] = [await look(ours, LOOK), await look(theirs, LOOK)];
    expect(seen).toBe(inTheirs);
    expect(seen).toMatch(/^lo\n0\n0\t2147483647\n127\.0\.0\.1\tlocalhost\n/);
    expect(seen).toMatch(/b'hello'\n.*name resolution\n.*Network is unreachable\n$/);
  });

  test('what the agent did to its names is not there for whoever judges', async () => {
    const first = await here.start();
    const names = await look(first, NAMES);
    await look(first, 'rm /etc/resolv.conf; echo 10.0.0.1 pypi.org >>/etc/hosts');
    const left = await first.keepWork();
    try {
      expect(names).toMatch(/ip6-allrouters\nnameserver 192\.0\.2\.53\n$/);
      expect(await look(await here.start({ image: left, config: { seal_history: false } }), NAMES)).toBe(
        names,
      );
    } finally {
      await here.stop();
      await docker.getImage(left).remove({ force: true });
    }
  });

  test('a name file that was made a pipe does not hold up the container when it starts again', async () => {
    const environment = await here.start();
    await look(environment, 'rm /etc/hosts; mkfifo /etc/hosts; rm /etc/resolv.conf');
    const { containerId } = environment.info;
    await docker.getContainer(containerId!).restart();
    const first = () =>
      execFileSync('docker', ['exec', containerId!, 'sh', '-c', 'cat /proc/1/comm /etc/resolv.conf'], {
        encoding: 'utf8',
      });
    await vi.waitFor(() => expect(first()).toBe('bash\nnameserver 192.0.2.53\n'), { timeout: 20_000 });
  });
});

const AS_DEV = `useradd -m dev; rm -rf /testbed; mkdir /testbed; W=/testbed; ${REPOSITORY_SCRIPT} chown -R dev /testbed`;
