/**
 * A folder as one gzipped tar: the same content gives the same bytes, whenever and by whomever it is packed. Nothing from outside of the
 * folder gets in: a link is followed where it leads to something inside, and refused else.
 */
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { lstat, readdir, realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import tar from 'tar-stream';
import { PACKAGE_LIMITS } from '../../environment/programs/packageTar.ts';
import { UserError } from '../userError.ts';

interface FoundFile {
  /** From the folder, with slashes. */
  readonly path: string;
  readonly file: string;
  readonly size: number;
  readonly executable: boolean;
}

/** Every file of the folder in the order of their paths. Throws UserError where something may not be packed. */
export async function filesOf(folder: string, limits = PACKAGE_LIMITS): Promise<FoundFile[]> {
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
export async function packFolder(folder: string, to: string): Promise<Packed> {
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
