/** Which message is active, and what keeps it in sight. */
import type { Virtualizer } from '@tanstack/react-virtual';
import { type UIEvent, useEffect, useLayoutEffect, useRef, useState } from 'react';
import type { AttemptDocument } from '../../documents/documents.ts';
import { setQuery, useRoute } from '../route.ts';

export interface TrajectoryProps {
  readonly doc: AttemptDocument;
  readonly step?: number | undefined;
  readonly linked?: boolean;
}

export function usePlace(
  { doc, step, linked = true }: TrajectoryProps,
  virtualizer: Virtualizer<HTMLDivElement, Element>,
) {
  const { outline } = doc;
  const { query } = useRoute();
  const [active, setActive] = useState(0);
  const pinned = useRef<number | undefined>(undefined);
  const wanted = step ?? (linked && query.has('step') ? Number(query.get('step')) : undefined);
  // A trajectory that is being written is followed, unless the address names a place in it.
  const [follows, follow] = useState(doc.attempt.state === 'running' && wanted === undefined && linked);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only another step moves the view, not every new message
  useEffect(() => {
    if (wanted === undefined) return;
    const index = outline.findIndex((row) => row.step === wanted && row.role === 'assistant');
    if (index < 0) return;
    setActive(index);
    pinned.current = index;
    virtualizer.scrollToIndex(index, { align: 'start' });
  }, [wanted, doc.attempt.id]);
  // Messages arrive after the jump and change heights above it: the target stays put until the reader scrolls.
  const height = virtualizer.getTotalSize();
  // biome-ignore lint/correctness/useExhaustiveDependencies: a change of height is what moves the target
  useLayoutEffect(() => {
    if (pinned.current !== undefined) virtualizer.scrollToIndex(pinned.current, { align: 'start' });
    else if (follows) virtualizer.scrollToIndex(outline.length - 1, { align: 'end' });
  }, [height, follows]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs when a message was added
  useEffect(() => {
    if (doc.attempt.state !== 'running' || !follows) return;
    pinned.current = undefined;
    virtualizer.scrollToIndex(outline.length - 1, { align: 'end' });
  }, [outline.length, follows]);
  const show = (index: number) => {
    const next = Math.max(0, Math.min(outline.length - 1, index));
    setActive(next);
    pinned.current = next;
    follow(doc.attempt.state === 'running' && next === outline.length - 1);
    virtualizer.scrollToIndex(next, { align: 'start' });
    const at = outline[next]?.step;
    if (linked && at !== null && at !== undefined) setQuery({ step: String(at) });
  };
  const unpin = () => {
    pinned.current = undefined;
  };
  const onScroll = ({ currentTarget: box }: UIEvent<HTMLDivElement>) => {
    if (doc.attempt.state !== 'running' || pinned.current !== undefined) return;
    follow(box.scrollTop + box.clientHeight > box.scrollHeight - 80);
  };
  return { active, show, unpin, onScroll, follows, follow };
}
