/** Writes a request whose history is one list, turn by turn, and keeps the bytes of the turns that stay as they are. */
import type { Message } from '../model.ts';

/** A part of the list that is written or kept as a whole. */
export interface Unit {
  /** The messages that the unit is made of, to see whether it is still the same. */
  readonly from: readonly Message[];
  /** Elements of the list as JSON, with commas between them. */
  json(): string;
}

interface WrittenUnit {
  readonly parts: readonly WrittenMessage[];
  readonly end: number;
}

const isSame = (written: WrittenUnit, unit: Unit): boolean =>
  written.parts.length === unit.from.length &&
  written.parts.every((part, index) => isAsWritten(part, unit.from[index]!));

export function createListWriter(head: string) {
  const { headEnd, put, bytes } = createGrowingBuffer(head);
  const written: WrittenUnit[] = [];
  return {
    /** `head` + units + `tail`. The first `settled` units are kept for the next call; those after it are written again. */
    write(units: readonly Unit[], settled: number, tail: string): Uint8Array {
      let same = 0;
      while (same < written.length && same < settled && isSame(written[same]!, units[same]!)) same += 1;
      written.length = same;
      let end = written.at(-1)?.end ?? headEnd;
      for (const [index, unit] of units.entries()) {
        if (index < same) continue;
        end = put((end === headEnd ? '' : ',') + unit.json(), end);
        if (index >= settled) continue;
        const parts = unit.from.map((message) => ({
          message,
          content: message.content,
          toolCalls: message.tool_calls,
          end,
        }));
        written.push({ parts, end });
      }
      return bytes(put(tail, end));
    },
  };
}

/** Builds the part of a request behind its list once, and again when what it is made of is not the same any more. */
export function createTail(build: (parts: readonly unknown[]) => string) {
  let last: { readonly parts: readonly unknown[]; readonly text: string } | undefined;
  return (...parts: readonly unknown[]): string => {
    const same = last?.parts.length === parts.length && parts.every((part, i) => part === last?.parts[i]);
    if (!same || !last) last = { parts, text: build(parts) };
    return last.text;
  };
}

export const systemContents = (messages: readonly Message[]): readonly Message['content'][] =>
  messages.filter((message) => message.role === 'system').map(({ content }) => content);

const SPARE = 1.5;

export function createGrowingBuffer(head: string) {
  let buffer = Buffer.from(head);
  return {
    /** The end of the head. */
    headEnd: buffer.length,
    /** Writes a text at a place (0 is the start) and returns its end; the bytes behind it are gone. */
    put(text: string, at: number): number {
      const end = at + Buffer.byteLength(text);
      if (end > buffer.length) {
        const larger = Buffer.allocUnsafeSlow(Math.ceil(end * SPARE));
        buffer.copy(larger, 0, 0, at);
        buffer = larger;
      }
      buffer.write(text, at);
      return end;
    },
    /** The bytes up to `end`, good until the next `put`. */
    bytes: (end: number): Uint8Array => buffer.subarray(0, end),
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
export interface WrittenMessage {
  readonly message: Message;
  readonly content: unknown;
  readonly toolCalls: unknown;
  /** The end of its bytes. */
  readonly end: number;
}

export const isAsWritten = (written: WrittenMessage, message: Message): boolean =>
  written.message === message &&
  written.content === message.content &&
  written.toolCalls === message.tool_calls;
