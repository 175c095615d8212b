/** Rows of which only those in sight are drawn: TanStack's virtualizer in a component of Preact. */
import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
  type VirtualizerOptions,
} from '@tanstack/virtual-core';
import { useLayoutEffect, useReducer, useState } from 'preact/compat';

export type VirtualRows = Virtualizer<HTMLElement, Element>;
type Options = VirtualizerOptions<HTMLElement, Element>;
type Chosen = Pick<Options, 'count' | 'getScrollElement' | 'estimateSize'> & Partial<Options>;

export function useVirtualRows(chosen: Chosen): VirtualRows {
  const [, drawAgain] = useReducer<number, undefined>((times) => times + 1, 0);
  const options: Options = {
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    ...chosen,
    // Preact draws before the next frame, so rows are there when they come into sight.
    onChange: () => drawAgain(undefined),
  };
  const [rows] = useState(() => new Virtualizer(options));
  rows.setOptions(options);
  useLayoutEffect(() => rows._didMount(), [rows]);
  useLayoutEffect(() => rows._willUpdate());
  return rows;
}
