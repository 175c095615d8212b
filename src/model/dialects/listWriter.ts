/** Writes a request whose history is one list, turn by turn, and keeps the bytes of the turns that stay as they are. */
import type { Message } from '../model.ts';
import { createGrowingBuffer, isAsWritten, type Written } from './growingBuffer.ts';

/** A part of the list that is written or kept as a whole. */
export interface Unit {
  /** The messages it is made of, to see whether it is still the same. */
  readonly from: readonly Message[];
  /** Elements of the list as JSON, with commas between them. */
  json(): string;
}

interface WrittenUnit {
  readonly parts: readonly Written[];
  readonly end: number;
}

const isSame = (written: WrittenUnit, unit: Unit): boolean =>
  written.parts.length === unit.from.length &&
  written.parts.every((part, index) => isAsWritten(part, unit.from[index]!));

export interface ListWriter {
  /** `head` + units + `tail`. The first `settled` units are kept for the next call; those after it are written again. */
  write(units: readonly Unit[], settled: number, tail: string): Uint8Array;
}

export function createListWriter(head: string): ListWriter {
  const { headEnd, put, bytes } = createGrowingBuffer(head);
  const written: WrittenUnit[] = [];
  return {
    write(units, settled, tail) {
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
