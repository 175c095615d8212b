// Every reader of the table takes every text: it ends soon, and throws nothing but its own errors.
import fc from 'fast-check';
import { cpuMs } from '../support/cpuTime.ts';
import { READERS } from '../support/foreign/everyReader.ts';
import { heard, type Reader } from '../support/foreign/reader.ts';
import { COMMON } from '../support/foreign/worstText.ts';
import { CORPORA, textLike } from './corpus.ts';
import { type Target, target } from './target.ts';

/** Cases are some kilobytes long. */
const LIMIT_MS = 3000;

function targetOf(room: string, reader: Reader, corpus: readonly string[]): Target {
  const text = textLike(corpus, [...COMMON, ...(reader.words ?? [])]);
  return target(
    `${room}: ${reader.name}`,
    fc.property(text, (given) => {
      const ms = cpuMs(() => void heard(reader, given));
      if (ms > LIMIT_MS) throw new Error(`${Math.round(ms)} ms for ${given.length} characters`);
    }),
  );
}

export const readerTargets = (): Target[] =>
  Object.entries(READERS).flatMap(([room, readers]) => {
    const corpus = CORPORA[room]?.() ?? [];
    return readers.map((reader) => targetOf(room, reader, corpus));
  });
