// An engine over TCP that only answers what it is asked about itself, from a recorded answer, and notes what it was asked.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What Docker 20.10 of Debian answered, shortened. */
export const DOCKER_INFO = {
  ServerVersion: '20.10.24+dfsg1',
  Driver: 'overlay2',
  CgroupVersion: '1',
  OSType: 'linux',
  Architecture: 'x86_64',
  NCPU: 2,
  MemTotal: 8_000_000_000,
  MemoryLimit: true,
  PidsLimit: true,
};

export interface ToldEngine {
  readonly address: string;
  readonly asked: readonly string[];
  close(): void;
}

export async function toldEngine(info: () => object): Promise<ToldEngine> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    if (request.url?.endsWith('/_ping')) return void response.end('OK');
    if (!request.url?.endsWith('/info')) return void response.writeHead(404).end('{"message":"not told"}');
    response.setHeader('content-type', 'application/json').end(JSON.stringify(info()));
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    address: `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
