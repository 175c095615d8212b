/**
 * A program that containers see read-only, for example an installed agent. Programs were fetched before; nothing is downloaded here.
 */

import type Docker from 'dockerode';
import { readFault, withDaemonRetry } from '../places/dockerFault.ts';

export type Libc = 'glibc' | 'musl';

/** One package as its registry gave it: a gzipped tar on this machine. */
export interface ProgramPackage {
  readonly file: string;
  /** `sha512-…`, base64: what the registry said of it. */
  readonly integrity: string;
  /** Folder of the program that its files go to. */
  readonly folder: string;
}

export interface ProgramVariant {
  /** null: it brings all that it needs, and runs on every image. */
  readonly libc: Libc | null;
  readonly packages: readonly ProgramPackage[];
}

export interface Program {
  /** For people and for the name of the volume, for example agent@1.2.3. */
  readonly name: string;
  /** As Docker calls it: amd64, arm64. */
  readonly architecture: string;
  readonly variants: readonly ProgramVariant[];
}

/** Where a container finds the program. */
export const PROGRAM_FOLDER = '/opt/swebatch-program';

/** The facts of an image that a program cares for. */
interface ImageKind {
  readonly architecture: string;
  /** undefined: it has neither loader; only a static program runs. */
  readonly libc: Libc | undefined;
}

type VariantChoice =
  | { readonly ok: true; readonly variant: ProgramVariant }
  | { readonly ok: false; readonly message: string };

export function chooseVariant({ name, architecture, variants }: Program, image: ImageKind): VariantChoice {
  if (image.architecture !== '' && image.architecture !== architecture)
    return {
      ok: false,
      message: `${name} was added for ${architecture}, and the image is for ${image.architecture}`,
    };
  const variant = variants.find(({ libc }) => libc === null || libc === image.libc);
  if (variant) return { ok: true, variant };
  const has = variants.map(({ libc }) => libc).join(', ') || 'no C library';
  return {
    ok: false,
    message: `${name} is there for ${has}, and the image has ${image.libc ?? 'neither glibc nor musl'}`,
  };
}

/** The loaders by architecture; a program asks for them by these paths. */
const LOADERS: Readonly<Record<string, Readonly<Record<Libc, string>>>> = {
  amd64: { glibc: '/lib64/ld-linux-x86-64.so.2', musl: '/lib/ld-musl-x86_64.so.1' },
  arm64: { glibc: '/lib/ld-linux-aarch64.so.1', musl: '/lib/ld-musl-aarch64.so.1' },
};

const ALPINE = '/etc/alpine-release';

/** Paths to look for in an image; none where its architecture is not known. */
export const libcPaths = (architecture: string): readonly string[] => {
  const loaders = LOADERS[architecture];
  return loaders ? [loaders.glibc, loaders.musl, ALPINE] : [];
};

/**
 * `there`: those of libcPaths that the image has. An image can have both loaders: Alpine with a layer for programs of others is still musl, and a
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
