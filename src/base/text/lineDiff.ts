/** A short line diff of two texts: changed lines with "-" and "+", one line of context. For prompts, which are a few hundred lines. */

const MOST_LINES = 50_000;

export function lineDiff(a: string, b: string, context = 1): string[] {
  const [left, right] = [a.split('\n'), b.split('\n')];
  if (left.length + right.length > MOST_LINES && a !== b)
    return [`- ${left.length} lines`, `+ ${right.length} lines`];
  let head = 0;
  while (head < left.length && head < right.length && left[head] === right[head]) head++;
  let tail = 0;
  while (
    tail < Math.min(left.length, right.length) - head &&
    left[left.length - 1 - tail] === right[right.length - 1 - tail]
  )
    tail++;
  const middle = align(left.slice(head, left.length - tail), right.slice(head, right.length - tail));
  const before = left.slice(Math.max(0, head - context), head).map((l) => `  ${l}`);
  const after = left.slice(left.length - tail, left.length - tail + context).map((l) => `  ${l}`);
  return middle.length === 0 ? [] : [...before, ...middle, ...after];
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
