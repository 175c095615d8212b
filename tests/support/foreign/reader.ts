/** One function that reads text of others. */
export interface Reader {
  readonly name: string;
  /** May throw nothing but what it says: see `refuses`. */
  readonly read: (text: string) => unknown;
  /** Pieces that mean something to it, beside those that mean something to everybody. */
  readonly words?: readonly string[];
  /** The errors that are an answer: bad input of a person, told to that person. */
  readonly refuses?: readonly (abstract new (
    ...args: never[]
  ) => Error)[];
}

/** What a reader makes of a text; undefined where it refused the text with an error of its own. Anything else it throws is a defect. */
export function heard(reader: Reader, text: string): unknown {
  try {
    return reader.read(text);
  } catch (error) {
    if (reader.refuses?.some((kind) => error instanceof kind)) return undefined;
    throw error;
  }
}

/** `{name: read}` as readers that share words. */
export const readersOf = (
  reads: Readonly<Record<string, (text: string) => unknown>>,
  more: Omit<Partial<Reader>, 'name' | 'read'> = {},
): Reader[] => Object.entries(reads).map(([name, read]) => ({ name, read, ...more }));

/** For a value inside a JSON text: an escape is several characters long, and what is measured is 5 MB of the file. */
export function jsonValue(text: string): string {
  const sample = text.slice(0, 1000);
  return text.slice(0, Math.ceil((text.length * sample.length) / JSON.stringify(sample).length));
}
