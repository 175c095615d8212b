// A base address with a query of its own: operations stand before the query, in every dialect.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { addressUnder } from '../../../src/model/http/httpTransport.ts';
import { createModelFactory } from '../../../src/model/modelFactory.ts';
import { ASK, autoClock, configOf, KEY } from '../harness.ts';

test.each([
  ['https://h/v1', '/messages', 'https://h/v1/messages'],
  ['https://h/v1/', '', 'https://h/v1'],
  ['https://h/v1?', '/messages', 'https://h/v1/messages'],
  ['https://h/v1?key=k', '', 'https://h/v1?key=k'],
  ['https://h/v1/?key=k/', '/messages', 'https://h/v1/messages?key=k/'],
  ['https://h?key=k', '/m:stream?alt=sse', 'https://h/m:stream?alt=sse&key=k'],
])('%s and %s', (base, path, whole) => {
  expect(addressUnder(base, path)).toBe(whole);
});

test.each(['chat', 'responses', 'messages', 'gemini'])(
  '%s asks below the path, with the key behind it',
  async (dialect) => {
    const asked: string[] = [];
    const server = createServer((request, response) => {
      asked.push(request.url!);
      response.writeHead(400).end('{"error": {"message": "no"}}');
    });
    await new Promise<void>((listening) => void server.listen(0, '127.0.0.1', listening));
    const { port } = server.address() as AddressInfo;
    const base_url = `http://127.0.0.1:${port}/gate/v1?key=env:GATE&team=a`;
    const factory = await createModelFactory(configOf({ base_url, dialect }), {
      apiKey: KEY,
      clock: autoClock().clock,
      variable: (name) => (name === 'GATE' ? 'k-1' : undefined),
    });
    await factory.create({ instanceId: 'a__a-1', epoch: 1 }).query(ASK);
    await factory.close();
    server.close();
    const { pathname, searchParams } = new URL(asked[0]!, base_url);
    expect(pathname).toMatch(/^\/gate\/v1\/(?:chat\/completions|responses|messages|models\/.+)$/);
    expect([searchParams.get('key'), searchParams.get('team')]).toEqual(['k-1', 'a']);
  },
);
