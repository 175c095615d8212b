/**
 * The bytes of a request that grows: what was serialised for one call is kept and the next call adds to it. Serialising a whole
 * history for each call is what made other runners slow, and the strings it leaves behind make memory grow with the number of slots.
 */
import type { Message } from '../model.ts';

const SPARE = 1.5;

export interface GrowingBuffer {
  /** Where the head ends. */
  readonly headEnd: number;
  /** Writes a text at a place (0 is the start) and returns where it ends; what stood behind is gone. */
  put(text: string, at: number): number;
  /** The bytes up to `end`, good until the next `put`. */
  bytes(end: number): Uint8Array;
}

export function createGrowingBuffer(head: string): GrowingBuffer {
  let buffer = Buffer.from(head);
  return {
    headEnd: buffer.length,
    put(text, at) {
      const end = at + Buffer.byteLength(text);
      if (end > buffer.length) {
        const larger = Buffer.allocUnsafeSlow(Math.ceil(end * SPARE));
        buffer.copy(larger, 0, 0, at);
        buffer = larger;
      }
      buffer.write(text, at);
      return end;
    },
    bytes: (end) => buffer.subarray(0, end),
  };
}

/**
 * JSON.stringify writes a lone surrogate as an escape that many servers cannot decode (T-16). The escape is rare and cheap
 * to look for, so the second pass happens only where one may be.
 */
export function stringify(value: unknown): string {
  const text = JSON.stringify(value);
  if (!/\\ud[89a-f]/.test(text)) return text;
  return JSON.stringify(value, (_key, item: unknown) =>
    typeof item === 'string' ? item.toWellFormed() : item,
  );
}

/** A message as it was when it was written, so that one that was changed in place is noticed. */
export interface Written {
  readonly message: Message;
  readonly content: unknown;
  readonly toolCalls: unknown;
  /** Where its bytes end. */
  readonly end: number;
}

export const isAsWritten = (written: Written, message: Message): boolean =>
  written.message === message &&
  written.content === message.content &&
  written.toolCalls === message.tool_calls;
