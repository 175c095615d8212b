/** A reader sees the old file or the new one, never a part: temporary file beside it, fsync, rename, fsync of the folder. */
import { open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { makeFolder } from './makeFolder.ts';

let serial = 0;

/** A name in the same folder, because rename is atomic only within one file system; the pid keeps two processes apart. */
const temporaryFor = (path: string): string =>
  // A character has up to three bytes here, and a name 255.
  join(dirname(path), `.${basename(path).slice(0, 70)}.${process.pid}-${++serial}.tmp`);

/** A file that a killed process may leave in a folder. */
export const isTemporary = (name: string): boolean => /^\..*\.\d+-\d+\.tmp$/s.test(name);

export async function writeAtomically(
  path: string,
  content: string | Uint8Array | Iterable<Uint8Array>,
  mode = 0o666,
): Promise<void> {
  makeFolder(dirname(path));
  const temporary = temporaryFor(path);
  try {
    const file = await open(temporary, 'w', mode);
    try {
      await file.writeFile(content);
    } finally {
      await file.close();
    }
    await moveIntoPlace(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    // The error of an open file does not name the file; a person needs to know it.
    throw error instanceof Error ? Object.assign(error, { path }) : error;
  }
}

/** A file or folder that is complete under another name of the same folder. The content is on the disk before its name is. */
export async function moveIntoPlace(temporary: string, path: string): Promise<void> {
  const file = await open(temporary, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
  await syncFolder(dirname(path));
}

/** Syncs the folder: a power cut could undo the rename; some file systems refuse it, which loses nothing else. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r').catch(() => null);
  if (!handle) return;
  try {
    await handle.sync().catch(() => {});
  } finally {
    await handle.close();
  }
}
