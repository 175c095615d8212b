/** Writes a file so that a reader sees the old one or the new one, never a part: temporary file beside it, fsync, rename. */
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

let serial = 0;

export async function writeAtomically(
  path: string,
  content: string | Uint8Array | Iterable<Uint8Array>,
): Promise<void> {
  const folder = dirname(path);
  await mkdir(folder, { recursive: true });
  // In the same folder, because rename is atomic only within one file system; the pid keeps two processes apart.
  const temporary = join(folder, `.${basename(path).slice(0, 100)}.${process.pid}-${++serial}.tmp`);
  try {
    const file = await open(temporary, 'w');
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    // What fails on an open file does not say which; a person needs to know.
    throw error instanceof Error ? Object.assign(error, { path }) : error;
  }
  await syncFolder(folder);
}

/** Without it a power cut can undo the rename; some file systems refuse to sync a folder, which loses nothing else. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r').catch(() => null);
  if (!handle) return;
  try {
    await handle.sync().catch(() => {});
  } finally {
    await handle.close();
  }
}
