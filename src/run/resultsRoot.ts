/** A results root: its database, and runs by name. */
import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { makeFolder } from '../base/files/makeFolder.ts';
import { closest } from '../base/text/closest.ts';
import { errorText } from '../base/text/errorText.ts';
import { formatLimit } from '../base/text/units.ts';
import { openStore, type Store } from '../store/open.ts';
import { findRun, hasRuns, listRuns, type RunRow, shardName, shardOf } from '../store/records/runs.ts';
import { neverRoom } from './control/diskFloor.ts';
import { UserError } from './userError.ts';

export const resultsRoot = (option: string | undefined): string => resolve(option ?? 'results');

export const databasePath = (root: string): string => resolve(root, 'swebatch.db');

export const openForReading = (root: string): Store => openStore(databasePath(root), { readonly: true });

const onReadOnlyDisk = (path: string): boolean => {
  try {
    accessSync(path, constants.W_OK);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EROFS';
  }
  return false;
};

/** A record that is there: a verb that goes on with a run, or deletes one, makes none. */
export function openForWriting(root: string): Store {
  refuseUnwritable(root);
  refuseSmallDisk(root);
  return openStore(databasePath(root), { mustExist: true });
}

export function makeAndOpen(root: string): Store {
  refuseUnwritable(root);
  refuseSmallDisk(root);
  try {
    makeFolder(root);
  } catch (error) {
    throw unusable(root, error);
  }
  return openStore(databasePath(root));
}

const REASONS: Readonly<Record<string, string>> = {
  EROFS: 'the file system is read-only',
  EACCES: 'you may not write there',
  EPERM: 'you may not write there',
  ENOENT: 'no folder can be made there',
  ENAMETOOLONG: 'the path is too long',
  ELOOP: 'it leads through links in a circle',
};

function unusable(root: string, error: unknown): UserError {
  const { code = '' } = error as NodeJS.ErrnoException;
  return new UserError(`results cannot be kept in ${root}: ${REASONS[code] ?? errorText(error)}`, {
    next: { do: 'name_results' },
  });
}

/** f_type of proc, sysfs and cgroup: root may write there, and no folder of ours can be made. */
const OF_THE_KERNEL: ReadonlySet<number> = new Set([0x9fa0, 0x62656572, 0x63677270]);

const statOf = (path: string) => statSync(path, { throwIfNoEntry: false });

/** Itself, or what is there of the folders above it. */
const nearest = (path: string): string =>
  statOf(path) || dirname(path) === path ? path : nearest(dirname(path));

/** Makes nothing, and refuses a folder that a run would refuse. A record that is there has errors of its own. */
export function refuseUnwritable(root: string): void {
  if (existsSync(databasePath(root))) {
    if (onReadOnlyDisk(databasePath(root))) throw unusable(root, { code: 'EROFS' });
    return;
  }
  try {
    const path = nearest(root);
    if (!statOf(path)!.isDirectory())
      throw new UserError(`results cannot be kept in ${root}: ${path} is a file`, {
        next: { do: 'name_results' },
      });
    accessSync(path, constants.W_OK | constants.X_OK);
    if (OF_THE_KERNEL.has(statfsSync(path).type)) throw Object.assign(new Error(), { code: 'ENOENT' });
  } catch (error) {
    throw error instanceof UserError ? error : unusable(root, error);
  }
}

/** Less than the smallest record takes, with the log of its writes. */
const LEAST_DISK = 8 * 2 ** 20;
const LEAST_FREE = 2 ** 18;

/** On a disk of 3 MB a run waited for ever until there was room. `floorBytes`: what it keeps free (run.disk_floor). */
export function refuseSmallDisk(root: string, floorBytes = 0): void {
  const path = nearest(root);
  const { blocks, bavail, bsize } = statfsSync(path);
  const [all, free] = [blocks * bsize, bavail * bsize];
  const refuse = (why: string): never => {
    throw new UserError(`results cannot be kept in ${root}: ${why}`, { next: { do: 'name_results' } });
  };
  // Some file systems say no size.
  if (all === 0) return;
  if (all < LEAST_DISK) refuse(`its disk has ${formatLimit(all)} in all, and a record needs more`);
  const never = neverRoom(path, floorBytes);
  if (never !== undefined) refuse(`its ${never}`);
  if (free < LEAST_FREE) refuse(`its disk is full (${formatLimit(free)} free): make room there`);
  if (free < floorBytes)
    refuse(
      `its disk has ${formatLimit(free)} free, and run.disk_floor keeps ${formatLimit(floorBytes)}: make room there, or lower run.disk_floor`,
    );
}

/** Whether a run of this name has begun there. */
export const hasBegun = (root: string, name: string): boolean => existsSync(join(root, name));

/** The files of a run lie in a folder of its name, beside the record: a folder `swebatch.db-journal` would make the record unreadable. */
export function refuseRunName(name: string): void {
  if (/^swebatch\.db/i.test(name))
    throw new UserError(`a run cannot be named ${name}: so begin the names of the files of the record`, {
      next: { do: 'choose_name' },
    });
}

/** A shard is judged, published and compared with other nights as a part of its whole. `what` could not be done with it. */
export function refuseShard(run: Pick<RunRow, 'name' | 'manifest'>, what: string): void {
  const shard = shardOf(run);
  if (shard)
    throw new UserError(`${run.name} is shard ${shardName(shard)} of a run, and ${what}`, {
      next: { do: 'join_shards' },
    });
}

/** Opened for reading when it is first asked for: comparing files needs no database. */
export function lazyStore(root: string): Disposable & { get(): Store } {
  let store: Store | undefined;
  return {
    get: () => (store ??= openForReading(root)),
    [Symbol.dispose]: () => store?.close(),
  };
}

/** A run by name, unique prefix or "last". */
export function requireRun(store: Store, selector: string): RunRow {
  const found = findRun(store, selector);
  if ('id' in found) return found;
  if (found.candidates.length > 0)
    throw new UserError(`"${selector}" names several runs: ${found.candidates.join(', ')}`);
  if (!hasRuns(store))
    throw new UserError(`${dirname(store.name)} holds no runs yet`, {
      next: { do: 'start_run' },
    });
  const close = closest(selector, ['last', ...listRuns(store).map(({ name }) => name)]);
  throw new UserError(`there is no run "${selector}"${close ? `; did you mean "${close}"?` : ''}`, {
    next: { do: 'list_runs', results: dirname(store.name) },
  });
}
