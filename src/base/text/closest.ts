/** Nothing known is so long that this could be a slip of it. */
const LONGEST = 200;

/** The known name that a misspelt one most likely means, or null. */
export function closest(name: string, known: Iterable<string>): string | null {
  if (name.length > LONGEST) return null;
  let best: string | null = null;
  // Two changes make anything of a name of three letters.
  let least = Math.max(name.length < 5 ? 1 : 2, Math.floor(name.length / 3)) + 1;
  for (const candidate of known) {
    const changes = distance(name, candidate);
    if (changes < least && changes < name.length) [best, least] = [candidate, changes];
  }
  return best;
}

/** "; did you mean X?" behind a sentence about a name that is not known; '' where none is near. */
export function nearest(name: string, known: Iterable<string>): string {
  const close = closest(name, known);
  return close === null ? '' : `; did you mean ${close}?`;
}

/** Damerau-Levenshtein over neighbours: one insertion, deletion, change or swap each. */
function distance(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const before = rows[i - 1] as number[];
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      let cost = Math.min(
        (before[j] as number) + 1,
        (row[j - 1] as number) + 1,
        (before[j - 1] as number) + same,
      );
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        cost = Math.min(cost, ((rows[i - 2] as number[])[j - 2] as number) + 1);
      row.push(cost);
    }
    rows.push(row);
  }
  return (rows[a.length] as number[])[b.length] as number;
}
