/** The relay as a program: `relay.c`, compiled without any library around it by the build of this project. */
import { existsSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { EnvironmentError } from '../environment.ts';

/** As Docker names architectures, and as the build names its files. */
const FILES: Readonly<Record<string, string>> = { amd64: 'relay.x64', arm64: 'relay.arm64' };

/** Beside this file in an installed package; in a checkout that runs from its sources, where the build has put it. */
const FOLDERS = [import.meta.dirname, import.meta.dirname.replace(`${sep}src${sep}`, `${sep}dist${sep}`)];

export function relayProgram(architecture: string): Buffer {
  const name = FILES[architecture];
  const path = FOLDERS.map((folder) => join(folder, name ?? '')).find((file) => name && existsSync(file));
  if (path) return readFileSync(path);
  throw new EnvironmentError(
    'start_failed',
    `the relay is not built for ${architecture}: run "node scripts/buildRelay.ts" on such a machine (it needs a C compiler), then "npm run build"`,
  );
}
