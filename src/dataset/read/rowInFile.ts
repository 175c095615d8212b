/** Rows of a large dataset stay in its file: a plan needs their names, and only a run reads them again, one at a time. */
import { closeSync, openSync, readSync } from 'node:fs';
import { DatasetChangedError } from '../datasetChanged.ts';
import type { Instance, InstanceHead } from '../instance.ts';
import { type RawEntry, rowOfLine } from './readRows.ts';
import { type NormalisedRow, rowHashOf } from './row.ts';

interface Place {
  readonly path: string;
  readonly start: number;
  readonly length: number;
}

/** The part of a file, in pieces of four megabytes. `seen` gets each of them. */
export function* piecesOf(path: string, seen: (piece: Uint8Array) => void): Generator<Uint8Array> {
  const file = openSync(path, 'r');
  try {
    for (;;) {
      const piece = Buffer.allocUnsafeSlow(4 * 2 ** 20);
      const length = readSync(file, piece);
      if (length === 0) return;
      seen(piece.subarray(0, length));
      yield piece.subarray(0, length);
    }
  } finally {
    closeSync(file);
  }
}

function bytesAt({ path, start, length }: Place): Uint8Array {
  const file = openSync(path, 'r');
  try {
    const bytes = Buffer.alloc(length);
    return bytes.subarray(0, readSync(file, bytes, 0, length, start));
  } finally {
    closeSync(file);
  }
}

/** How rows of a dataset become instances. */
export interface RowReading {
  normalise(row: unknown): NormalisedRow;
  /** Gives an instance the image that was asked for its whole dataset, where one was. */
  withImage(instance: Instance): Instance;
}

/** Throws when the file has changed since it was read first. */
function readAgain(place: Place, rowHash: string, reading: RowReading): Instance {
  try {
    const row = reading.normalise(rowOfLine(bytesAt(place)));
    if (row.ok && rowHashOf(row.instance) === rowHash) return reading.withImage(row.instance);
  } catch {
    // Said below.
  }
  throw new DatasetChangedError(place.path);
}

export interface RowInFile {
  readonly head: InstanceHead;
  readonly rowHash: string;
  readonly line: number;
  readonly instance: Instance;
}

/** `instance` is of the prototype: rows of one file share it, and a copy of a row does not read it. */
const rowsIn = (path: string, reading: RowReading) => ({
  get instance(): Instance {
    const row = this as unknown as RowInFile & Omit<Place, 'path'>;
    return readAgain({ path, start: row.start, length: row.length }, row.rowHash, reading);
  },
});

/** Keeps of each row only its head. Texts that many rows share are kept once. */
export function leaveInFile(
  path: string,
  reading: RowReading,
): (entry: RawEntry, instance: Instance, rowHash: string) => RowInFile {
  const file = rowsIn(path, reading);
  const texts = new Map<string, string>();
  const once = (text: string) => {
    const known = texts.get(text);
    if (known === undefined) texts.set(text, text);
    return known ?? text;
  };
  return ({ line, start, length }, instance, rowHash) => {
    const { instance_id, image } = instance;
    const head = {
      instance_id,
      repo: once(instance.repo),
      difficulty: once(instance.difficulty),
      ...(image !== undefined && { image }),
    };
    const row = { __proto__: file, head, rowHash, line, start: start!, length: length! };
    return row as typeof row & Pick<RowInFile, 'instance'>;
  };
}
