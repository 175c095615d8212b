/**
 * Datasets that were added by name: where each is, and the hash that it had. A name stands for the same tasks for ever: a dataset whose files
 * have changed is refused until it is added again.
 */
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { writeAtomically } from '../../base/files/atomicWrite.ts';
import { DATASET_ALIASES, type HubEnv } from './locate.ts';

const addedSchema = z.object({
  /** A folder, a file, a hub id or the address of a repository, as it was given. */
  source: z.string(),
  /** The value that `--subset` would take in its place. */
  path: z.string(),
  split: z.string().nullable(),
  revision: z.string().nullable(),
  fileHash: z.string(),
  /** Names of images in the place of those that rows name, as imageNames.ts reads them. */
  images: z.string().optional(),
  addedAt: z.string(),
});
type AddedDataset = z.infer<typeof addedSchema>;
const registrySchema = z.record(z.string(), addedSchema);

/** A folder beside the cache of installed agents. */
export const addedFolder = (env: HubEnv): string =>
  join(env.XDG_CACHE_HOME || join(env.HOME || homedir(), '.cache'), 'swebatch', 'datasets');
const registryPath = (env: HubEnv): string => join(addedFolder(env), 'added.json');

/** Added datasets by name. A file that cannot be read is an error with its place: a name must not be forgotten in silence. */
export function addedDatasets(env: HubEnv): Readonly<Record<string, AddedDataset>> {
  const path = registryPath(env);
  if (!existsSync(path)) return {};
  try {
    return registrySchema.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch {
    throw new Error(`${path} is no list of added datasets; remove it and add them again`);
  }
}

export function addedDataset(alias: string, env: HubEnv | undefined): AddedDataset | undefined {
  if (env === undefined || !(NAME.test(alias) || ADDRESS.test(alias))) return undefined;
  const all = addedDatasets(env);
  return Object.hasOwn(all, alias) ? all[alias] : undefined;
}

/** The address of tasks that were fetched: run/namedTasks.ts. */
const ADDRESS = /^[a-z][a-z0-9+-]*:/;
const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/;

/** The reason why a dataset cannot be added under a name; null when it can. */
export function nameProblem(alias: string): string | null {
  if (!NAME.test(alias)) return 'is not 1 to 100 of A-Z a-z 0-9 _ . -';
  return (DATASET_ALIASES as readonly string[]).includes(alias) ? 'is the name of a known dataset' : null;
}

export async function rememberDataset(alias: string, added: AddedDataset, env: HubEnv): Promise<void> {
  const all = { ...addedDatasets(env), [alias]: added };
  await writeAtomically(registryPath(env), `${JSON.stringify(all, null, 2)}\n`);
}
