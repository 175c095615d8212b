/** A folder or a tar file of the user's as a program. Its commands are the files of its `bin/`, or else the executable files at its top. */
import { createReadStream, createWriteStream } from 'node:fs';
import { copyFile, link as hardLink, mkdir, open, readdir, symlink } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import tar from 'tar-stream';
import { pathInside } from '../../base/files/pathInside.ts';
import { PACKAGE_LIMITS } from '../../environment/programs/packageTar.ts';
import type { Libc } from '../../environment/programs/program.ts';
import { UserError } from '../userError.ts';
import { filesOf } from './packFolder.ts';
import {
  BIN_NAME,
  binsOf,
  executableAt,
  inContainer,
  type StagedProgram,
  writeWrapper,
} from './stagedProgram.ts';

/** `from` is copied into `folder`, links as what they lead to. */
export async function stageFolder(
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
export async function unpackTar(file: string, into: string): Promise<string> {
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
        // Made when every file is there: none is written through a link.
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
      // Each is looked at anew: the folder above it may be a link that was made before it.
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
