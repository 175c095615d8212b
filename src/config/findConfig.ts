/** Finds the file of a `-c`: the path as given, then the package's `configs/`; the ending `.yaml` may be left out. */
import { isAbsolute, join } from 'node:path';
import { PACKAGE_ROOT } from '../base/files/packageFile.ts';
import { closest } from '../base/text/closest.ts';
import { ConfigError } from './configError.ts';

/** Text of a file, or null when there is none. */
export type ReadFile = (path: string) => string | null;

export interface Found {
  readonly path: string;
  readonly text: string;
}

export const PACKAGE_CONFIGS = join(PACKAGE_ROOT, 'configs');

export const BUILT_IN_CONFIGS = [
  'default',
  'demo',
  'nightly',
  'swebench',
  'swebench-text',
  'agents',
  'demo-agents',
] as const;

export function findConfig(name: string, cwd: string, readFile: ReadFile): Found {
  const asGiven = isAbsolute(name) ? name : join(cwd, name);
  const inPackage = join(PACKAGE_CONFIGS, name);
  const spellings = (path: string) => (/\.ya?ml$/.test(path) ? [path] : [path, `${path}.yaml`]);
  const candidates = [...spellings(asGiven), ...(isAbsolute(name) ? [] : spellings(inPackage))];
  for (const path of candidates) {
    const text = readFile(path);
    if (text !== null) return { path, text };
  }
  const close = closest(name.replace(/\.ya?ml$/, ''), BUILT_IN_CONFIGS);
  throw new ConfigError([
    `there is no configuration "${name}"; ${close ? `did you mean "${close}"? Looked` : 'looked'} for ${candidates.join(', ')}. Built in are ${BUILT_IN_CONFIGS.join(', ')}`,
  ]);
}
