/** `agents add` for programs that swebatch does not know: fetched or copied once, hashed whole, with what their commands are. */

import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import {
  copyFile,
  link as hardLink,
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  realpath,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { dirname, join, posix, resolve, sep } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import tar from 'tar-stream';
import { z } from 'zod';
import type { PackageArchitecture, WantedPackage } from '../../agent/contract.ts';
import { ADDED_FOLDER, NODE, nodePackage } from '../../agent/installed/addedProgram.ts';
import { pathInside } from '../../base/files/pathInside.ts';
import { PACKAGE_LIMITS } from '../../environment/programs/packageTar.ts';
import type { Libc } from '../../environment/programs/program.ts';
import type { Caller } from '../caller.ts';
import { UserError } from '../userError.ts';
import {
  type AddedAgent,
  type AddedPackage,
  addedAgents,
  addedName,
  folderForAdding,
  hasPackage,
  keepPackage,
  saveManifest,
} from './agentCache.ts';
import type { NpmClient } from './npm.ts';
import { checkProgramName, nameOfPath, type ProgramSource } from './programSource.ts';
import { stagePypi } from './pypiProgram.ts';
import { type TellGrowth, watched } from './registryClient.ts';
import {
  BIN_NAME,
  binsOf,
  type Contained,
  executableAt,
  inContainer,
  type StagedProgram,
  writeWrapper,
} from './stagedProgram.ts';

export interface ProgramRequest {
  readonly source: ProgramSource;
  /** The source as it was typed. */
  readonly text: string;
  /** undefined: that of its first command. */
  readonly name: string | undefined;
}

interface Adding {
  readonly npm: NpmClient;
  readonly dir: string;
  readonly arch: PackageArchitecture;
  readonly architecture: AddedAgent['architecture'];
  readonly around: Pick<Caller, 'env' | 'cwd' | 'tell'> & { readonly progress?: TellGrowth };
  readonly addPackage: (one: WantedPackage & { readonly licence: string }) => Promise<AddedPackage | null>;
}

export async function addProgram(request: ProgramRequest, adding: Adding): Promise<AddedAgent> {
  const { dir, around, architecture } = adding;
  if (request.name !== undefined) checkProgramName(request.name);
  const here = await alreadyHere(request, dir);
  if (here) {
    around.tell({
      level: 'note',
      text: `${addedName(here)} is here already; "agents remove" it first to fetch it anew`,
    });
    return here;
  }
  const work = await folderForAdding(dir);
  try {
    const folder = join(work, 'program');
    await mkdir(folder);
    const staged = await stage(request, folder, work, adding);
    const name = checkProgramName(request.name ?? staged.name);
    around.tell({ level: 'info', text: `packing ${name}` });
    const file = join(work, 'program.tgz');
    const { integrity, bytes } = await packFolder(folder, file);
    const version =
      staged.version ?? `0.0.0-${Buffer.from(integrity.slice(7), 'base64').toString('hex').slice(0, 16)}`;
    const beside = await Promise.all(
      staged.beside.map((one) => adding.addPackage({ licence: staged.licence, ...one })),
    );
    if (beside.includes(null))
      throw new UserError(
        `the registry has no ${staged.beside.map((p) => `${p.name}@${p.version}`).join(', ')}`,
      );
    if (!(await hasPackage(dir, integrity))) await keepPackage(dir, integrity, file);
    const own: AddedPackage = {
      name,
      version,
      integrity,
      licence: staged.licence,
      folder: ADDED_FOLDER,
      bytes,
    };
    const agent: AddedAgent = {
      ...{ format: 1, agent: name, version, architecture, addedAt: new Date().toISOString() },
      variants: [{ libc: staged.libc, packages: [own, ...beside.filter((one) => one !== null)] }],
      program: { source: request.text, commands: [...staged.bins], contains: [...staged.contains] },
    };
    await saveManifest(dir, agent);
    return agent;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** The dependencies of a package move on: the same version fetched twice may be two programs, and runs name it by its version. */
async function alreadyHere({ text, name }: ProgramRequest, dir: string): Promise<AddedAgent | undefined> {
  if (!/^(?:npm|pypi):/.test(text)) return undefined;
  const known = addedAgents(dir).find(
    ({ agent, program }) => program?.source === text && (name === undefined || agent === name),
  );
  const packages = known?.variants.flatMap((variant) => variant.packages) ?? [];
  const there = await Promise.all(packages.map(({ integrity }) => hasPackage(dir, integrity)));
  return there.includes(false) ? undefined : known;
}

async function stage(
  { source, text }: ProgramRequest,
  folder: string,
  work: string,
  { npm, arch, architecture, around }: Adding,
): Promise<StagedProgram> {
  const { env, cwd, tell, progress } = around;
  switch (source.kind) {
    case 'npm': {
      if (!(await npm.view(source.name, source.version)))
        throw new UserError(`the registry has no ${text.slice(4)}`);
      tell({ level: 'info', text: `fetching ${text} with everything that it needs` });
      return watched(text, work, progress, stageNpm(npm, { ...source, folder, arch }));
    }
    case 'pypi':
      tell({ level: 'info', text: `fetching ${text} with everything that it needs` });
      return watched(
        ...([text, work, progress] as const),
        stagePypi({ ...source, folder, env, cwd, note: (said) => tell({ level: 'note', text: said }) }),
      );
    case 'folder':
    case 'tar': {
      const path = resolve(cwd, source.path);
      const into = join(work, 'unpacked');
      await mkdir(into);
      const from = source.kind === 'tar' ? await unpackTar(path, into) : path;
      return stageFolder(from, folder, { name: nameOfPath(source.path), architecture });
    }
  }
}

// A folder or a tar file of the user's as a program. The program's commands are the files of `bin/`, or else the executable files at its top.

/** `from` is copied into `folder`, links as what they lead to. */
async function stageFolder(
  from: string,
  folder: string,
  { name, architecture }: { readonly name: string; readonly architecture: string },
): Promise<StagedProgram> {
  const files = await filesOf(from);
  const inBin = files.some(({ path }) => path.startsWith('bin/'));
  let libc: Libc | null = null;
  for (const { path, file, executable } of files) {
    const to = join(folder, path);
    await mkdir(dirname(to), { recursive: true });
    await copyFile(file, to);
    if (!executable) continue;
    const built = await executableAt(file);
    if (built.architecture !== null && built.architecture !== architecture)
      throw new UserError(`${path} of the program is not built for ${architecture}`);
    libc ??= built.libc;
    if (!inBin && !path.includes('/') && BIN_NAME.test(path))
      await writeWrapper(folder, `bin/${path}`, [inContainer(path)]);
  }
  return {
    ...{ name, version: null, licence: 'yours to know', libc },
    ...{ bins: await binsOf(folder), contains: [], beside: [] },
  };
}

/** The folder with what a tar file holds: that at its top, where there is one only. */
async function unpackTar(file: string, into: string): Promise<string> {
  const extract = tar.extract();
  const source = createReadStream(file);
  const zipped = await isGzip(file);
  const reading = zipped ? pipeline(source, createGunzip(), extract) : pipeline(source, extract);
  const links: { name: string; to: string; hard: boolean }[] = [];
  let bytes = 0;
  let entries = 0;
  try {
    for await (const entry of extract) {
      const { name, type, linkname, size = 0, mode = 0o644 } = entry.header;
      const path = join(into, safe(name));
      bytes += size;
      entries += 1;
      if (bytes > PACKAGE_LIMITS.bytes || entries > PACKAGE_LIMITS.entries)
        throw new UserError(
          `${file} is too large: more than ${PACKAGE_LIMITS.bytes} bytes or ${PACKAGE_LIMITS.entries} entries`,
        );
      if (type === 'symlink' || type === 'link') {
        // Made when every file is there: none is written through a link (observed: tests/run/agents/addProgram.test.ts).
        links.push({ name: safe(name), to: linkname ?? '', hard: type === 'link' });
        entry.resume();
      } else if (type === 'directory') {
        await mkdir(path, { recursive: true });
        entry.resume();
      } else if (type === 'file' || type === 'contiguous-file' || type == null) {
        await mkdir(dirname(path), { recursive: true });
        await pipeline(
          entry,
          createWriteStream(path, { flags: 'wx', mode: (mode & 0o111) === 0 ? 0o644 : 0o755 }),
        );
      } else throw new UserError(`${file} holds ${JSON.stringify(name.slice(0, 200))}, which is a ${type}`);
    }
    await reading;
    for (const { name, to, hard } of links) {
      // Each is looked at anew: the folder above it may be a link that was made before it (observed: tests/run/agents/addProgram.test.ts).
      const path = pathInside(into, name);
      await mkdir(dirname(path), { recursive: true });
      await (hard ? hardLink(pathInside(into, safe(to)), path) : symlink(to, path));
    }
  } catch (error) {
    reading.catch(() => undefined);
    if (error instanceof UserError) throw error;
    throw new UserError(`${file} cannot be unpacked: ${(error as Error).message}`);
  }
  const [only, ...more] = await readdir(into, { withFileTypes: true });
  return only?.isDirectory() && only.name !== 'bin' && more.length === 0 ? join(into, only.name) : into;
}

async function isGzip(file: string): Promise<boolean> {
  const handle = await open(file, 'r').catch((error: Error) => {
    throw new UserError(`${file} cannot be read: ${error.message}`);
  });
  try {
    const { buffer } = await handle.read(Buffer.alloc(2), 0, 2, 0);
    return buffer[0] === 0x1f && buffer[1] === 0x8b;
  } finally {
    await handle.close();
  }
}

function safe(name: string): string {
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  if (posix.isAbsolute(name) || parts.includes('..') || name.includes('\0'))
    throw new UserError(
      `the tar file holds the path ${JSON.stringify(name.slice(0, 200))}, which leads out of it`,
    );
  return parts.join('/') || '.';
}

// A package of npm with all that it depends on. The package's commands become small scripts that start it with a Node beside it.

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

async function stageNpm(npm: NpmClient, { name, version, folder, arch }: NpmWanted): Promise<StagedProgram> {
  // A package.json of its own: npm would else go up to one above.
  await writeFile(join(folder, 'package.json'), '{"private":true}\n');
  await npm.install(name, version, folder);
  const modules = join(folder, 'node_modules');
  const contains = containedIn(await readFile(join(modules, '.package-lock.json'), 'utf8'));
  for (const file of ['package.json', 'package-lock.json', 'node_modules/.package-lock.json'])
    await rm(join(folder, file), { force: true });
  await removeLinks(modules);
  const own = packageSchema.parse(JSON.parse(await readFile(join(modules, name, 'package.json'), 'utf8')));
  const bins =
    typeof own.bin === 'string'
      ? { [name.split('/').at(-1)!]: own.bin }
      : (own.bin ?? (await programsIn(join(modules, name))));
  for (const [bin, path] of Object.entries(bins)) await writeBin(folder, `node_modules/${name}`, bin, path);
  return {
    ...{ name: Object.keys(bins)[0] ?? name, version, licence: own.license ?? 'not told by its package' },
    ...{ libc: 'glibc', bins: await binsOf(folder), contains, beside: [nodePackage(arch)] },
  };
}

/** The executable files of `bin/` in a package that names no command, as those of one platform do. */
async function programsIn(folder: string): Promise<Record<string, string>> {
  const files = await readdir(join(folder, 'bin'), { withFileTypes: true }).catch(() => []);
  const bins: Record<string, string> = {};
  const names = files.filter((one) => one.isFile() && BIN_NAME.test(one.name)).map(({ name }) => name);
  for (const name of names.sort())
    if (((await stat(join(folder, 'bin', name))).mode & 0o111) !== 0) bins[name] = `bin/${name}`;
  return bins;
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

// A folder as one gzipped tar: the same content gives the same bytes, whenever and by whomever it is packed. Nothing from outside of the folder
// gets in: a link is followed where it leads to something inside, and refused else.

interface FoundFile {
  /** The path from the folder, with slashes. */
  readonly path: string;
  readonly file: string;
  readonly size: number;
  readonly executable: boolean;
}

/** Every file of the folder in the order of their paths. Throws UserError where something may not be packed. */
async function filesOf(folder: string, limits = PACKAGE_LIMITS): Promise<FoundFile[]> {
  const root = await realpath(folder);
  const found: FoundFile[] = [];
  let bytes = 0;
  /** `above`: the folders that lead here, as they really are. */
  const walk = async (path: string, dir: string, above: readonly string[]): Promise<void> => {
    for (const name of (await readdir(dir)).sort()) {
      const here = path === '' ? name : `${path}/${name}`;
      const linked = (await lstat(join(dir, name))).isSymbolicLink();
      const file = linked ? await leadsTo(root, here, join(dir, name)) : join(dir, name);
      const facts = await stat(file);
      if (facts.isDirectory()) {
        if (above.includes(file)) throw refused(here, 'is a link in a circle');
        await walk(here, file, [...above, file]);
      } else if (facts.isFile()) {
        bytes += facts.size;
        found.push({ path: here, file, size: facts.size, executable: (facts.mode & 0o111) !== 0 });
        if (bytes > limits.bytes || found.length > limits.entries)
          throw new UserError(
            `the program is too large: more than ${limits.bytes} bytes or ${limits.entries} files`,
          );
      } else throw refused(here, 'is neither a file nor a folder');
    }
  };
  await walk('', root, [root]);
  return found;
}

const refused = (path: string, why: string): UserError =>
  new UserError(`the program cannot be added: ${JSON.stringify(path.slice(0, 200))} ${why}`);

async function leadsTo(root: string, path: string, link: string): Promise<string> {
  const target = await realpath(link).catch(() => null);
  if (target === null) throw refused(path, 'is a link that leads to nothing');
  if (target !== root && !target.startsWith(`${root}${sep}`))
    throw refused(path, 'is a link that leads out of it');
  return target;
}

interface Packed {
  readonly integrity: string;
  readonly bytes: number;
}

/** The files go below `package/`, as in a package of npm. */
async function packFolder(folder: string, to: string): Promise<Packed> {
  const files = await filesOf(folder);
  const pack = tar.pack();
  const write = async (): Promise<void> => {
    for (const { path, file, size, executable } of files) {
      const header = { name: `package/${path}`, size, mode: executable ? 0o755 : 0o644, mtime: new Date(0) };
      const entry = pack.entry(header);
      await pipeline(createReadStream(file), entry);
    }
    pack.finalize();
  };
  write().catch((error: Error) => pack.destroy(error));
  const hash = createHash('sha512');
  let bytes = 0;
  const counted = new Transform({
    transform(chunk: Buffer, _, done) {
      hash.update(chunk);
      bytes += chunk.length;
      done(null, chunk);
    },
  });
  await pipeline(
    Readable.from(pack),
    createGzip({ level: 1 }),
    counted,
    createWriteStream(to, { flags: 'wx' }),
  );
  return { integrity: `sha512-${hash.digest('base64')}`, bytes };
}
