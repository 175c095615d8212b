// A container without network that reaches the hosts of a list, with a real engine: what programs in it reach by the variables that it has, what is
// recorded of them, and what becomes of it when its relay dies.
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Server as TcpServer } from 'node:net';
import { createServer as createTls } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildPrograms } from '../../../scripts/buildPrograms.ts';
import type { EgressWays } from '../../../src/environment/egress/egressDoor.ts';
import type { EgressConnection, Environment, StartRequest } from '../../../src/environment/environment.ts';
import { LABELS } from '../../../src/environment/owner.ts';
import { docker, dockerAvailable } from '../../support/docker.ts';
import { repositoryImage, testDocker } from '../../support/dockerEnvironment.ts';

const available = await dockerAvailable();
const PUBLIC = '93.184.216.34';
/** An image that names a proxy of its own. */
const OTHER_PROXY = `swebatch-envtest/proxied:${process.pid}`;

let web: Server;
let secure: TcpServer;
// A key that both ends share stands for a certificate: whoever came between them would not have it.
const PSK = '0123456789abcdef';
const PSK_CIPHER = 'PSK-AES128-GCM-SHA256';
const here = testDocker({ network: { allow: ['files.example.com', 'moved.example.com'] } });
const egress: EgressWays = {
  resolve: async (host) => (host === 'moved.example.com' ? ['169.254.169.254'] : [PUBLIC]),
  dial: (_address, port) =>
    connect({
      port: ((port === 443 ? secure : web).address() as AddressInfo).port,
      host: '127.0.0.1',
      allowHalfOpen: true,
    }),
};
const seen: EgressConnection[] = [];
const start = (request: Partial<StartRequest> = {}) =>
  here.start({ request: { onConnection: (one) => void seen.push(one), ...request }, factory: { egress } });

/** What a host says to Python's own client, which reads the variables of the container. */
const fetched = async (environment: Environment, url: string, env?: Record<string, string>) => {
  const script = `
import sys, urllib.request
try:
    print(urllib.request.urlopen("${url}", timeout=20).read().decode())
except Exception as error:
    print("failed:", error, getattr(error, "read", bytes)().decode())`;
  await environment.putFile('/tmp/fetch.py', script);
  return (
    await environment.execute('python3 /tmp/fetch.py', { timeoutS: 60, ...(env && { env }) })
  ).output.trim();
};

describe.skipIf(!available)('a container that reaches the hosts of a list', () => {
  let environment: Environment;
  beforeAll(async () => {
    buildPrograms();
    web = createServer((request, response) =>
      request.url === '/away'
        ? response.writeHead(302, { location: 'http://evil.example.com/' }).end()
        : response.end(`${request.headers.host} says ${request.url}`),
    );
    web.listen(0, '127.0.0.1');
    await once(web, 'listening');
    secure = createTls(
      { ciphers: PSK_CIPHER, maxVersion: 'TLSv1.2', pskCallback: () => Buffer.from(PSK) },
      (socket) => {
        socket.on('error', () => {});
        socket.on('data', (data: Buffer) => socket.end(`secure ${socket.servername} ${data.toString()}`));
      },
    );
    secure.listen(0, '127.0.0.1');
    await once(secure, 'listening');
    environment = await start();
  });
  afterAll(async () => {
    await here.stop();
    await docker
      .getImage(OTHER_PROXY)
      .remove()
      .catch(() => undefined);
    web.close();
    secure.close();
  });

  test('has no network but its loopback, and reaches what is on the list', async () => {
    const { output } = await environment.execute(
      'ls /sys/class/net; getent hosts files.example.com || echo no name',
    );
    expect(output).toBe('lo\nno name\n');
    expect(await fetched(environment, 'http://files.example.com/a')).toBe('files.example.com says /a');
    expect(await fetched(environment, 'http://evil.example.com/')).toContain(
      'evil.example.com is not on the list of hosts',
    );
    expect(await fetched(environment, 'https://evil.example.com/')).toContain('403 Forbidden');
    expect(await fetched(environment, 'http://moved.example.com/')).toContain('which is not public');
    expect(await fetched(environment, 'http://files.example.com/away')).toContain(
      'is not on the list of hosts',
    );
    expect(seen.map(({ phase, via, host, port, outcome }) => [phase, via, host, port, outcome])).toEqual([
      ['agent', 'http', 'files.example.com', 80, 'allowed'],
      ['agent', 'http', 'evil.example.com', 80, 'refused'],
      ['agent', 'connect', 'evil.example.com', 443, 'refused'],
      ['agent', 'http', 'moved.example.com', 80, 'refused'],
      ['agent', 'http', 'files.example.com', 80, 'allowed'],
      ['agent', 'http', 'evil.example.com', 80, 'refused'],
    ]);
    expect(seen[0]!.bytesIn).toBeGreaterThan(50);
  });

  test('TLS goes through as it is, and not to another name', async () => {
    seen.length = 0;
    await environment.putFile(
      '/tmp/tls.mjs',
      `import { connect } from 'node:net';
import { connect as secure } from 'node:tls';
const ask = (servername) => new Promise((done) => {
  const socket = connect(Number(new URL(process.env.HTTPS_PROXY).port), '127.0.0.1');
  socket.write('CONNECT files.example.com:443 HTTP/1.1\\r\\nHost: files.example.com:443\\r\\n\\r\\n');
  socket.once('data', (head) => {
    if (!String(head).startsWith('HTTP/1.1 200')) done(String(head));
    const client = secure({ socket, servername, ciphers: '${PSK_CIPHER}', maxVersion: 'TLSv1.2', checkServerIdentity() {},
      pskCallback: () => ({ psk: Buffer.from('${PSK}'), identity: 'test' }) });
    client.on('error', (error) => done(error.message));
    client.on('data', (data) => done(String(data)));
    client.on('secureConnect', () => client.write('hello'));
  });
});
console.log(await ask('files.example.com'));
console.log(await ask('evil.example.com'));
process.exit(0);
`,
    );
    const { output } = await environment.execute('node /tmp/tls.mjs', { timeoutS: 60 });
    expect(output).toContain('secure files.example.com hello\n');
    expect(output).toMatch(/unrecognized name/i);
    expect(seen.map(({ via, host, outcome }) => [via, host, outcome]).sort()).toEqual([
      ['connect', 'files.example.com', 'allowed'],
      ['connect', 'files.example.com', 'refused'],
    ]);
  });

  test('the variables are ours, whatever the image, the configuration or a command says', async () => {
    const other = { HTTP_PROXY: 'http://10.0.0.1:1', http_proxy: 'http://10.0.0.1:1', no_proxy: '*' };
    const source = await docker.createContainer({
      Image: await repositoryImage(),
      Env: ['HTTPS_PROXY=http://10.0.0.3:3', 'ALL_PROXY=socks5://10.0.0.3:3'],
    });
    const [repo, tag] = OTHER_PROXY.split(':');
    await source.commit({ _query: { container: source.id, repo, tag, pause: false }, _body: {} });
    await source.remove();
    const own = await start({ image: OTHER_PROXY, container: { env: { ...other, KEPT: '1' } } });
    const { output } = await own.execute(
      'echo $HTTP_PROXY $http_proxy $https_proxy $ALL_PROXY $no_proxy $KEPT',
      {
        env: { HTTP_PROXY: 'http://10.0.0.2:2', NO_PROXY: 'files.example.com' },
      },
    );
    const proxy = 'http://127.0.0.1:13128';
    expect(output.trim()).toBe(`${proxy} ${proxy} ${proxy} ${proxy} localhost,127.0.0.1,::1 1`);
    expect(await fetched(own, 'http://files.example.com/b', other)).toBe('files.example.com says /b');
    await own.close();
  });

  test('what a task lists is open beside it, before the agent and then, and its end state names no proxy', async () => {
    seen.length = 0;
    const own = await start({
      container: {
        network: { allow: ['agent.example.com'] },
        setupNetwork: { allow: ['setup.example.com'] },
      },
      startupCommand:
        'python3 -c \'import urllib.request; print(urllib.request.urlopen("http://setup.example.com/").read())\'',
    });
    expect(await fetched(own, 'http://setup.example.com/')).toContain('is not on the list');
    expect(await fetched(own, 'http://agent.example.com/')).toContain('says /');
    expect(await fetched(own, 'http://files.example.com/')).toContain('says /');
    const tests = await own.beside(undefined, { allow: ['tests.example.com'] });
    expect(await fetched(tests, 'http://agent.example.com/')).toContain('is not on the list');
    expect(await fetched(tests, 'http://files.example.com/')).toContain('is not on the list');
    expect(await fetched(tests, 'http://tests.example.com/')).toContain('says /');
    expect(seen.map(({ phase, host, outcome }) => `${phase} ${host.split('.')[0]} ${outcome}`)).toEqual([
      'setup setup allowed',
      'agent setup refused',
      'agent agent allowed',
      'agent files allowed',
      'verifier agent refused',
      'verifier files refused',
      'verifier tests allowed',
    ]);
    const image = await own.keepWork();
    const { Config } = await docker.getImage(image).inspect();
    const named = Config.Env.filter((one) => /proxy/i.test(one) && !one.endsWith('='));
    await own.close();
    await docker.getImage(image).remove();
    expect(named).toEqual([]);
  });

  test('after a restart of the container by us the way out is there again', async () => {
    const own = await start();
    expect(await fetched(own, 'http://files.example.com/before')).toContain('says /before');
    // Every process stopped, the supervisor with them: only a restart helps.
    expect((await own.execute('kill -STOP -1; sleep 30', { timeoutS: 1 })).timedOut).toBe(true);
    expect(await fetched(own, 'http://files.example.com/after')).toContain('says /after');
    const all = await docker.listContainers({ filters: { label: [`${LABELS.pid}=${process.pid}`] } });
    const inspected = await Promise.all(all.map(({ Id }) => docker.getContainer(Id).inspect()));
    expect(
      inspected.filter(({ HostConfig }) => HostConfig.NetworkMode === `container:${own.info.containerId}`),
    ).toHaveLength(1);
    await own.close();
  });

  test('a container that has no list has no proxy', async () => {
    const own = await start({ container: { network: 'public' } });
    const { output } = await own.execute('env | grep -ci proxy');
    expect(output.trim()).toBe('0');
    await own.close();
  });

  test('without its relay it is lost, and nothing that the agent did', async () => {
    const own = await start();
    const all = await docker.listContainers({ filters: { label: [`${LABELS.pid}=${process.pid}`] } });
    const inspected = await Promise.all(all.map(({ Id }) => docker.getContainer(Id).inspect()));
    const relay = inspected.find(
      ({ HostConfig }) => HostConfig.NetworkMode === `container:${own.info.containerId}`,
    );
    await docker.getContainer(relay!.Id).kill();
    await expect
      .poll(() =>
        own.execute('true').then(
          () => 'done',
          (error: Error) => error.message,
        ),
      )
      .toContain('the proxy of its list of hosts is gone');
    await own.close();
  });
});
