// Answers that are no HTTP, or more of it than was asked for: what a person reads of them, and which are read all the same.
import { type AddressInfo, createServer } from 'node:net';
import { expect, test } from 'vitest';
import { pastContinue } from '../../../src/model/http/httpTransport.ts';
import { createModelFactory } from '../../../src/model/modelFactory.ts';
import { ASK, autoClock, configOf, KEY } from '../harness.ts';

const BODY = JSON.stringify({
  ...{ id: 'x', object: 'chat.completion', created: 1, model: 'm' },
  choices: [
    { index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'HTTP/1.1 100 Continue' } },
  ],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
});
const WHOLE = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${BODY.length}\r\n\r\n${BODY}`;

/** Writes these pieces, each when the one before has left, to everybody who sends a request. */
async function answered(...pieces: readonly string[]) {
  let requests = 0;
  const server = createServer((socket) => {
    socket.setNoDelay(true);
    socket.on('error', () => undefined);
    socket.on('data', (data) => {
      if (!data.includes('POST ')) return;
      requests += 1;
      const next = (i: number): void => {
        if (i < pieces.length) socket.write(pieces[i]!, () => setImmediate(next, i + 1));
        else if (!pieces.at(-1)!.endsWith(BODY)) socket.end();
      };
      next(0);
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

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';

test.each([
  ['in one piece with the answer', [CONTINUE + WHOLE]],
  ['alone', [CONTINUE, WHOLE]],
  ['with fields, and twice', ['HTTP/1.1 100 \r\nserver: x\r\n\r\n', CONTINUE, WHOLE]],
  ['cut anywhere', [...CONTINUE, WHOLE]],
])('a "100 Continue" that nobody asked for is read past: %s', async (_what, pieces) => {
  const { response, requests } = await answered(...pieces);
  expect(response).toMatchObject({ success: true, result: { content: 'HTTP/1.1 100 Continue' } });
  expect(requests).toBe(1);
});

test.each([
  ['another protocol', ['SSH-2.0-OpenSSH_9.6\r\n'], 'Expected HTTP/'],
  ['a page without a head', ['<html>bad gateway</html>\r\n\r\n'], 'Expected HTTP/'],
  ['a field that is none', ['HTTP/1.1 200 OK\r\nno field at all\r\n\r\n{}'], 'Invalid header token'],
  ['a length that is none', ['HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n{}'], 'Content-Length'],
  ['two lengths', ['HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}'], 'CONTENT_LENGTH'],
  ['another protocol that nobody asked for', ['HTTP/1.1 101 Switching Protocols\r\n\r\n'], 'ERR_ASSERTION'],
  [
    'a head that never ends',
    [`HTTP/1.1 200 OK\r\n${`x: ${'y'.repeat(8000)}\r\n`.repeat(8)}\r\n`],
    'OVERFLOW',
  ],
])('%s is no want of a connection: it says what came, and is tried again', async (_what, pieces, code) => {
  const { response, requests } = await answered(...pieces);
  expect(response).toMatchObject({ success: false, error: 'NETWORK_ERROR' });
  expect(response.message).toContain('answered with what is no HTTP');
  expect(response.message).toContain(code);
  expect(response.success || response.metadata?.unreachable).toBeUndefined();
  expect(requests).toBe(2);
});

test('what only looks like one is passed on, and so is all that follows the head of an answer', () => {
  const texts = ['HTTP/1.1 1000 x\r\n\r\n', CONTINUE, 'H'];
  const parts = texts.map((text) => Buffer.from(text));
  const read = pastContinue(
    () => parts.shift() ?? null,
    () => 10,
  );
  expect(texts.map(() => String(read()))).toEqual(texts);
});
