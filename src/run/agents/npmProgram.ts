/** A package of npm with all that it depends on. Its commands become small scripts that start it with a Node beside it. */
import { readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { z } from 'zod';
import type { PackageArchitecture } from '../../agent/contract.ts';
import { NODE, nodePackage } from '../../agent/installed/addedProgram.ts';
import { UserError } from '../userError.ts';
import type { NpmClient } from './npm.ts';
import {
  BIN_NAME,
  binsOf,
  type Contained,
  executableAt,
  inContainer,
  type StagedProgram,
  writeWrapper,
} from './stagedProgram.ts';

const packageSchema = z.object({
  license: z.union([z.string(), z.object({ type: z.string() }).transform(({ type }) => type)]).optional(),
  bin: z.union([z.string(), z.record(z.string(), z.string())]).optional(),
});
const lockSchema = z.object({
  packages: z.record(
    z.string(),
    z.object({ version: z.string().optional(), integrity: z.string().optional() }),
  ),
});

interface NpmWanted {
  readonly name: string;
  readonly version: string;
  readonly folder: string;
  readonly arch: PackageArchitecture;
}

export async function stageNpm(
  npm: NpmClient,
  { name, version, folder, arch }: NpmWanted,
): Promise<StagedProgram> {
  // A package.json of its own: npm would else go up to one above.
  await writeFile(join(folder, 'package.json'), '{"private":true}\n');
  await npm.install(name, version, folder);
  const modules = join(folder, 'node_modules');
  const contains = containedIn(await readFile(join(modules, '.package-lock.json'), 'utf8'));
  for (const file of ['package.json', 'package-lock.json', 'node_modules/.package-lock.json'])
    await rm(join(folder, file), { force: true });
  await removeLinks(modules);
  const own = packageSchema.parse(JSON.parse(await readFile(join(modules, name, 'package.json'), 'utf8')));
  const bins = typeof own.bin === 'string' ? { [name.split('/').at(-1)!]: own.bin } : (own.bin ?? {});
  for (const [bin, path] of Object.entries(bins)) await writeBin(folder, `node_modules/${name}`, bin, path);
  return {
    ...{ name: Object.keys(bins)[0] ?? name, version, licence: own.license ?? 'not told by its package' },
    ...{ libc: 'glibc', bins: await binsOf(folder), contains, beside: [nodePackage(arch)] },
  };
}

async function writeBin(folder: string, home: string, bin: string, path: string): Promise<void> {
  const refused = (why: string) =>
    new UserError(
      `the package names ${JSON.stringify(`${bin}: ${path}`.slice(0, 200))} as a command, which ${why}`,
    );
  if (!BIN_NAME.test(bin)) throw refused('no shell would find');
  const root = await realpath(join(folder, home));
  const file = await realpath(join(root, path)).catch(() => null);
  if (file === null) throw refused('is not there');
  if (!file.startsWith(`${root}${sep}`)) throw refused('leads out of it');
  const target = inContainer(`${home}/${file.slice(root.length + 1)}`);
  const { kind } = await executableAt(file);
  await writeWrapper(folder, `bin/${bin}`, kind === 'node' ? [NODE, target] : [target]);
}

/** npm links the commands of dependencies into folders of this name. Programs call each other by their paths. */
async function removeLinks(modules: string): Promise<void> {
  for (const entry of await readdir(modules, { withFileTypes: true, recursive: true }))
    if (entry.name === '.bin' && entry.isDirectory())
      await rm(join(entry.parentPath, entry.name), { recursive: true, force: true });
}

const MODULES = 'node_modules/';

/** npm's own list of what it put there, in the order of the paths. */
function containedIn(lock: string): Contained[] {
  return Object.entries(lockSchema.parse(JSON.parse(lock)).packages).flatMap(
    ([path, { version, integrity }]) =>
      version === undefined
        ? []
        : [
            {
              name: path.slice(path.lastIndexOf(MODULES) + MODULES.length),
              version,
              integrity: integrity ?? null,
            },
          ],
  );
}
