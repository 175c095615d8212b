/**
 * Copies of a database beside it, taken while it is in use: what is left when the disk damages the original. The newest replaces
 * the one before it, once it is whole.
 */
import { existsSync, readdirSync, renameSync, rmSync, statfsSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type Database from 'better-sqlite3';

const backupsOf = (path: string): string[] => {
  const folder = dirname(path);
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.startsWith(`${basename(path)}.backup-`) && !name.endsWith('.part'))
    .sort()
    .map((name) => join(folder, name));
};

/** Names begin with the time, so the last is the newest. */
export const newestBackup = (path: string): string | undefined => backupsOf(path).at(-1);

/** Pages between two looks at other work: some milliseconds each. */
const PAGES_A_TURN = 200;

/** Returns the path of the copy, or undefined when the disk has no room for one. `at` is a time in ISO form. */
export async function backUp(db: Database.Database, at: string): Promise<string | undefined> {
  const path = db.name;
  const { bavail, bsize } = statfsSync(dirname(path));
  const size = statSync(path).size + (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0);
  if (bavail * bsize < 2 * size) return undefined;
  const earlier = backupsOf(path);
  const target = `${path}.backup-${at.replaceAll(/[:.]/g, '-')}`;
  const part = `${target}.part`;
  try {
    await db.backup(part, { progress: () => PAGES_A_TURN });
    renameSync(part, target);
  } catch (error) {
    rmSync(part, { force: true });
    throw error;
  }
  for (const old of earlier) if (old !== target) rmSync(old, { force: true });
  return target;
}
