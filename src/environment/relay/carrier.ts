/** The connections that one relay carries, each as a stream of its own with flow control in both directions. */
import { Duplex } from 'node:stream';

interface Carried {
  readonly stream: Duplex;
  take(payload: Buffer): void;
  endOfInput(): void;
  credit(bytes: number): void;
}

export function createCarrier({
  write,
  onReady,
  onConnection,
}: {
  /** Sends towards the relay. */
  write(frame: Buffer): void;
  onReady(): void;
  onConnection(connection: Duplex): void;
}) {
  const open = new Map<number, Carried>();
  const obey = ({ id, type, payload }: Frame): void => {
    if (type === FRAME.ready) {
      onReady();
      return;
    }
    if (type === FRAME.open) {
      if (open.has(id)) throw new Error(`the relay opened connection ${id} twice`);
      const carried = carry(id, write, () => open.delete(id));
      open.set(id, carried);
      onConnection(carried.stream);
      return;
    }
    // A frame for a connection that has ended here was on its way.
    const carried = open.get(id);
    if (type === FRAME.data) carried?.take(payload);
    else if (type === FRAME.end) carried?.endOfInput();
    else if (type === FRAME.reset) {
      open.delete(id);
      carried?.stream.destroy();
    } else if (payload.length !== 4) throw new Error('the relay sent a credit of no size');
    else carried?.credit(payload.readUInt32BE());
  };
  return {
    /** Throws when the bytes are no frames, or break the rules of flow control: then the relay cannot be trusted. */
    feed: createRelayReader(obey),
    connections: () => open.size,
    /** Nothing more comes and nothing more can be sent. */
    abandon(): void {
      const left = [...open.values()];
      open.clear();
      for (const { stream } of left) stream.destroy();
    },
  };
}

/** Sends towards the program: bytes beyond the window wait until the relay has room. */
function createSending(id: number, write: (frame: Buffer) => void) {
  let window = DOWN_WINDOW;
  let waiting: { rest: Buffer; done: () => void } | null = null;
  const pump = (): void => {
    if (!waiting) return;
    let { rest } = waiting;
    while (rest.length > 0 && window > 0) {
      const size = Math.min(rest.length, window, MAX_PAYLOAD);
      write(frameOf(id, FRAME.data, rest.subarray(0, size)));
      window -= size;
      rest = rest.subarray(size);
    }
    const { done } = waiting;
    waiting = rest.length > 0 ? { rest, done } : null;
    if (!waiting) done();
  };
  return {
    send(chunk: Buffer, done: () => void) {
      waiting = { rest: chunk, done };
      pump();
    },
    /** Bytes that the program has not taken. */
    untaken: () => DOWN_WINDOW - window,
    credit(bytes: number) {
      window += bytes;
      if (window > DOWN_WINDOW) throw new Error('the relay gave more credit than it took bytes');
      pump();
    },
  };
}

const untakenOf = new WeakMap<Duplex, () => number>();

/** Bytes that were written to a carried connection and that the program's side has not taken; 0 for any other stream. */
export const untakenBytes = (stream: Duplex): number => untakenOf.get(stream)?.() ?? 0;

function carry(id: number, write: (frame: Buffer) => void, forget: () => boolean): Carried {
  const sending = createSending(id, write);
  /** Bytes that may still come before something here is consumed. */
  let allowed = UP_WINDOW;
  /** Bytes that lie here, and count as consumed once the reader asks for more. */
  let unread = 0;
  let inputEnded = false;
  const grant = (bytes: number): void => {
    if (bytes === 0) return;
    allowed += bytes;
    write(creditFrame(id, bytes));
  };
  const stream = new Duplex({
    read() {
      const consumed = unread;
      unread = 0;
      grant(consumed);
    },
    write: (chunk: Buffer, _encoding, done) => sending.send(chunk, done),
    // Small pieces that wait together leave together: each frame costs its way through the engine.
    writev: (chunks, done) => sending.send(Buffer.concat(chunks.map(({ chunk }) => chunk as Buffer)), done),
    final(done) {
      write(frameOf(id, FRAME.end));
      done();
    },
    destroy(error, done) {
      // Both sides have said their last byte, or the relay has forgotten it already: then there is nothing to reset.
      const known = forget();
      if (known && !(inputEnded && stream.writableFinished)) write(frameOf(id, FRAME.reset));
      done(error);
    },
  });
  untakenOf.set(stream, sending.untaken);
  return {
    stream,
    take(payload) {
      allowed -= payload.length;
      if (allowed < 0) throw new Error('the relay sent more than it may');
      // A copy: unread bytes must not keep a whole chunk of the stream alive.
      if (stream.push(Buffer.from(payload))) grant(payload.length);
      else unread += payload.length;
    },
    endOfInput() {
      // The program may still read: it may end its own side of a connection first.
      inputEnded = true;
      stream.push(null);
    },
    credit: sending.credit,
  };
}

/**
 * The frames of the relay and this process over one stream. A frame is: id (u32), type (u8), length (u32), then `length` bytes, all
 * big endian. relay.c has the same table.
 */

export const FRAME = {
  /** The relay listens. */
  ready: 1,
  /** A program has connected; the id is new. */
  open: 2,
  data: 3,
  /** No more bytes in this direction. */
  end: 4,
  /** The connection is gone in both directions. */
  reset: 5,
  /** So many bytes more may be sent (u32): the other side has consumed them. */
  credit: 6,
} as const;
type FrameType = (typeof FRAME)[keyof typeof FRAME];

const HEADER_BYTES = 9;
export const MAX_PAYLOAD = 32_768;
/** Bytes of a connection that are on their way to this process and not consumed yet. */
export const UP_WINDOW = 262_144;
/** The same towards the program; the relay holds this much memory for a reader that has stopped. */
export const DOWN_WINDOW = 65_536;

export interface Frame {
  readonly id: number;
  readonly type: FrameType;
  readonly payload: Buffer;
}

const NOTHING = Buffer.alloc(0);
const KNOWN: ReadonlySet<number> = new Set(Object.values(FRAME));
const isType = (type: number): type is FrameType => KNOWN.has(type);

export function frameOf(id: number, type: FrameType, payload: Uint8Array = NOTHING): Buffer {
  const frame = Buffer.allocUnsafe(HEADER_BYTES + payload.length);
  frame.writeUInt32BE(id, 0);
  frame.writeUInt8(type, 4);
  frame.writeUInt32BE(payload.length, 5);
  frame.set(payload, HEADER_BYTES);
  return frame;
}

export function creditFrame(id: number, bytes: number): Buffer {
  const payload = Buffer.allocUnsafe(4);
  payload.writeUInt32BE(bytes);
  return frameOf(id, FRAME.credit, payload);
}

/** Returns a function to feed with chunks, cut wherever they are. The function throws when they are no frames. */
export function createRelayReader(onFrame: (frame: Frame) => void): (chunk: Buffer) => void {
  let rest = NOTHING;
  return (chunk) => {
    let bytes = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk;
    while (bytes.length >= HEADER_BYTES) {
      const type = bytes.readUInt8(4);
      const length = bytes.readUInt32BE(5);
      if (!isType(type) || length > MAX_PAYLOAD)
        throw new Error(`the relay sent no frame: type ${type}, ${length} bytes`);
      if (bytes.length < HEADER_BYTES + length) break;
      const payload = bytes.subarray(HEADER_BYTES, HEADER_BYTES + length);
      onFrame({ id: bytes.readUInt32BE(0), type, payload });
      bytes = bytes.subarray(HEADER_BYTES + length);
    }
    // A copy: the chunk that it is part of may be much larger.
    rest = bytes.length > 0 ? Buffer.from(bytes) : NOTHING;
  };
}
