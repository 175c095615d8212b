// The host's side of the supervisor against a stream that a test feeds: what nobody waits for must not keep the event loop busy.
import { Duplex } from 'node:stream';
import type Docker from 'dockerode';
import { expect, test } from 'vitest';
import { processStarter } from '../../../src/environment/docker/startProcess.ts';
import { createSupervisorTransport } from '../../../src/environment/exec/supervisor.ts';

const frame = (type: 1 | 2, data: Buffer | string) => {
  const body = Buffer.from(data);
  const header = Buffer.alloc(8);
  header[0] = type;
  header.writeUInt32BE(body.length, 4);
  return Buffer.concat([header, body]);
};

test('output of a background process after the end of its command is read slowly', async () => {
  const stream = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
  const container = { exec: async () => ({ start: async () => stream }) } as unknown as Docker.Container;
  stream.push(frame(2, '\x1eready 1,7 /tmp/x\x1e'));
  const transport = await createSupervisorTransport(processStarter(container), ['bash', '-c'], 5000);
  let paused = 0;
  const pause = stream.pause.bind(stream);
  stream.pause = () => {
    paused += 1;
    return pause();
  };
  const before = stream.readableLength;
  for (let i = 0; i < 64; i += 1) stream.push(frame(1, Buffer.alloc(64 * 1024, 'y')));
  await new Promise((done) => setImmediate(done));
  // 4 MB came and most of it waits.
  expect(before).toBe(0);
  expect(paused).toBeGreaterThan(0);
  expect(stream.readableLength).toBeGreaterThan(3 * 1024 * 1024);
  transport.close();
});
