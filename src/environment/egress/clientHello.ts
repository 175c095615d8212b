/**
 * The name that a TLS client asks for (RFC 8446, section 4.1.2; RFC 6066, section 3), read from its first bytes. Nothing is decrypted: it is sent
 * in the clear.
 */

export type ClientHello =
  /** The hello has not come whole yet. */
  | { readonly kind: 'more' }
  | { readonly kind: 'not_tls' }
  | { readonly kind: 'broken' }
  /** `hidden`: an inner name may be there, encrypted (encrypted_client_hello), which nobody here can read. */
  | { readonly kind: 'hello'; readonly name: string | undefined; readonly hidden: boolean };

const HANDSHAKE = 22;
const CLIENT_HELLO = 1;
const RECORD_HEADER = 5;
const RECORD_LIMIT = 16_384;
/** A hello with post-quantum key shares takes two kilobytes, in one record. More of both would cost the reader, who begins anew with each byte. */
const HELLO_LIMIT = 16_384;
const MOST_RECORDS = 16;
const SERVER_NAME = 0;
const HOST_NAME = 0;
const ENCRYPTED_CLIENT_HELLO = 0xfe0d;

class Broken extends Error {}

/** Takes parts off the front of some bytes. */
function reader(bytes: Buffer) {
  let at = 0;
  const take = (count: number): Buffer => {
    if (at + count > bytes.length) throw new Broken();
    at += count;
    return bytes.subarray(at - count, at);
  };
  const number = (size: number): number => take(size).readUIntBE(0, size);
  return {
    take,
    number,
    /** Behind its own length. */
    vector: (size: number): Buffer => take(number(size)),
    left: () => bytes.length - at,
  };
}

/** `bytes`: all that the client has sent so far. */
export function readClientHello(bytes: Buffer): ClientHello {
  const fragments: Buffer[] = [];
  let length = 0;
  let at = 0;
  for (;;) {
    if (bytes.length > at && bytes[at] !== HANDSHAKE) return { kind: at === 0 ? 'not_tls' : 'broken' };
    if (bytes.length > at + 1 && bytes[at + 1] !== 3) return { kind: at === 0 ? 'not_tls' : 'broken' };
    if (bytes.length < at + RECORD_HEADER) return { kind: 'more' };
    const size = bytes.readUInt16BE(at + 3);
    if (size === 0 || size > RECORD_LIMIT) return { kind: 'broken' };
    // A part of a record is enough where it holds all of the message.
    const fragment = bytes.subarray(at + RECORD_HEADER, at + RECORD_HEADER + size);
    fragments.push(fragment);
    if (fragments.length > MOST_RECORDS) return { kind: 'broken' };
    length += fragment.length;
    if (length >= 4) {
      const message = Buffer.concat(fragments);
      const wanted = 4 + message.readUIntBE(1, 3);
      if (message[0] !== CLIENT_HELLO || wanted > HELLO_LIMIT) return { kind: 'broken' };
      if (length >= wanted) return helloIn(message.subarray(4, wanted));
    }
    if (fragment.length < size) return { kind: 'more' };
    at += RECORD_HEADER + size;
  }
}

function helloIn(body: Buffer): ClientHello {
  try {
    const hello = reader(body);
    hello.take(2 + 32);
    hello.vector(1);
    hello.vector(2);
    hello.vector(1);
    // Without extensions, as clients of SSL 3 sent it.
    const extensions = reader(hello.left() === 0 ? Buffer.alloc(0) : hello.vector(2));
    if (hello.left() > 0) throw new Broken();
    let name: string | undefined;
    let hidden = false;
    const seen = new Set<number>();
    while (extensions.left() > 0) {
      const type = extensions.number(2);
      const content = extensions.vector(2);
      // Two would leave it to the server which of them counts.
      if (seen.has(type)) throw new Broken();
      seen.add(type);
      if (type === SERVER_NAME) name = nameIn(content);
      if (type === ENCRYPTED_CLIENT_HELLO) hidden = true;
    }
    return { kind: 'hello', name, hidden };
  } catch (error) {
    if (error instanceof Broken) return { kind: 'broken' };
    throw error;
  }
}

function nameIn(content: Buffer): string {
  const extension = reader(content);
  const names = reader(extension.vector(2));
  const type = names.number(1);
  const name = names.vector(2);
  // One name of one kind is all that there has ever been.
  if (type !== HOST_NAME || names.left() > 0 || extension.left() > 0) throw new Broken();
  return name.toString('latin1');
}
