/** An HTTP server that answers with exactly what it is given, in order, and keeps what it was asked. */
import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface RawReply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
  /** What comes behind the body: nothing more, with the connection open, or a broken connection. */
  readonly after?: 'silence' | 'reset';
  /** Take the request and never answer. */
  readonly hang?: boolean;
}
interface RawRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
}

export const jsonReply = (value: unknown, status = 200, headers: Record<string, string> = {}): RawReply => ({
  status,
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify(value),
});

/** Events as `[name, data]`; a name of null is left out. */
export const eventReply = (events: readonly (readonly [string | null, unknown])[]): RawReply => ({
  headers: { 'content-type': 'text/event-stream' },
  body: events
    .map(
      ([name, data]) =>
        `${name === null ? '' : `event: ${name}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`,
    )
    .join(''),
});

/** A finished list repeats its last reply. */
export async function startRawServer(replies: readonly RawReply[]) {
  const requests: RawRequest[] = [];
  const arrived = new EventEmitter();
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    requests.push({
      path: request.url ?? '',
      headers: request.headers,
      body: JSON.parse(Buffer.concat(parts).toString() || 'null'),
    });
    arrived.emit('request');
    const reply = replies[Math.min(requests.length, replies.length) - 1]!;
    if (reply.hang) return;
    response.writeHead(reply.status ?? 200, reply.headers);
    if (reply.after === undefined) response.end(reply.body);
    else response.write(reply.body, () => reply.after === 'reset' && response.socket?.resetAndDestroy());
  });
  // Longer than the client keeps one.
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    requests,
    /** Resolves once so many requests have come in total. */
    async waitForRequests(total: number) {
      while (requests.length < total) await once(arrived, 'request');
    },
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
