/** JSON of a column; undefined where it cannot be read. One such row must not hide all others from whoever reads the record. */
export function storedJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
