// The proxy over real sockets, and what somebody inside of a container could try to get past its list.
import { once } from 'node:events';
import { createServer as createHttp, type IncomingMessage, type Server } from 'node:http';
import { type AddressInfo, connect, createServer, type Socket, type Server as TcpServer } from 'node:net';
import { connect as connectTls, createServer as createTls, type TLSSocket } from 'node:tls';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Network } from '../../../src/base/allowList.ts';
import { createEgressProxy, type EgressProxy } from '../../../src/environment/egress/egressProxy.ts';
import type { EgressConnection } from '../../../src/environment/environment.ts';

/** What the names lead to, as their owners say at the moment. */
const addresses: Record<string, string[]> = {};
const asked: string[] = [];
/** Which address was connected to; all of them are servers of this test. */
const dialled: string[] = [];
const ended: EgressConnection[] = [];
const told = async (count: number): Promise<readonly EgressConnection[]> => {
  await expect.poll(() => ended.length, { timeout: 120_000 }).toBeGreaterThanOrEqual(count);
  return ended;
};
const servers: { close(): unknown }[] = [];
const sockets = new Set<Socket>();
let web: Server;
let secure: TcpServer;
let proxy: EgressProxy;
let door: TcpServer;
let seen: { method: string; url: string; headers: IncomingMessage['headers']; body: string }[];
let respond: (request: IncomingMessage) => { status: number; headers?: Record<string, string>; body: string };

const PUBLIC = '93.184.216.34';
const portOf = (server: TcpServer | Server): number => (server.address() as AddressInfo).port;
async function listening<S extends TcpServer | Server>(server: S): Promise<S> {
  servers.push(server);
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

// A key that both ends share stands for a certificate: whoever came between them would not have it.
const PSK = Buffer.from('0123456789abcdef');
const CIPHERS = { ciphers: 'PSK-AES128-GCM-SHA256', maxVersion: 'TLSv1.2' } as const;

beforeEach(async () => {
  for (const list of [asked, dialled, ended]) list.length = 0;
  for (const name of Object.keys(addresses)) delete addresses[name];
  addresses['files.example.com'] = [PUBLIC];
  seen = [];
  respond = () => ({ status: 200, body: 'the file' });
  web = await listening(
    createHttp(async (request, response) => {
      let body = '';
      for await (const part of request) body += String(part);
      const { method = '', url = '', headers } = request;
      seen.push({ method, url, headers, body });
      const answer = respond(request);
      response.writeHead(answer.status, answer.headers).end(answer.body);
    }),
  );
  secure = await listening(
    createTls({ ...CIPHERS, pskCallback: () => PSK }, (socket) => {
      socket.on('error', () => {});
      socket.on('data', (data: Buffer) => socket.end(`secure ${socket.servername} ${data.toString()}`));
    }),
  );
});

afterEach(() => {
  proxy.close();
  for (const socket of sockets) socket.destroy();
  for (const server of servers.splice(0)) server.close();
});

async function opened(network: Network, own: readonly string[] = []): Promise<void> {
  proxy = createEgressProxy({
    own,
    onEnd: (connection) => ended.push(connection),
    async resolve(host) {
      asked.push(host);
      const found = addresses[host];
      if (!found) throw new Error(`getaddrinfo ENOTFOUND ${host}`);
      return found;
    },
    dial(address, port) {
      dialled.push(`${address}:${port}`);
      return connect({
        port: port === 443 || port === 8443 ? portOf(secure) : portOf(web),
        host: '127.0.0.1',
        allowHalfOpen: true,
      });
    },
    ofThisMachine: () => ['93.184.216.99'],
  });
  proxy.enter('agent', network);
  door = await listening(createServer({ allowHalfOpen: true }, (socket) => proxy.handle(socket)));
}

const files: Network = { allow: ['files.example.com'] };

/** All that comes back for some bytes, until the other side ends. */
async function says(text: string | Buffer): Promise<string> {
  const socket = connect(portOf(door), '127.0.0.1');
  let got = '';
  socket.on('data', (data: Buffer) => {
    got += data.toString('latin1');
  });
  socket.on('error', () => {});
  socket.write(text);
  await once(socket, 'close');
  return got;
}

async function tunnel(target: string): Promise<{ socket: Socket; head: string }> {
  const socket = connect(portOf(door), '127.0.0.1');
  socket.on('error', () => {});
  socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
  const [first] = (await once(socket, 'data')) as [Buffer];
  socket.pause();
  // What a server says at once may come with it.
  const [head = '', rest = ''] = first.toString('latin1').split(/(?<=\r\n\r\n)/);
  const refused = !head.startsWith('HTTP/1.1 200');
  if (!refused && rest !== '') socket.unshift(Buffer.from(rest, 'latin1'));
  return { socket, head: refused ? first.toString() : head };
}

/** Speaks TLS through a tunnel; what the server says, or why that failed. */
async function securely(target: string, servername: string): Promise<string> {
  const { socket, head } = await tunnel(target);
  if (!head.startsWith('HTTP/1.1 200')) return head;
  const client: TLSSocket = connectTls({
    ...CIPHERS,
    socket,
    servername,
    pskCallback: () => ({ psk: PSK, identity: 'test' }),
    checkServerIdentity: () => undefined,
  });
  const result = Promise.withResolvers<string>();
  client.on('error', (error) => result.resolve(`failed: ${error.message}`));
  client.on('data', (data: Buffer) => result.resolve(data.toString()));
  client.on('close', () => result.resolve('closed'));
  client.on('secureConnect', () => client.write('hello'));
  const text = await result.promise;
  client.destroy();
  return text;
}

const get = (url: string, host: string, more = '') =>
  `GET ${url} HTTP/1.1\r\nHost: ${host}\r\n${more}Connection: close\r\n\r\n`;

describe('a host of the list', () => {
  test('is reached by CONNECT, and nobody stands in its TLS', async () => {
    await opened(files);
    expect(await securely('files.example.com:443', 'files.example.com')).toBe(
      'secure files.example.com hello',
    );
    const [one] = await told(1);
    expect(one).toMatchObject({
      ...{ phase: 'agent', via: 'connect', host: 'files.example.com', port: 443 },
      ...{ outcome: 'allowed', reason: null },
    });
    expect(one!.bytesIn).toBeGreaterThan(100);
    expect(one!.bytesOut).toBeGreaterThan(100);
    expect(dialled).toEqual([`${PUBLIC}:443`]);
  });

  test('is reached by plain HTTP, whose headers of the connection are not passed on', async () => {
    await opened(files);
    const text = await says(
      `POST http://files.example.com/a?b=c HTTP/1.1\r\nHost: files.example.com\r\nContent-Length: 4\r\nProxy-Authorization: Basic eDp5\r\nX-Own: 1\r\nConnection: close, x-hop\r\nX-Hop: 1\r\n\r\nbody`,
    );
    expect(text).toContain('HTTP/1.1 200 OK');
    expect(text).toContain('the file');
    expect(seen).toMatchObject([{ method: 'POST', url: '/a?b=c', body: 'body', headers: { 'x-own': '1' } }]);
    expect(seen[0]!.headers).toMatchObject({ host: 'files.example.com', 'content-length': '4' });
    expect(Object.keys(seen[0]!.headers)).not.toContain('proxy-authorization');
    expect(Object.keys(seen[0]!.headers)).not.toContain('x-hop');
    expect(await told(1)).toMatchObject([{ via: 'http', port: 80, outcome: 'allowed' }]);
  });

  test('gets a body that comes in chunks, and one that is none', async () => {
    await opened(files);
    const start =
      'POST http://files.example.com/ HTTP/1.1\r\nHost: files.example.com\r\nConnection: close\r\n';
    await says(`${start}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`);
    await says(`${start}\r\n`);
    expect(seen.map(({ body }) => body)).toEqual(['abc', '']);
  });

  test('sends and gets much, whole', async () => {
    await opened(files);
    const much = 'x'.repeat(8_000_000);
    respond = () => ({ status: 200, body: much });
    const text = await says(
      `PUT http://files.example.com/ HTTP/1.1\r\nHost: files.example.com\r\nContent-Length: ${much.length}\r\nConnection: close\r\n\r\n${much}`,
    );
    expect(text.slice(text.indexOf('\r\n\r\n') + 4).replaceAll(/[^x]/g, '').length).toBe(much.length);
    expect(seen[0]!.body.length).toBe(much.length);
    const [one] = await told(1);
    expect(one!.bytesIn).toBeGreaterThan(much.length);
    expect(one!.bytesOut).toBeGreaterThan(much.length);
  });

  test('that does not answer, or is not known, has failed and was not refused', async () => {
    await opened({ allow: ['gone.example.com'] });
    expect(await says(get('http://gone.example.com/', 'gone.example.com'))).toContain('502 Bad Gateway');
    expect((await tunnel('gone.example.com:443')).head).toContain('502 Bad Gateway');
    expect(await told(2)).toMatchObject([{ outcome: 'failed' }, { outcome: 'failed' }]);
  });

  test('a port that was named carries other protocols too, also where the server speaks first', async () => {
    const speaks = await listening(
      createServer((socket) => {
        socket.write('220 ready\r\n');
        socket.on('data', (data: Buffer) => socket.end(`you said ${data.toString()}`));
      }),
    );
    await opened('none', ['mail.example.com:2525']);
    addresses['mail.example.com'] = [PUBLIC];
    web = speaks as unknown as Server;
    const { socket } = await tunnel('mail.example.com:2525');
    let got = '';
    socket.on('data', (data: Buffer) => {
      got += data.toString();
    });
    socket.resume();
    await expect.poll(() => got).toBe('220 ready\r\n');
    socket.write('EHLO');
    await once(socket, 'end');
    expect(got).toBe('220 ready\r\nyou said EHLO');
  });
});

describe('attacks', () => {
  /** Nothing was connected to, and the refusal is in the record. */
  const refusedAll = async (count = 1): Promise<string[]> => {
    const all = await told(count);
    expect(all.map(({ outcome }) => outcome)).toEqual(Array<string>(count).fill('refused'));
    expect(dialled).toEqual([]);
    return all.map(({ reason }) => reason!);
  };

  test('another host, another port, and no name of them is asked for', async () => {
    await opened(files);
    expect((await tunnel('evil.com:443')).head).toContain('403 Forbidden');
    expect(await says(get('http://evil.com/', 'evil.com'))).toContain('evil.com is not on the list of hosts');
    expect((await tunnel('files.example.com:22')).head).toContain('port 22 of files.example.com');
    expect((await tunnel('secret-as-a-name.evil.com:443')).head).toContain('403');
    await refusedAll(4);
    expect(asked).toEqual([]);
  });

  test.each([
    '93.184.216.34:443',
    '127.0.0.1:443',
    '[::1]:443',
    '[::ffff:93.184.216.34]:443',
    '2130706433:443',
  ])('the address %s in the place of a name', async (target) => {
    await opened(files);
    expect((await tunnel(target)).head).toContain('403 Forbidden');
    await refusedAll();
  });

  test.each([
    ...['127.0.0.1', '169.254.169.254', '10.0.0.7', '192.168.1.1', '172.17.0.1', '100.64.0.1', '0.0.0.0'],
    ...['::1', 'fe80::1', 'fd00::1', '::ffff:169.254.169.254', '64:ff9b::a9fe:a9fe', '93.184.216.99'],
  ])('a name of the list that leads to %s', async (address) => {
    await opened(files);
    addresses['files.example.com'] = [address];
    expect((await tunnel('files.example.com:443')).head).toContain('403 Forbidden');
    expect(await says(get('http://files.example.com/', 'files.example.com'))).toContain(
      'which is not public',
    );
    await refusedAll(2);
  });

  test('a name that leads elsewhere the second time is connected to where it was judged, and of several addresses to the public ones', async () => {
    await opened(files);
    addresses['files.example.com'] = ['127.0.0.1', PUBLIC, '10.0.0.1'];
    expect(await securely('files.example.com:443', 'files.example.com')).toContain('secure');
    expect(asked).toEqual(['files.example.com']);
    expect(dialled).toEqual([`${PUBLIC}:443`]);
  });

  test('an address that is not public, and is on the list of the task; the list of the person opens it', async () => {
    await opened({ allow: ['127.0.0.1', '10.0.0.0/8', 'localhost'] });
    addresses.localhost = ['127.0.0.1'];
    for (const target of ['127.0.0.1:443', '10.1.2.3:443', 'localhost:443'])
      expect((await tunnel(target)).head).toContain('403 Forbidden');
    await refusedAll(3);
    proxy.close();
    await opened('none', ['127.0.0.1:80']);
    expect(await says(get('http://127.0.0.1/', '127.0.0.1'))).toContain('the file');
    expect((await tunnel('127.0.0.1:443')).head).toContain('403 Forbidden');
    expect(dialled).toEqual(['127.0.0.1:80']);
  });

  test('a redirect to another host is an answer like any other: whoever follows it asks again, and is refused', async () => {
    await opened(files);
    respond = () => ({ status: 302, headers: { location: 'http://169.254.169.254/' }, body: '' });
    const text = await says(get('http://files.example.com/', 'files.example.com'));
    expect(text).toContain('302 Found');
    expect(text).toContain('location: http://169.254.169.254/');
    expect(await says(get('http://169.254.169.254/', '169.254.169.254'))).toContain('403 Forbidden');
    expect(dialled).toEqual([`${PUBLIC}:80`]);
    expect(await told(2)).toMatchObject([{ outcome: 'allowed' }, { outcome: 'refused' }]);
  });

  test('TLS that asks for another name than the CONNECT', async () => {
    await opened(files);
    const said = await securely('files.example.com:443', 'evil.com');
    expect(said).toMatch(/^failed: .*unrecognized name/i);
    const [one] = await told(1);
    expect(one).toMatchObject({ outcome: 'refused', bytesOut: 0 });
    expect(one!.reason).toContain('asks for another name (SNI): evil.com');
  });

  test('TLS that asks for no name, for a hidden one, or is none', async () => {
    await opened(files);
    const hello = (extensions: string) => {
      const body = `0303${'07'.repeat(32)}00000213010100${size(extensions)}${extensions}`;
      const message = `01${size(body, 6)}${body}`;
      return Buffer.from(`160301${size(message)}${message}`, 'hex');
    };
    const size = (hex: string, digits = 4) => (hex.length / 2).toString(16).padStart(digits, '0');
    const name = Buffer.from('files.example.com').toString('hex');
    const sni = `0000${size(`${'0'.repeat(10)}${name}`)}${size(`${'0'.repeat(6)}${name}`)}00${size(name)}${name}`;
    for (const [bytes, reason] of [
      [hello(''), 'does not say which name'],
      [hello(`${sni}fe0d00020000`), 'may hide another name (encrypted_client_hello)'],
      [Buffer.from('GET / HTTP/1.1\r\nHost: evil.com\r\n\r\n'), 'is no TLS'],
      [Buffer.from('SSH-2.0-OpenSSH_9.6\r\n'), 'is no TLS'],
      [Buffer.from('160301ffff', 'hex'), 'begins like TLS, and is none'],
      [hello(sni).subarray(0, 30), 'was cut'],
    ] as const) {
      ended.length = 0;
      const { socket } = await tunnel('files.example.com:443');
      socket.end(bytes);
      socket.resume();
      const [one] = await told(1);
      expect(one).toMatchObject({ outcome: 'refused', bytesOut: 0 });
      expect(one!.reason).toContain(reason);
      socket.destroy();
    }
  });

  test('each request of a kept connection is judged by itself', async () => {
    await opened(files);
    const text = await says(
      `GET http://files.example.com/1 HTTP/1.1\r\nHost: files.example.com\r\n\r\nGET http://evil.com/ HTTP/1.1\r\nHost: evil.com\r\n\r\n`,
    );
    expect(text).toContain('the file');
    expect(text).toContain('evil.com is not on the list of hosts');
    expect(seen.map(({ url }) => url)).toEqual(['/1']);
    expect((await told(2)).map(({ host, outcome }) => `${host} ${outcome}`).sort()).toEqual([
      'evil.com refused',
      'files.example.com allowed',
    ]);
  });

  test.each([
    ['another Host header', get('http://files.example.com/', 'evil.com'), 'names another host'],
    [
      'another port in the Host header',
      get('http://files.example.com/', 'files.example.com:8080'),
      'names another',
    ],
    [
      'two Host headers',
      get('http://files.example.com/', 'files.example.com', 'Host: evil.com\r\n'),
      'several Host headers',
    ],
    ['no host in the address', get('/path', 'files.example.com'), 'the whole address'],
    ['the address of TLS', get('https://files.example.com/', 'files.example.com'), 'the whole address'],
    ['a name before the host', get('http://files.example.com@evil.com/', 'evil.com'), 'the whole address'],
    ['a broken host', get('http://files.example.com%00.evil.com/', 'files.example.com'), 'the whole address'],
  ])('%s', async (_, request, reason) => {
    await opened(files);
    const text = await says(request);
    expect(text).toContain('400 Bad Request');
    expect(text).toContain(reason);
    await refusedAll();
    expect(seen).toEqual([]);
  });

  test.each([
    [
      'a length beside chunks',
      'Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET http://files.example.com/smuggled HTTP/1.1\r\nHost: files.example.com\r\n\r\n',
    ],
    ['two lengths', 'Content-Length: 4\r\nContent-Length: 40\r\n\r\nbody'],
    ['another coding', 'Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n'],
    ['a coding before the chunks', 'Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n'],
    ['a space before the colon', 'Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n'],
    ['a line that goes on', 'X: a\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
  ])('%s, by which two readers would see two ends of one request', async (_, rest) => {
    await opened(files);
    const text = await says(
      `POST http://files.example.com/ HTTP/1.1\r\nHost: files.example.com\r\nConnection: close\r\n${rest}`,
    );
    expect(text).toContain('400 Bad Request');
    expect(seen).toEqual([]);
    // What follows is none of its own either.
    await told(1);
    await refusedAll(ended.length);
  });

  test('an offer to change the protocol is not passed on', async () => {
    await opened(files);
    const text = await says(
      `GET http://files.example.com/ HTTP/1.1\r\nHost: files.example.com\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n`,
    );
    expect(text).toContain('200 OK');
    expect(seen[0]!.headers).not.toHaveProperty('upgrade');
  });

  test('a CONNECT that names no host and port', async () => {
    await opened(files);
    for (const target of ['files.example.com', 'x@files.example.com:443', 'files.example.com:99999'])
      expect((await tunnel(target)).head).toContain('400 Bad Request');
    expect(await refusedAll(3)).toEqual(Array(3).fill(expect.stringContaining('is no host and port')));
  });

  test('what is no HTTP at all', async () => {
    await opened(files);
    expect(await says('\u0016\u0003\u0001 hello\r\n\r\n')).toContain('400 Bad Request');
    await refusedAll();
  });
});

describe('phases', () => {
  test('each has its own list, and what is open and not on the next one is closed', async () => {
    await opened(files);
    const { socket } = await tunnel('files.example.com:443');
    proxy.enter('verifier', { allow: ['tests.example.com'] });
    await once(socket.resume(), 'close');
    expect(await told(1)).toMatchObject([
      { phase: 'agent', outcome: 'allowed', reason: 'closed as the phase "verifier" began' },
    ]);
    expect((await tunnel('files.example.com:443')).head).toContain('403 Forbidden');
    addresses['tests.example.com'] = [PUBLIC];
    expect((await tunnel('tests.example.com:443')).head).toContain('200');
    expect(await told(2)).toMatchObject([{ phase: 'agent' }, { phase: 'verifier', outcome: 'refused' }]);
  });

  test('hosts that the person names are for the agent, and not for the tests', async () => {
    await opened('none', ['files.example.com']);
    expect((await tunnel('files.example.com:443')).head).toContain('200');
    proxy.enter('verifier', 'none');
    expect((await tunnel('files.example.com:443')).head).toContain('403');
  });

  test('what is open at the end is told, and nothing is taken afterwards', async () => {
    await opened(files);
    const { socket } = await tunnel('files.example.com:443');
    proxy.close();
    await once(socket.resume(), 'close');
    expect(ended).toMatchObject([{ outcome: 'allowed', reason: 'open at the end' }]);
    expect(await says(get('http://files.example.com/', 'files.example.com'))).toBe('');
    expect(ended).toHaveLength(1);
  });

  /** A proxy whose names are answered when the test says so, and a connection that waits for one. */
  async function waiting() {
    const resolving = Promise.withResolvers<readonly string[]>();
    const begun = Promise.withResolvers<void>();
    await opened(files);
    proxy.close();
    proxy = createEgressProxy({
      own: [],
      onEnd: (connection) => ended.push(connection),
      resolve() {
        begun.resolve();
        return resolving.promise;
      },
      dial: (address) => {
        dialled.push(address);
        return connect(portOf(web), '127.0.0.1');
      },
    });
    proxy.enter('agent', files);
    return { resolve: resolving.resolve, begun: begun.promise };
  }

  test.each([
    'CONNECT files.example.com:443 HTTP/1.1\r\nHost: files.example.com:443\r\n\r\n',
    get('http://files.example.com/', 'files.example.com'),
  ])(
    'a host that is slow to resolve while the phase changes is judged by the new list: %j',
    async (request) => {
      const { resolve, begun } = await waiting();
      const said = says(request);
      await begun;
      proxy.enter('verifier', 'none');
      resolve([PUBLIC]);
      await said;
      expect(ended).toHaveLength(1);
      expect(dialled).toEqual([]);
    },
  );

  test('a program that goes away before it was connected has reached nothing', async () => {
    const { resolve, begun } = await waiting();
    const socket = connect(portOf(door), '127.0.0.1');
    socket.on('error', () => {});
    socket.write(get('http://files.example.com/', 'files.example.com'));
    await begun;
    socket.destroy();
    expect(await told(1)).toMatchObject([
      { outcome: 'failed', reason: 'the program went away before it was done', bytesIn: 0 },
    ]);
    resolve([PUBLIC]);
  });
});
