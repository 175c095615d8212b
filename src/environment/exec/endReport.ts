/**
 * How a command's end is told. The status is a frame `RS … RS` on the stderr of whoever ran it, a stream that no command is given. On stdout
 * there is only a fence `RS nonce RS` that says that the output is complete; it carries nothing that could be wrong.
 */
import type { CommandEnd } from './transport.ts';

const RS = 0x1e;
/** The longest true frame lists the container's own processes. */
const MAX_FRAME = 4096;
const MAX_EVIDENCE = 200;

export const forgedEnd = (evidence: string): CommandEnd => ({
  kind: 'forged',
  evidence: evidence.slice(0, MAX_EVIDENCE),
});

/** `status oomKills held forksRefused`, or a word; anything else was not written by our script. */
export function parseEnd(text: string): CommandEnd {
  if (text === 'nocwd' || text === 'nofile' || text === 'nofork') return { kind: 'refused', why: text };
  const match = /^(\d{1,3}) (\d{1,15}) ([01]) (\d{1,15})$/.exec(text);
  const code = Number(match?.[1]);
  if (!match || code > 255) return forgedEnd(`the end "${text}"`);
  return {
    kind: 'exit',
    code,
    oomKills: Number(match[2]),
    held: match[3] === '1',
    forksRefused: Number(match[4]),
  };
}

/** Calls back with the text between two RS. A text that never ends is dropped, so memory is bounded and each byte is looked at once. */
export function createFrameReader(onFrame: (text: string) => void): (chunk: Buffer) => void {
  let text = '';
  let reading = false;
  return (chunk) => {
    for (let at = 0; at < chunk.length; ) {
      const close = chunk.indexOf(RS, at);
      const to = close < 0 ? chunk.length : close;
      if (text.length + to - at > MAX_FRAME) reading = false;
      text = reading ? text + chunk.toString('latin1', at, to) : '';
      if (close < 0) return;
      if (text) onFrame(text);
      text = '';
      reading = true;
      at = close + 1;
    }
  };
}

export const fenceOf = (nonce: string) => `\x1e${nonce}\x1e`;

/**
 * Finds one fence however the stream is cut: what precedes it goes to `before`, what follows it is returned. Bytes that could be the
 * beginning of the fence are held back; they are fewer than the fence has.
 */
export function createFenceFinder(
  fence: string,
  before: (data: Buffer) => void,
): (chunk: Buffer) => Buffer | undefined {
  const wanted = Buffer.from(fence);
  let held = Buffer.alloc(0);
  return (chunk) => {
    const data = held.length > 0 ? Buffer.concat([held, chunk]) : chunk;
    const at = data.indexOf(wanted);
    const to = at < 0 ? beginningOf(wanted, data) : at;
    if (to > 0) before(data.subarray(0, to));
    if (at >= 0) return data.subarray(at + wanted.length);
    held = Buffer.from(data.subarray(to));
    return undefined;
  };
}

/** Where the end of `data` may be the beginning of `wanted`; the length of `data` when it is not. */
function beginningOf(wanted: Buffer, data: Buffer): number {
  let from = data.indexOf(RS, Math.max(0, data.length - wanted.length + 1));
  while (from >= 0 && data.compare(wanted, 0, data.length - from, from) !== 0)
    from = data.indexOf(RS, from + 1);
  return from < 0 ? data.length : from;
}
