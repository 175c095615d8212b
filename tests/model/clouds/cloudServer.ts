/** A server that answers as its handler says and keeps the bytes of what it was asked, for signatures are made of bytes. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { RawReply } from '../../support/rawServer.ts';

export interface Asked {
  readonly method: string;
  /** As it came, not decoded. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes: Buffer;
}

export async function startCloudServer(answer: (asked: Asked, n: number) => RawReply) {
  const asked: Asked[] = [];
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
    );
    const one = { method: request.method!, url: request.url!, headers, bytes: Buffer.concat(parts) };
    asked.push(one);
    const reply = answer(one, asked.length);
    response.writeHead(reply.status ?? 200, reply.headers);
    response.end(reply.body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    asked,
    host: `127.0.0.1:${port}`,
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Variables for as long as a test runs; undefined takes one away. */
export function withVariables(variables: Readonly<Record<string, string | undefined>>): Disposable {
  const before = Object.keys(variables).map((name) => [name, process.env[name]] as const);
  const set = (all: readonly (readonly [string, string | undefined])[]) => {
    for (const [name, value] of all) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  };
  set(Object.entries(variables));
  return { [Symbol.dispose]: () => set(before) };
}
