/**
 * Copies a database while it is in use, in case the disk damages the original. A new copy replaces the one before, once it is complete.
 */

import { existsSync, readdirSync, rmSync, statfsSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import Database from 'better-sqlite3';
import { moveIntoPlace } from '../base/files/atomicWrite.ts';

const PART = '.part';

const copiesOf = (path: string): string[] => {
  const folder = dirname(path);
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.startsWith(`${basename(path)}.backup-`))
    .sort()
    .map((name) => join(folder, name));
};
const backupsOf = (path: string): string[] => copiesOf(path).filter((copy) => !copy.endsWith(PART));

/** Names begin with the time, so the last is the newest. */
export const newestBackup = (path: string): string | undefined => backupsOf(path).at(-1);

/** A partial copy this old is from a killed process. */
const ABANDONED_MS = 10 * 60_000;

function removeAbandoned(path: string): void {
  for (const part of copiesOf(path).filter((copy) => copy.endsWith(PART))) {
    const written = statSync(part, { throwIfNoEntry: false })?.mtimeMs ?? 0;
    if (Date.now() - written > ABANDONED_MS) rmSync(part, { force: true });
  }
}

/** `quick_check` of the copy failed: the original is damaged, so the earlier copy is kept. */
export class DamagedCopy extends Error {
  override readonly name = 'DamagedCopy';
}

/**
 * Returns the path of the copy, or undefined when the disk has no room for one. `at` is a time in ISO form. Rejects with DamagedCopy,
 * leaving the copy before it, when what was copied is damaged.
 */
export async function backUp(path: string, at: string): Promise<string | undefined> {
  removeAbandoned(path);
  const { bavail, bsize } = statfsSync(dirname(path));
  const size = statSync(path).size + (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0);
  if (bavail * bsize < 2 * size) return undefined;
  const earlier = backupsOf(path);
  const target = `${path}.backup-${at.replaceAll(/[:.]/g, '-')}`;
  const part = `${target}${PART}`;
  try {
    const found = await (size < SMALL_BYTES
      ? copyAndCheck(Database, path, part)
      : copiedInThread(path, part));
    if (found !== 'ok') throw new DamagedCopy(`${path} is damaged (${found})`);
    await moveIntoPlace(part, target);
  } catch (error) {
    rmSync(part, { force: true });
    throw error;
  }
  for (const old of earlier) if (old !== target) rmSync(old, { force: true });
  return target;
}

/** A thread costs more than to copy so much. */
const SMALL_BYTES = 4 * 2 ** 20;

/** A copy of one moment: in one step, while others write to the log. A thread is given its text, so it uses nothing but what it is given. */
async function copyAndCheck(driver: typeof Database, path: string, part: string): Promise<string> {
  const source = new driver(path, { readonly: true });
  try {
    await source.backup(part, { progress: () => 2 ** 31 - 1 });
  } finally {
    source.close();
  }
  const copy = new driver(part, { fileMustExist: true });
  try {
    return String(copy.pragma('quick_check(1)', { simple: true }));
  } catch (error) {
    return String((error as { code?: unknown }).code);
  } finally {
    copy.close();
  }
}

const THREAD = `
const { parentPort, workerData: { driver, path, part } } = require('node:worker_threads');
(${copyAndCheck})(require(driver), path, part).then((found) => parentPort.postMessage(found));
`;

/** Because the copy is synced and all of it read, and neither must block a run. */
function copiedInThread(path: string, part: string): Promise<string> {
  const driver = createRequire(import.meta.url).resolve('better-sqlite3');
  const worker = new Worker(THREAD, { eval: true, workerData: { driver, path, part } });
  return new Promise((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
  });
}
