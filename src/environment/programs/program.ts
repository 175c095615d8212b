/**
 * A program that containers see read-only, for example an installed agent. It was fetched before; nothing is downloaded here.
 */

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

/** What an image is, as far as a program cares. */
export interface ImageKind {
  readonly architecture: string;
  /** undefined: it has neither loader; only a static program runs. */
  readonly libc: Libc | undefined;
}

export type VariantChoice =
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
