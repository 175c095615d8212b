/**
 * An observation shows what its command printed, or the beginning and the end of it. The record has these bytes once, in `commands`: what lies
 * in `messages` is JSON of the observation's parts, each a text or a place in the output. Plain SQL puts them together in message_texts.
 */

type Part = string | readonly [from: number, bytes: number];

/** A text that shows less of its output than that is stored as it is. */
const LEAST_BYTES = 1024;
/** So many bytes are looked for: they hardly stand in a template. */
const MARK_BYTES = 64;

/** The parts of a text, or undefined where it repeats too little of the output, or would not come back as it was. */
export function inOutputParts(text: string, output: Buffer): string | undefined {
  if (text.length < LEAST_BYTES || output.length < LEAST_BYTES) return undefined;
  const bytes = Buffer.from(text);
  const head = beginning(bytes, output);
  const tail = ending(bytes, output, head);
  const shown = [head, tail].filter(({ length }) => length > 0);
  if (head.length + tail.length < LEAST_BYTES) return undefined;
  const parts: Part[] = [];
  let done = 0;
  for (const { at, from, length } of shown) {
    parts.push(bytes.toString('utf8', done, at), [from, length]);
    done = at + length;
  }
  parts.push(bytes.toString('utf8', done));
  return joined(parts, output) === text ? JSON.stringify(parts) : undefined;
}

/** A text that is no list of parts is shown as it lies there: one such row must not hide all others. */
export function fromParts(parts: string, output: Buffer): string {
  try {
    return joined(JSON.parse(parts) as Part[], output);
  } catch {
    return parts;
  }
}

const joined = (parts: readonly Part[], output: Buffer): string =>
  parts
    .map((part) => (typeof part === 'string' ? part : output.toString('utf8', part[0], part[0] + part[1])))
    .join('');

/** A place where the text has bytes of the output: `at` in the text, `from` in the output. */
interface Shown {
  readonly at: number;
  readonly from: number;
  readonly length: number;
}

const within = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

function beginning(text: Buffer, output: Buffer): Shown {
  const at = text.indexOf(output.subarray(0, MARK_BYTES));
  if (at < 0) return { at: 0, from: 0, length: 0 };
  let length = 0;
  while (length < output.length && text[at + length] === output[length]) length++;
  // Not in the middle of a character.
  while (length > 0 && (within(text[at + length]) || within(output[length]))) length--;
  return { at, from: 0, length };
}

function ending(text: Buffer, output: Buffer, head: Shown): Shown {
  const mark = output.subarray(-MARK_BYTES);
  const found = text.lastIndexOf(mark);
  let at = found + mark.length;
  let from = output.length;
  if (found < head.at + head.length) return { at, from, length: 0 };
  const end = at;
  while (at > head.at + head.length && from > head.length && text[at - 1] === output[from - 1]) {
    at--;
    from--;
  }
  while (at < end && within(text[at])) {
    at++;
    from++;
  }
  return { at, from, length: end - at };
}
