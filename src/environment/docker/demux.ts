/**
 * Takes Docker's multiplexed stream apart. Iterative and without buffering of payloads: docker-modem's own demuxStream recurses
 * per frame and throws RangeError on a chunk of some thousand small frames.
 */

export type StreamType = 1 | 2;
const HEADER_BYTES = 8;

/** Returns a function to feed with chunks; `onData` gets payload pieces in order of arrival (1 stdout, 2 stderr). */
export function createDemux(onData: (type: StreamType, data: Buffer) => void): (chunk: Buffer) => void {
  const header = Buffer.alloc(HEADER_BYTES);
  let headerFilled = 0;
  let type: StreamType = 1;
  let left = 0;
  return (chunk) => {
    let at = 0;
    while (at < chunk.length) {
      if (left > 0) {
        const end = Math.min(at + left, chunk.length);
        left -= end - at;
        onData(type, chunk.subarray(at, end));
        at = end;
        continue;
      }
      const take = Math.min(HEADER_BYTES - headerFilled, chunk.length - at);
      chunk.copy(header, headerFilled, at, at + take);
      headerFilled += take;
      at += take;
      if (headerFilled < HEADER_BYTES) return;
      headerFilled = 0;
      type = header[0] === 2 ? 2 : 1;
      left = header.readUInt32BE(4);
    }
  };
}
