// The name in the first message of TLS, as a real client sends it, in pieces, and as nobody honest does.
import { Duplex } from 'node:stream';
import { connect } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { readClientHello } from '../../../src/environment/egress/clientHello.ts';

/** The first bytes of Node's own client. */
async function helloOf(servername: string | undefined): Promise<Buffer> {
  const sent = Promise.withResolvers<Buffer>();
  const socket = new Duplex({ read() {}, write: (chunk: Buffer) => sent.resolve(chunk) });
  const client = connect({
    socket,
    ...(servername !== undefined && { servername }),
    rejectUnauthorized: false,
  });
  client.on('error', () => {});
  try {
    return await sent.promise;
  } finally {
    client.destroy();
  }
}

const u16 = (value: number) => [value >> 8, value & 255];
const behind = (size: 1 | 2, bytes: readonly number[]) => [
  ...(size === 1 ? [bytes.length] : u16(bytes.length)),
  ...bytes,
];
const extension = (type: number, bytes: readonly number[]) => [...u16(type), ...behind(2, bytes)];
const names = (...texts: string[]) =>
  behind(
    2,
    texts.flatMap((text) => [0, ...behind(2, [...Buffer.from(text)])]),
  );

function message(extensions: readonly number[], rest: readonly number[] = []): number[] {
  const body = [
    ...[3, 3, ...Array<number>(32).fill(7)],
    ...behind(1, []),
    ...behind(2, [0x13, 0x01]),
    ...behind(1, [0]),
    ...behind(2, extensions),
    ...rest,
  ];
  return [1, 0, ...u16(body.length), ...body];
}
const record = (bytes: readonly number[]) => [22, 3, 1, ...u16(bytes.length), ...bytes];
const read = (bytes: readonly number[]) => readClientHello(Buffer.from(bytes));

describe('the name that a TLS client asks for', () => {
  test('of a real client, also when it comes byte by byte', async () => {
    const bytes = await helloOf('files.example.com');
    expect(readClientHello(bytes)).toEqual({ kind: 'hello', name: 'files.example.com', hidden: false });
    for (let length = 0; length < bytes.length; length += 1)
      expect(readClientHello(bytes.subarray(0, length)), `${length} bytes`).toEqual({ kind: 'more' });
  });

  test('a client that names none', async () => {
    expect(readClientHello(await helloOf(undefined))).toEqual({
      kind: 'hello',
      name: undefined,
      hidden: false,
    });
  });

  test('a message that is cut into several records', async () => {
    const whole = message(extension(0, names('a.example.com')));
    const parts = whole.flatMap((_, i) => (i % 5 === 0 ? [whole.slice(i, i + 5)] : []));
    expect(read(parts.flatMap((part) => record(part)))).toMatchObject({ name: 'a.example.com' });
  });

  test('an encrypted hello behind it is seen', () => {
    const extensions = [...extension(0, names('a.example.com')), ...extension(0xfe0d, [0, 1, 2])];
    expect(read(record(message(extensions)))).toMatchObject({ name: 'a.example.com', hidden: true });
  });

  test.each([
    ['two names', [...extension(0, names('a.com', 'b.com'))]],
    ['the extension twice', [...extension(0, names('a.com')), ...extension(0, names('b.com'))]],
    ['a name that is longer than its list', extension(0, [0, 3, 0, 0, 200, 97])],
    ['bytes behind the list', extension(0, [...names('a.com'), 1])],
    ['no name in the list', extension(0, [0, 0])],
    ['half an extension', [0, 0, 0]],
  ])('%s are no hello that anybody could rely on', (_, extensions) => {
    expect(read(record(message(extensions)))).toEqual({ kind: 'broken' });
  });

  test('what is another message, another record in between, or too long', () => {
    const hello = message(extension(0, names('a.com')));
    expect(read(record([2, ...hello.slice(1)]))).toEqual({ kind: 'broken' });
    expect(read([...record(hello.slice(0, 20)), 23, 3, 3, 0, 1, 0])).toEqual({ kind: 'broken' });
    expect(read(record([1, 255, 255, 255]))).toEqual({ kind: 'broken' });
    // Each byte in a record of its own would be read anew with every one that comes.
    expect(read(hello.flatMap((byte) => record([byte])))).toEqual({ kind: 'broken' });
    expect(read([22, 3, 1, 0, 0])).toEqual({ kind: 'broken' });
    expect(read([22, 3, 1, 255, 255])).toEqual({ kind: 'broken' });
    expect(read(record(message([], [1, 2])))).toEqual({ kind: 'broken' });
  });

  test('what is no TLS is told by its first bytes', () => {
    for (const text of ['GET / HTTP/1.1\r\n', 'SSH-2.0-x\r\n', '\u0080\u0001'])
      expect(readClientHello(Buffer.from(text, 'latin1'))).toEqual({ kind: 'not_tls' });
    expect(read([22, 2])).toEqual({ kind: 'not_tls' });
  });
});
