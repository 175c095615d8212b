/** Packages of PyPI, fetched once into the person's cache. */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'swebatch', 'tests');

/** The folder for PYTHONPATH, or why there is none. `installs`: what pip is told, one line after the other; default: the package with all that it needs. */
export async function fromPypi(
  name: string,
  version: string,
  installs: readonly (readonly string[])[] = [[`${name}==${version}`]],
): Promise<{ readonly folder: string } | { readonly why: string }> {
  const folder = join(CACHE, `${name}-${version}`);
  if (existsSync(folder)) return { folder };
  mkdirSync(CACHE, { recursive: true });
  const fresh = mkdtempSync(`${folder}-`);
  try {
    for (const words of installs)
      await run(
        'python3',
        [
          ...['-m', 'pip', '--disable-pip-version-check', '--quiet'],
          ...['install', '--target', fresh, ...words],
        ],
        { maxBuffer: 1 << 26 },
      );
    renameSync(fresh, folder);
    return { folder };
  } catch (error) {
    // Another test file fetched it meanwhile.
    if (existsSync(folder)) return { folder };
    const said = (error as Error).message.slice(-300);
    return { why: `${name} ${version} cannot be had from PyPI with python3 and pip: ${said}` };
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}
