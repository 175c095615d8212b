/** Looks into an image, without starting anything, for the C library that programs in it are linked with. */
import type Docker from 'dockerode';
import { readFault, withDaemonRetry } from '../engines/dockerFault.ts';
import type { Libc } from './program.ts';

/** The loaders by architecture; a program asks for them by these paths. */
const LOADERS: Readonly<Record<string, Readonly<Record<Libc, string>>>> = {
  amd64: { glibc: '/lib64/ld-linux-x86-64.so.2', musl: '/lib/ld-musl-x86_64.so.1' },
  arm64: { glibc: '/lib/ld-linux-aarch64.so.1', musl: '/lib/ld-musl-aarch64.so.1' },
};

async function has(container: Docker.Container, path: string): Promise<boolean> {
  try {
    await withDaemonRetry(() => container.infoArchive({ path }));
    return true;
  } catch (error) {
    if (readFault(error).status === 404) return false;
    throw error;
  }
}

/** An image can have both: Alpine with a layer for programs of others is still musl, and a musl beside glibc changes nothing. */
export async function libcOf(container: Docker.Container, architecture: string): Promise<Libc | undefined> {
  const loaders = LOADERS[architecture];
  if (!loaders) return undefined;
  const [glibc, musl, alpine] = await Promise.all([
    has(container, loaders.glibc),
    has(container, loaders.musl),
    has(container, '/etc/alpine-release'),
  ]);
  if (glibc && !(musl && alpine)) return 'glibc';
  return musl ? 'musl' : undefined;
}
