// A daemon that a test plays drops the supervisor's exec at each point of its life: nobody may wait for it for ever.
import { mkdtempSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import Docker from 'dockerode';
import { afterEach, expect, test } from 'vitest';
import { processStarter } from '../../../src/environment/docker/startProcess.ts';
import { createSupervisorTransport } from '../../../src/environment/exec/supervisor.ts';
import type { TransportCommand } from '../../../src/environment/exec/transport.ts';

/** Where an answer comes, or the end of the connection: a busy machine may take its time. */
const PATIENT_MS = 60_000;
/** Where no answer ever comes. */
const SOON_MS = 500;
const COMMAND: TransportCommand = { command: 'x', cwd: '/', env: {}, maxOutputBytes: 10_000 };
const SWITCHED =
  'HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n';
const READY = '\x1eready 1,7 /tmp/x\x1e';

const frame = (type: 1 | 2, text: string): Buffer => {
  const header = Buffer.alloc(8);
  header[0] = type;
  header.writeUInt32BE(Buffer.byteLength(text), 4);
  return Buffer.concat([header, Buffer.from(text)]);
};

interface Played {
  /** Answers the request for an exec; default: there is one. */
  readonly created?: (outgoing: ServerResponse) => void;
  /** Has the connection of its start. */
  readonly started: (stream: Duplex) => void;
  /** How long the engine, and then the supervisor, is waited for. */
  readonly answerMs?: number;
  readonly readyMs?: number;
}

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

async function playedContainer({ created, started }: Played): Promise<Docker.Container> {
  const socketPath = join(mkdtempSync(join(tmpdir(), 'swebatch-dropped-')), 'docker.sock');
  const open = new Set<Duplex>();
  const server = createServer((incoming: IncomingMessage, outgoing) => {
    incoming.resume();
    if (created) return created(outgoing);
    outgoing.writeHead(201, { 'content-type': 'application/json' });
    outgoing.end('{"Id":"e1"}');
  });
  server.on('upgrade', (_incoming, stream) => {
    open.add(stream);
    stream.on('error', () => undefined);
    started(stream);
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  stops.push(() => {
    for (const stream of open) stream.destroy();
    server.closeAllConnections();
    server.close();
  });
  return new Docker({ socketPath }).getContainer('c1');
}

const openTransport = async (played: Played) =>
  createSupervisorTransport(
    processStarter(await playedContainer(played), played.answerMs ?? PATIENT_MS),
    ['bash', '-c'],
    played.readyMs ?? PATIENT_MS,
  );

const nothing = () => undefined;

test.each<[string, Played, RegExp]>([
  ['before it exists', { created: nothing, started: nothing, answerMs: SOON_MS }, /gave no answer/],
  ['before it is started', { started: nothing, answerMs: SOON_MS }, /gave no answer/],
  ['instead of starting it', { started: (stream) => stream.destroy() }, /socket hang up/],
  [
    'as soon as it is started',
    { started: (stream) => stream.end(SWITCHED) },
    /the supervisor did not start: no answer/,
  ],
  [
    'with a reset as soon as it is started',
    { started: (stream) => stream.write(SWITCHED, () => stream.destroy()) },
    /the supervisor did not start: no answer/,
  ],
  [
    'by saying nothing',
    { started: (stream) => stream.write(SWITCHED), readyMs: SOON_MS },
    /the supervisor did not start: no answer/,
  ],
  [
    'in the middle of its first frame',
    { started: (stream) => stream.end(SWITCHED + frame(2, '\x1eready 1,').toString('latin1'), 'latin1') },
    /the supervisor did not start/,
  ],
])('dropped %s: the start fails with the reason', async (_when, played, reason) => {
  await expect(openTransport(played)).rejects.toThrow(reason);
});

/** Ready at once; what follows the first request is the test's. */
const afterRequest = (follow: (stream: Duplex, nonces: readonly string[]) => void): Played => {
  let first = true;
  return {
    started(stream) {
      stream.write(Buffer.concat([Buffer.from(SWITCHED), frame(2, READY)]));
      if (!first) return;
      first = false;
      let text = '';
      const look = (chunk: Buffer) => {
        text += chunk.toString('latin1');
        // The scripts come first.
        const request = /(?:R\d{9}\w+ (\w+),(\w+) |A0{7}24\w{24}$)/.exec(text);
        if (!request) return;
        stream.off('data', look);
        follow(stream, request.slice(1));
      };
      stream.on('data', look);
    },
  };
};

test.each<[string, (stream: Duplex, nonces: readonly string[]) => void]>([
  ['before anything of the command came', (stream) => stream.end()],
  ['with a reset', (stream) => stream.destroy()],
  ['in the middle of its output', (stream, [begin]) => stream.end(frame(1, `\x1e${begin}\x1esome`))],
  ['in the middle of a frame of the engine', (stream) => stream.end(frame(1, 'a long text').subarray(0, 11))],
  [
    'between the end of the output and the status',
    (stream, [begin, end]) => stream.end(frame(1, `\x1e${begin}\x1esome\x1e${end}\x1e`)),
  ],
  [
    'between the status and the end of the output',
    (stream, [begin, end]) =>
      stream.end(Buffer.concat([frame(1, `\x1e${begin}\x1esome`), frame(2, `\x1e${end} 0 0 0 0\x1e`)])),
  ],
])('dropped %s: the command is lost, and the next one has a new exec', async (_when, follow) => {
  const transport = await openTransport(afterRequest(follow));
  const running = await transport.run(COMMAND);
  expect(await running.ended).toEqual({ kind: 'lost' });
  // Its killing is asked of nobody, and the next one runs on an exec of its own.
  void running.kill();
  const next = await transport.run(COMMAND);
  transport.close();
  expect(await next.ended).toEqual({ kind: 'lost' });
});

test('dropped while what is left is killed: the answer is no', async () => {
  const transport = await openTransport(afterRequest((stream) => stream.end()));
  expect(await transport.killAll()).toBe(false);
  transport.close();
});

test('an exec whose end had been read before anybody listened is told as gone', async () => {
  const container = await playedContainer({ started: (stream) => stream.end(SWITCHED) });
  const process = await processStarter(container, PATIENT_MS)(['x'], { stdin: true });
  process.destroy();
  await new Promise((done) => setTimeout(done, 20));
  await new Promise<void>((gone) =>
    process.listen({ stdout: () => undefined, stderr: () => undefined, gone }),
  );
});
