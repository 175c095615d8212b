/** `mkdir -p`. Node's own never returns where the kernel takes no names, as in /proc: it asks for the same folder again for ever. */
import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

const isThere = (path: string): boolean => statSync(path, { throwIfNoEntry: false }) !== undefined;

/** Leaves a folder that is there as it is. Fails with the error of the first folder that cannot be made. */
export function makeFolder(path: string): void {
  const missing: string[] = [];
  for (let at = path; !isThere(at) && dirname(at) !== at; at = dirname(at)) missing.push(at);
  for (const folder of missing.reverse()) {
    try {
      mkdirSync(folder);
    } catch (error) {
      // Another process was faster.
      if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) throw error;
    }
  }
}
