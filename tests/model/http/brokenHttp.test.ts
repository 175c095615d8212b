// Answers that are no HTTP: what a person reads of them.
import { type AddressInfo, createServer } from 'node:net';
import { expect, test } from 'vitest';
import { createModelFactory } from '../../../src/model/modelFactory.ts';
import { ASK, autoClock, configOf, KEY } from '../harness.ts';

/** Everybody who sends a request gets this, and then the end of the connection. */
async function answered(bytes: string) {
  let requests = 0;
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (data) => {
      if (!data.includes('POST ')) return;
      requests += 1;
      socket.end(bytes);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const factory = await createModelFactory(
    configOf({
      base_url: `http://127.0.0.1:${port}/v1`,
      prices: 'free',
      stream: false,
      retry: { max_retries: 1 },
    }),
    { apiKey: KEY, clock: autoClock().clock },
  );
  try {
    return { response: await factory.create({ instanceId: 'i', epoch: 1 }).query(ASK), requests };
  } finally {
    await factory.close();
    server.close();
  }
}

test.each([
  ['another protocol', 'SSH-2.0-OpenSSH_9.6\r\n', 'Expected HTTP/'],
  ['a page without a head', '<html>bad gateway</html>\r\n\r\n', 'Expected HTTP/'],
  ['a field that is none', 'HTTP/1.1 200 OK\r\nno field at all\r\n\r\n{}', 'Invalid header token'],
  ['a length that is none', 'HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n{}', 'Content-Length'],
  ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}', 'CONTENT_LENGTH'],
  ['another protocol that nobody asked for', 'HTTP/1.1 101 Switching Protocols\r\n\r\n', 'ERR_ASSERTION'],
  ['a head that never ends', `HTTP/1.1 200 OK\r\n${`x: ${'y'.repeat(8000)}\r\n`.repeat(8)}\r\n`, 'OVERFLOW'],
])('%s is no want of a connection: it says what came, and is tried again', async (_what, bytes, code) => {
  const { response, requests } = await answered(bytes);
  expect(response).toMatchObject({ success: false, error: 'NETWORK_ERROR' });
  expect(response.message).toContain('answered with what is no HTTP');
  expect(response.message).toContain(code);
  expect(response.success || response.metadata?.unreachable).toBeUndefined();
  expect(requests).toBe(2);
});
