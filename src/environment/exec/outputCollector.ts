/**
 * Output of one command in bounded memory: the first and the last bytes are kept, the middle is counted. Bytes stay bytes until the
 * end, so a character split between two chunks is whole again when the text is made.
 */

import { isUtf8 } from 'node:buffer';
import { startTimer } from '../../base/async/timer.ts';

export interface CollectedOutput {
  readonly output: string;
  readonly raw: Uint8Array;
  readonly totalBytes: number;
  readonly omittedBytes: number;
  readonly replacedBytes: number;
}

export interface OutputCollector {
  push(chunk: Uint8Array): void;
  readonly totalBytes: number;
  finish(): CollectedOutput;
}

const FIRST_BYTES = 4096;

/** A buffer that grows to `capacity` and then overwrites its oldest bytes. */
function createRing(capacity: number) {
  let store = Buffer.alloc(0);
  let length = 0;
  let start = 0;
  const grow = (needed: number) => {
    const bigger = Buffer.allocUnsafe(Math.min(capacity, Math.max(needed, store.length * 2, FIRST_BYTES)));
    store.copy(bigger, 0, 0, length);
    store = bigger;
  };
  return {
    push(chunk: Uint8Array) {
      const data = chunk.length > capacity ? chunk.subarray(chunk.length - capacity) : chunk;
      if (length + data.length > store.length && store.length < capacity) grow(length + data.length);
      let end = (start + length) % (store.length || 1);
      const first = Math.min(data.length, store.length - end);
      store.set(data.subarray(0, first), end);
      store.set(data.subarray(first), 0);
      end = length + data.length;
      if (end > store.length) start = (start + end - store.length) % store.length;
      length = Math.min(end, store.length);
    },
    bytes: () =>
      Buffer.concat([
        store.subarray(start, Math.min(start + length, store.length)),
        store.subarray(0, Math.max(0, start + length - store.length)),
      ]),
  };
}

/** How many bytes at the end of `bytes` begin a character that is not complete there. */
function incompleteEnd(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back]!;
    if ((byte & 0xc0) === 0x80) continue;
    const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return needed > back ? back : 0;
  }
  return 0;
}

function continuationStart(bytes: Uint8Array): number {
  let at = 0;
  while (at < Math.min(3, bytes.length) && (bytes[at]! & 0xc0) === 0x80) at += 1;
  return at;
}

const countOf = (text: string, what: string) => text.split(what).length - 1;

/** Text with U+FFFD for what is not UTF-8, and how many replacements there were (a U+FFFD that the command wrote does not count). */
export function decodeUtf8(bytes: Uint8Array): { text: string; replaced: number } {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (isUtf8(buffer)) return { text: buffer.toString('utf8'), replaced: 0 };
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
  const genuine = countOf(buffer.toString('latin1'), '\u00ef\u00bf\u00bd');
  return { text, replaced: Math.max(0, countOf(text, '\ufffd') - genuine) };
}

export function createCollector(maxBytes: number): OutputCollector {
  const headCapacity = Math.ceil(maxBytes / 2);
  // Copied, not kept as slices: a slice of 1 byte would hold the whole chunk that it came in.
  const head = createRing(headCapacity);
  let headBytes = 0;
  let totalBytes = 0;
  let tail: ReturnType<typeof createRing> | undefined;
  return {
    get totalBytes() {
      return totalBytes;
    },
    push(chunk) {
      totalBytes += chunk.length;
      const room = headCapacity - headBytes;
      if (room >= chunk.length) {
        head.push(chunk);
        headBytes += chunk.length;
        return;
      }
      if (room > 0) {
        head.push(chunk.subarray(0, room));
        headBytes += room;
      }
      tail ??= createRing(maxBytes - headCapacity);
      tail.push(room > 0 ? chunk.subarray(room) : chunk);
    },
    finish() {
      const first = head.bytes();
      const last = tail?.bytes() ?? Buffer.alloc(0);
      const omittedBytes = totalBytes - first.length - last.length;
      const raw = last.length === 0 ? first : Buffer.concat([first, last]);
      if (omittedBytes === 0) {
        const { text, replaced } = decodeUtf8(raw);
        return { output: text, raw, totalBytes, omittedBytes, replacedBytes: replaced };
      }
      // The cut must not make half characters: those bytes belong to what was omitted, in the text only.
      const cutHead = decodeUtf8(first.subarray(0, first.length - incompleteEnd(first)));
      const cutTail = decodeUtf8(last.subarray(continuationStart(last)));
      return {
        output: `${cutHead.text}\n… ${omittedBytes} bytes omitted …\n${cutTail.text}`,
        raw,
        totalBytes,
        omittedBytes,
        replacedBytes: cutHead.replaced + cutTail.replaced,
      };
    },
  };
}

interface Pausable {
  pause(): unknown;
  resume(): unknown;
}

interface Pace {
  readonly freeBytes: number;
  readonly turnBytes: number;
  readonly pauseMs: number;
}

const MB = 1024 * 1024;
const AWAITED: Pace = { freeBytes: 8 * MB, turnBytes: 2 * MB, pauseMs: 10 };
/** 5 MB a second: more than a server logs. */
export const UNWANTED: Pace = { freeBytes: 0, turnBytes: MB / 4, pauseMs: 50 };

/** Call after each chunk with its size and the total of the command so far. */
export function createPace(stream: Pausable, pace: Pace = AWAITED): (bytes: number, total: number) => void {
  let turn = 0;
  return (bytes, total) => {
    if (total < pace.freeBytes) return;
    turn += bytes;
    if (turn < pace.turnBytes) return;
    turn = 0;
    stream.pause();
    startTimer(Math.max(1, pace.pauseMs), () => stream.resume());
  };
}
