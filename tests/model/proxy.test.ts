/** A provider behind a proxy: requests go through its tunnel, and what the proxy's URL holds stays out of every text. */
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect, test } from 'vitest';
import { proxyFrom } from '../../src/model/http/proxySettings.ts';
import { createModelFactory } from '../../src/model/modelFactory.ts';
import { startFakeModelServer } from '../support/fakeModelServer.ts';
import { ASK, autoClock, configOf, KEY, recorder } from './harness.ts';

const TRIAL = { instanceId: 'a', epoch: 1 };

async function modelServer() {
  const server = await startFakeModelServer({ replies: ['hello'] });
  return { url: server.url, [Symbol.asyncDispose]: () => server.close() };
}

/** A proxy that tunnels whatever host is asked for to one port of this machine; without the password it refuses. */
async function startProxy(port: number) {
  const asked: string[] = [];
  const proxy = createServer().on('connect', (request, socket) => {
    socket.on('error', () => {});
    if (request.headers['proxy-authorization'] !== `Basic ${btoa('me:hunter2secret')}`) {
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
      return;
    }
    asked.push(request.url ?? '');
    const onward = connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      onward.pipe(socket).pipe(onward);
    });
    onward.on('error', () => socket.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  return {
    asked,
    host: `127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      proxy.closeAllConnections();
      await new Promise((resolve) => proxy.close(resolve));
    },
  };
}

test('a request goes through the proxy that HTTP_PROXY names, with its password', async () => {
  await using server = await modelServer();
  await using proxy = await startProxy(Number(new URL(server.url).port));
  const factory = await createModelFactory(configOf({ base_url: 'http://model.invalid/v1' }), {
    apiKey: KEY,
    clock: autoClock().clock,
    proxy: { http: `http://me:hunter2secret@${proxy.host}`, https: '', except: '' },
  });
  const reply = await factory.create(TRIAL).query(ASK);
  await factory.close?.();
  expect(reply.success).toBe(true);
  expect(proxy.asked).toEqual(['model.invalid:80']);
});

test('a server on this machine, and a host of NO_PROXY, are asked directly', async () => {
  await using server = await modelServer();
  const factory = await createModelFactory(configOf({ base_url: server.url }), {
    apiKey: KEY,
    clock: autoClock().clock,
    proxy: { http: 'http://127.0.0.1:1', https: '', except: '' },
  });
  const reply = await factory.create(TRIAL).query(ASK);
  await factory.close?.();
  expect(reply.success).toBe(true);
});

test('a proxy that refuses is named as a connection fault, and its password is in no text', async () => {
  await using server = await modelServer();
  await using proxy = await startProxy(Number(new URL(server.url).port));
  const factory = await createModelFactory(
    configOf({ base_url: 'http://model.invalid/v1', retry: { max_retries: 0 } }),
    {
      apiKey: KEY,
      clock: autoClock().clock,
      proxy: { http: `http://me:wrongsecret9@${proxy.host}`, https: '', except: '' },
    },
  );
  const { listener, calls } = recorder();
  const reply = await factory.create(TRIAL).query(ASK, { listener });
  await factory.close?.();
  expect(reply.success).toBe(false);
  expect(JSON.stringify([reply, calls])).toContain('407');
  expect(JSON.stringify([reply, calls])).not.toContain('wrongsecret9');
});

test('the usual variables are read, small letters first; without one there is no proxy', () => {
  const from = (variables: Record<string, string>) => proxyFrom((name) => variables[name]);
  expect(from({ NO_PROXY: 'a' })).toBeUndefined();
  expect(from({ HTTPS_PROXY: 'http://b', https_proxy: 'http://c', NO_PROXY: 'd,e' })).toEqual({
    http: '',
    https: 'http://c',
    except: 'd,e',
  });
});
