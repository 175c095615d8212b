/**
 * What the relay and this process say to each other over one stream. A frame is: id (u32), type (u8), length (u32), then `length` bytes, all
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
export type FrameType = (typeof FRAME)[keyof typeof FRAME];

export const HEADER_BYTES = 9;
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

/** Returns a function to feed with chunks, cut wherever they are. It throws when they are no frames. */
export function createFrameReader(onFrame: (frame: Frame) => void): (chunk: Buffer) => void {
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
