/** Loads a module that a configuration names: an agent, a model, an environment or a log parser of the user's. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

export type UserModule = Readonly<Record<string, unknown>>;

/** Where a built-in name may stand too: is this a path? */
export const isModulePath = (name: string): boolean => /[\\/]|\.[cm]?[jt]s$/.test(name);

/** Throws a sentence for the person who named the module; `key` is where it is named. */
export async function importUserModule(key: string, path: string, baseDir: string): Promise<UserModule> {
  const file = resolve(baseDir, path);
  try {
    if (!existsSync(file)) throw new Error('there is no such file');
    return (await import(pathToFileURL(file).href)) as UserModule;
  } catch (error) {
    throw new Error(`${key}: ${path} cannot be loaded: ${(error as Error).message}`, { cause: error });
  }
}
