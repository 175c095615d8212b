/** How many columns of a terminal a text takes: ideographs and most emoji take two, combining marks none. */

const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;
const NONE = /\p{M}/u;
// Nearly all text is this, and tables measure every cell.
const ASCII = /^[\x20-\x7e]*$/;

const widthOf = (point: string): number => (WIDE.test(point) ? 2 : NONE.test(point) ? 0 : 1);

export const columns = (text: string): number =>
  ASCII.test(text) ? text.length : [...text].reduce((sum, point) => sum + widthOf(point), 0);

/** The longest beginning that fits into `width` columns. */
export function head(text: string, width: number): string {
  if (ASCII.test(text)) return text.slice(0, width);
  let used = 0;
  let kept = '';
  for (const point of text) {
    used += widthOf(point);
    if (used > width) break;
    kept += point;
  }
  return kept;
}

/** Cut from the left, where ids differ least, or from the right. */
export function shorten(text: string, width: number, side: 'left' | 'right' = 'right'): string {
  if (columns(text) <= width) return text;
  if (width <= 1) return '…'.slice(0, width);
  if (side === 'right') return `${head(text, width - 1)}…`;
  const points = [...text];
  let used = 0;
  let from = points.length;
  while (from > 0 && used + widthOf(points[from - 1]!) <= width - 1) used += widthOf(points[--from]!);
  return `…${points.slice(from).join('')}`;
}

export const pad = (text: string, width: number): string =>
  text + ' '.repeat(Math.max(0, width - columns(text)));
export const padLeft = (text: string, width: number): string =>
  ' '.repeat(Math.max(0, width - columns(text))) + text;
