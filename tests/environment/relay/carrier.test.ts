// The core of the relay without any container: frames cut anywhere, flow control in both directions, and a relay that breaks the rules.
import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { describe, expect, test } from 'vitest';
import {
  createCarrier,
  createRelayReader,
  creditFrame,
  DOWN_WINDOW,
  FRAME,
  type Frame,
  frameOf,
  MAX_PAYLOAD,
  UP_WINDOW,
  untakenBytes,
} from '../../../src/environment/relay/carrier.ts';

const SAMPLE = [
  frameOf(0, FRAME.ready),
  frameOf(1, FRAME.open),
  frameOf(1, FRAME.data, Buffer.from('hello')),
  frameOf(70_000, FRAME.data, Buffer.alloc(300, 7)),
  creditFrame(1, 5),
  frameOf(1, FRAME.end),
  frameOf(70_000, FRAME.reset),
];

function read(bytes: Buffer, cuts: readonly number[]): string[] {
  const seen: string[] = [];
  const feed = createRelayReader(({ id, type, payload }: Frame) =>
    seen.push(`${id}:${type}:${payload.toString('hex')}`),
  );
  let from = 0;
  for (const cut of [...cuts, bytes.length]) {
    feed(bytes.subarray(from, cut));
    from = cut;
  }
  return seen;
}

describe('frames', () => {
  const bytes = Buffer.concat(SAMPLE);
  const whole = read(bytes, []);

  test('every cut in two gives the same frames', () => {
    expect(whole).toHaveLength(SAMPLE.length);
    for (let cut = 0; cut <= bytes.length; cut += 1) expect(read(bytes, [cut])).toEqual(whole);
  });

  test('single bytes give the same frames', () => {
    expect(
      read(
        bytes,
        Array.from({ length: bytes.length - 1 }, (_, n) => n + 1),
      ),
    ).toEqual(whole);
  });

  test('bytes that are no frames are refused at once', () => {
    expect(() => read(Buffer.from('HTTP/1.1 200 OK\r\n\r\n'), [])).toThrow('no frame');
    const huge = frameOf(1, FRAME.data);
    huge.writeUInt32BE(MAX_PAYLOAD + 1, 5);
    expect(() => read(huge, [])).toThrow('no frame');
  });
});

function carrier() {
  const sent: Frame[] = [];
  const toUs = createRelayReader((frame) => sent.push({ ...frame, payload: Buffer.from(frame.payload) }));
  const connections: Duplex[] = [];
  const made = createCarrier({
    write: toUs,
    onReady: () => undefined,
    onConnection: (connection) => connections.push(connection),
  });
  const of = (type: number) => sent.filter((frame) => frame.type === type);
  const bytesOf = (type: number) => of(type).reduce((sum, { payload }) => sum + payload.length, 0);
  const credited = () => of(FRAME.credit).reduce((sum, { payload }) => sum + payload.readUInt32BE(), 0);
  made.feed(frameOf(1, FRAME.open));
  return { made, sent, first: connections[0]!, of, bytesOf, credited };
}

describe('a carried connection', () => {
  test('no more than a window is sent before the program has taken it', async () => {
    const { made, first, bytesOf } = carrier();
    const written = new Promise<void>((resolve) =>
      first.write(Buffer.alloc(DOWN_WINDOW * 2), () => resolve()),
    );
    expect(bytesOf(FRAME.data)).toBe(DOWN_WINDOW);
    made.feed(creditFrame(1, 1000));
    expect(bytesOf(FRAME.data)).toBe(DOWN_WINDOW + 1000);
    made.feed(creditFrame(1, DOWN_WINDOW));
    await written;
    expect(bytesOf(FRAME.data)).toBe(DOWN_WINDOW * 2);
  });

  test('credit is given only for what was read here', async () => {
    const { made, first, credited } = carrier();
    for (let sent = 0; sent < UP_WINDOW; sent += MAX_PAYLOAD)
      made.feed(frameOf(1, FRAME.data, Buffer.alloc(MAX_PAYLOAD)));
    expect(credited()).toBeLessThan(UP_WINDOW / 2);
    let taken = 0;
    first.on('data', (chunk: Buffer) => {
      taken += chunk.length;
    });
    await expect.poll(() => taken).toBe(UP_WINDOW);
    await expect.poll(credited).toBe(UP_WINDOW);
  });

  test('a relay that sends more than it may is not trusted', () => {
    const { made } = carrier();
    const flood = () => {
      for (let sent = 0; sent <= UP_WINDOW * 2; sent += MAX_PAYLOAD)
        made.feed(frameOf(1, FRAME.data, Buffer.alloc(MAX_PAYLOAD)));
    };
    expect(flood).toThrow('more than it may');
    expect(() => carrier().made.feed(creditFrame(1, 1))).toThrow('more credit');
    expect(() => carrier().made.feed(frameOf(1, FRAME.open))).toThrow('twice');
  });

  test('each direction ends on its own, and then the connection is forgotten', async () => {
    const { made, first, of } = carrier();
    first.resume();
    made.feed(frameOf(1, FRAME.end));
    await once(first, 'end');
    first.write('the answer');
    expect(of(FRAME.data)).toHaveLength(1);
    first.end();
    await once(first, 'close');
    expect(of(FRAME.end)).toHaveLength(1);
    expect(of(FRAME.reset)).toHaveLength(0);
    expect(made.connections()).toBe(0);
  });

  test('a program that ends its own side still reads, and what it has not taken when it breaks off is known', async () => {
    const { made, first, of } = carrier();
    first.resume();
    first.write('the answer');
    made.feed(frameOf(1, FRAME.end));
    await once(first, 'end');
    expect([first.writable, of(FRAME.reset)]).toEqual([true, []]);
    made.feed(creditFrame(1, 4));
    made.feed(frameOf(1, FRAME.reset));
    await once(first, 'close');
    expect(untakenBytes(first)).toBe('answer'.length);
  });

  test('a program that closes after its bytes were taken ends as usual', async () => {
    const { made, first, of } = carrier();
    first.resume();
    first.write('the answer');
    made.feed(creditFrame(1, 'the answer'.length));
    made.feed(frameOf(1, FRAME.end));
    await once(first, 'end');
    first.end();
    await once(first, 'close');
    expect(of(FRAME.reset)).toHaveLength(0);
    expect(untakenBytes(first)).toBe(0);
  });

  test('a reset closes it, without an answer and without an error', async () => {
    const { made, first, of } = carrier();
    made.feed(frameOf(1, FRAME.reset));
    await once(first, 'close');
    expect(first.errored).toBeNull();
    expect(of(FRAME.reset)).toHaveLength(0);
    made.feed(frameOf(1, FRAME.data, Buffer.from('late')));
    expect(made.connections()).toBe(0);
  });

  test('one that we break off is reset at the relay', async () => {
    const { first, of } = carrier();
    first.destroy();
    await once(first, 'close');
    expect(of(FRAME.reset)).toHaveLength(1);
  });
});
