/** Programs of ours that run in containers of ours: C of this project, compiled without any library around it by its build. */
import { existsSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { EnvironmentError } from './environment.ts';

/** As Docker names architectures, and as the build names its files. */
const SUFFIXES: Readonly<Record<string, string>> = { amd64: 'x64', arm64: 'arm64' };

/** Beside this file in an installed package; in a checkout that runs from its sources, where the build has put it. */
const FOLDERS = [import.meta.dirname, import.meta.dirname.replace(`${sep}src${sep}`, `${sep}dist${sep}`)];

/** The file that has a program: it does what the name says under which it is started. */
const FILES = { blocks: 'watch', relay: 'relay', watch: 'watch' } as const;

/** Each file is in a folder of its name, beside its source. */
export function ownProgram(name: keyof typeof FILES, architecture: string): Buffer {
  const suffix = SUFFIXES[architecture];
  const file = FILES[name];
  const path = FOLDERS.map((folder) => join(folder, file, `${file}.${suffix}`)).find(
    (one) => suffix && existsSync(one),
  );
  if (path) return readFileSync(path);
  throw new EnvironmentError(
    'start_failed',
    `the program "${name}" is not built for ${architecture}: run "node scripts/buildPrograms.ts" on such a machine (it needs a C compiler), then "npm run build"`,
  );
}
