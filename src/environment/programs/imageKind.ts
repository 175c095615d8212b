/** The C library that programs in an image are linked with: which files tell it, and a look into an image of Docker without starting it. */
import type Docker from 'dockerode';
import { readFault, withDaemonRetry } from '../places/dockerFault.ts';
import type { Libc } from './program.ts';

/** The loaders by architecture; a program asks for them by these paths. */
const LOADERS: Readonly<Record<string, Readonly<Record<Libc, string>>>> = {
  amd64: { glibc: '/lib64/ld-linux-x86-64.so.2', musl: '/lib/ld-musl-x86_64.so.1' },
  arm64: { glibc: '/lib/ld-linux-aarch64.so.1', musl: '/lib/ld-musl-aarch64.so.1' },
};

const ALPINE = '/etc/alpine-release';

/** What has to be looked for in an image; none where its architecture is not known. */
export const libcPaths = (architecture: string): readonly string[] => {
  const loaders = LOADERS[architecture];
  return loaders ? [loaders.glibc, loaders.musl, ALPINE] : [];
};

/**
 * `there`: those of libcPaths that the image has. It can have both loaders: Alpine with a layer for programs of others is still musl, and a
 * musl beside glibc changes nothing.
 */
export function libcAmong(there: ReadonlySet<string>, architecture: string): Libc | undefined {
  const loaders = LOADERS[architecture];
  if (!loaders) return undefined;
  const musl = there.has(loaders.musl);
  if (there.has(loaders.glibc) && !(musl && there.has(ALPINE))) return 'glibc';
  return musl ? 'musl' : undefined;
}

async function has(container: Docker.Container, path: string): Promise<boolean> {
  try {
    await withDaemonRetry(() => container.infoArchive({ path }));
    return true;
  } catch (error) {
    if (readFault(error).status === 404) return false;
    throw error;
  }
}

export async function libcOf(container: Docker.Container, architecture: string): Promise<Libc | undefined> {
  const paths = libcPaths(architecture);
  const found = await Promise.all(paths.map((path) => has(container, path)));
  return libcAmong(new Set(paths.filter((_, i) => found[i])), architecture);
}
