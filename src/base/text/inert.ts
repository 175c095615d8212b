/** Text of models, repositories and files for a terminal: it may look like anything, but it steers nothing. */
import { settleLines, showUnseen, stripEscapes } from './visible.ts';

export const inert = (text: string): string => showUnseen(stripEscapes(settleLines(text)));
