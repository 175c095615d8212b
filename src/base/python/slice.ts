/**
 * Python's slice of a list, written as text: what `--slice` means in mini-swe-agent. The text is split at ":", an empty part is None, and
 * the parts go to `slice(...)`; so a lone number is the stop (`5` = the first five).
 */

export type SliceSpec = {
  readonly start: number | null;
  readonly stop: number | null;
  readonly step: number;
};

/** As `int()` reads it: surrounding space, a sign, single underscores between digits. */
const PYTHON_INT = /^\s*[+-]?\d+(?:_\d+)*\s*$/;

export type ParsedSlice = { ok: true; slice: SliceSpec } | { ok: false; message: string };

export function parseSlice(text: string): ParsedSlice {
  const parts = text.split(':');
  const wrong = (why: string): ParsedSlice => ({
    ok: false,
    message: `--slice "${text}" ${why}; write start:stop or start:stop:step, for example 0:5, :10, -5: or ::2`,
  });
  if (parts.length > 3) return wrong('has more than three parts');
  const numbers: (number | null)[] = [];
  for (const part of parts) {
    if (part !== '' && !PYTHON_INT.test(part)) return wrong(`has "${part}" where a whole number belongs`);
    numbers.push(part === '' ? null : Number(part.replaceAll('_', '')));
  }
  const [first = null, second = null, step = null] = numbers;
  if (step === 0) return wrong('has step 0');
  const [start, stop] = numbers.length === 1 ? [null, first] : [first, second];
  return { ok: true, slice: { start, stop, step: step ?? 1 } };
}

/** `items[start:stop:step]`, by the rules of CPython's `slice.indices`. */
export function applySlice<T>(items: readonly T[], { start, stop, step }: SliceSpec): T[] {
  const length = items.length;
  const lowest = step < 0 ? -1 : 0;
  const highest = step < 0 ? length - 1 : length;
  const bound = (value: number | null, whenAbsent: number): number => {
    if (value === null) return whenAbsent;
    const counted = value < 0 ? value + length : value;
    return Math.min(Math.max(counted, lowest), highest);
  };
  const from = bound(start, step < 0 ? highest : lowest);
  const to = bound(stop, step < 0 ? lowest : highest);
  const picked: T[] = [];
  for (let i = from; step < 0 ? i > to : i < to; i += step) picked.push(items[i]!);
  return picked;
}
