/** Search over a whole trajectory: every message is read once, then each question is answered from memory. */

import { useEffect, useMemo, useState } from 'react';
import type { AttemptDocument, MessageChunk, MessageDocument } from '../../documents/attemptDocuments.ts';
import { MESSAGES_PER_CHUNK } from '../../documents/documents.ts';
import { readDocument } from '../data/source.ts';
import { countIn } from '../text/foreignText.ts';

const textOf = (message: MessageDocument): string =>
  [
    message.content,
    message.reasoning ?? '',
    ...message.toolCalls.map((call) => call.text),
    ...message.commands.flatMap((command) => [command.command, command.output ?? '']),
  ]
    .join('\n')
    .toLowerCase();

async function readTexts(attempt: number, chunks: number): Promise<Map<number, string>> {
  const texts = new Map<number, string>();
  for (let chunk = 0; chunk < chunks; chunk += 1) {
    const { messages } = await readDocument<MessageChunk>(`attempts/${attempt}/messages/${chunk}`);
    for (const message of messages) texts.set(message.seq, textOf(message));
  }
  return texts;
}

export interface Found {
  /** Matches by the number of the message. */
  readonly hits: ReadonlyMap<number, number>;
  readonly isReading: boolean;
}

const NOTHING: ReadonlyMap<number, number> = new Map();
/** One letter is on every line: nobody looks for it. */
const SHORTEST = 2;

export function useSearch(doc: AttemptDocument, asked: string): Found {
  const word = asked.trim().toLowerCase();
  const isAsked = word.length >= SHORTEST;
  const last = doc.outline.at(-1)?.seq ?? -1;
  const [texts, setTexts] = useState<{ last: number; texts: Map<number, string> } | undefined>(undefined);
  useEffect(() => {
    if (!isAsked || texts?.last === last) return;
    let wanted = true;
    readTexts(doc.attempt.id, Math.ceil((last + 1) / MESSAGES_PER_CHUNK)).then(
      (read) => wanted && setTexts({ last, texts: read }),
      () => wanted && setTexts({ last, texts: new Map() }),
    );
    return () => {
      wanted = false;
    };
  }, [isAsked, doc.attempt.id, last, texts]);
  const hits = useMemo(() => {
    if (!isAsked || !texts) return NOTHING;
    const found = new Map<number, number>();
    for (const { seq } of doc.outline) {
      const n = countIn(texts.texts.get(seq) ?? '', word);
      if (n > 0) found.set(seq, n);
    }
    return found;
  }, [isAsked, texts, word, doc.outline]);
  return { hits, isReading: isAsked && texts?.last !== last };
}

/** Marks what is in sight. The highlights of the browser change no element, so foreign text stays as it is. */
export function markMatches(root: HTMLElement | null, asked: string): void {
  const word = asked.trim().toLowerCase();
  if (typeof CSS === 'undefined' || !('highlights' in CSS)) return;
  CSS.highlights.delete('found');
  if (!root || word.length < SHORTEST) return;
  const ranges: Range[] = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node && ranges.length < 2000; node = walker.nextNode()) {
    const text = (node.textContent ?? '').toLowerCase();
    for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
      const range = document.createRange();
      range.setStart(node, at);
      range.setEnd(node, Math.min(at + word.length, node.textContent?.length ?? 0));
      ranges.push(range);
    }
  }
  CSS.highlights.set('found', new Highlight(...ranges));
}
