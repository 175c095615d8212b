/** A short line diff of two texts: changed lines with "-" and "+", one line of context. For prompts, which are a few hundred lines. */
import { lineAt } from './jsonChildren.ts';

const MOST_LINES = 50_000;

export function lineDiff(a: string, b: string): string[] {
  const [before, after] = [lineAt(a, a.length), lineAt(b, b.length)];
  if (before + after > MOST_LINES && a !== b) return [`- ${before} lines`, `+ ${after} lines`];
  const [left, right] = [a.split('\n'), b.split('\n')];
  let head = 0;
  while (head < left.length && head < right.length && left[head] === right[head]) head++;
  let tail = 0;
  while (
    tail < Math.min(left.length, right.length) - head &&
    left[left.length - 1 - tail] === right[right.length - 1 - tail]
  )
    tail++;
  const middle = align(left.slice(head, left.length - tail), right.slice(head, right.length - tail));
  const above = left.slice(Math.max(0, head - 1), head).map((l) => `  ${l}`);
  const below = left.slice(left.length - tail, left.length - tail + 1).map((l) => `  ${l}`);
  return middle.length === 0 ? [] : [...above, ...middle, ...below];
}

/** Longest common subsequence; a product of a few thousand lines squared would not be a prompt any more. */
const LARGEST = 4_000_000;

function align(a: readonly string[], b: readonly string[]): string[] {
  if (a.length * b.length > LARGEST) return [...a.map((l) => `- ${l}`), ...b.map((l) => `+ ${l}`)];
  const width = b.length + 1;
  const common = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      common[i * width + j] =
        a[i] === b[j]
          ? common[(i + 1) * width + j + 1]! + 1
          : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
  const lines: string[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push(`  ${a[i]}`);
      i++;
      j++;
    } else if (
      j >= b.length ||
      (i < a.length && common[(i + 1) * width + j]! >= common[i * width + j + 1]!)
    ) {
      lines.push(`- ${a[i++]}`);
    } else lines.push(`+ ${b[j++]}`);
  }
  return lines;
}
