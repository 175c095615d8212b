/** A list without what a condition left out: `compact([always, broken > 0 && warning])`. */
export const compact = <T>(items: readonly (T | false | null | undefined)[]): T[] =>
  items.filter((item): item is T => item !== false && item !== null && item !== undefined);
