/** JSON of a column; undefined where it cannot be read. One such row must not hide all others from whoever reads the record. */
export function storedJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** The items of a stored list that are what they should be. */
export function storedList<T>(text: unknown, isItem: (item: unknown) => item is T): T[] {
  const value = typeof text === 'string' ? storedJson(text) : [];
  return Array.isArray(value) ? value.filter(isItem) : [];
}
