/** A program on its way into the cache: a folder on this machine as containers will see it, and what is in it. */
import { mkdir, open, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { WantedPackage } from '../../agent/contract.ts';
import { ADDED_FOLDER } from '../../agent/installed/addedProgram.ts';
import { shellWord } from '../../base/text/shellWord.ts';
import { type Libc, PROGRAM_FOLDER } from '../../environment/programs/program.ts';
import { UserError } from '../userError.ts';

export interface Contained {
  readonly name: string;
  readonly version: string;
  /** The hash as its registry writes it; null where none is known. */
  readonly integrity: string | null;
}

export interface StagedProgram {
  readonly name: string;
  /** null: that of its content. */
  readonly version: string | null;
  readonly licence: string;
  /** null: the program runs on every image. */
  readonly libc: Libc | null;
  /** The commands in `bin/` of the folder. */
  readonly bins: readonly string[];
  readonly contains: readonly Contained[];
  /** Packages of npm that it needs beside it. */
  readonly beside: readonly WantedPackage[];
}

/** The place in a container of a file of the folder. */
export const inContainer = (path: string): string => `${PROGRAM_FOLDER}/${ADDED_FOLDER}/${path}`;

/** A command's name as it is typed in a shell. */
export const BIN_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** `words` are words of a shell; the arguments follow. */
export async function writeWrapper(folder: string, path: string, words: readonly string[]): Promise<void> {
  await mkdir(join(folder, path, '..'), { recursive: true });
  const line = `exec ${words.map(shellWord).join(' ')} "$@"`;
  await writeFile(join(folder, path), `#!/bin/sh\n${line}\n`, { mode: 0o755, flag: 'wx' });
}

interface Executable {
  readonly kind: 'elf' | 'node' | 'script';
  /** The libc of a program for a loader. */
  readonly libc: Libc | null;
  readonly architecture: 'amd64' | 'arm64' | 'another' | null;
}

const MACHINES: Readonly<Record<number, Executable['architecture']>> = { 62: 'amd64', 183: 'arm64' };
/** The name of the loader stands near the beginning. */
const HEAD_BYTES = 65_536;

export async function executableAt(file: string): Promise<Executable> {
  const handle = await open(file, 'r');
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
    const head = buffer.subarray(0, bytesRead);
    if (head.length < 20 || head.readUInt32BE(0) !== 0x7f454c46) {
      const first = head.toString('latin1').split('\n', 1)[0]!;
      const node = /^#!.*\bnode\b/.test(first) || (!first.startsWith('#!') && /\.[cm]?js$/.test(file));
      return { kind: node ? 'node' : 'script', libc: null, architecture: null };
    }
    const libc = head.includes('/lib/ld-musl-') ? 'musl' : head.includes('/ld-linux-') ? 'glibc' : null;
    return { kind: 'elf', libc, architecture: MACHINES[head.readUInt16LE(18)] ?? 'another' };
  } finally {
    await handle.close();
  }
}

/** The names in `bin/` of a folder. Throws UserError where one is no word to type, or there is none. */
export async function binsOf(folder: string): Promise<string[]> {
  const bins = (await readdir(join(folder, 'bin')).catch(() => [])).sort();
  const strange = bins.find((name) => !BIN_NAME.test(name));
  if (strange !== undefined)
    throw new UserError(
      `the program has a command ${JSON.stringify(strange.slice(0, 100))}, which no shell would find`,
    );
  if (bins.length === 0)
    throw new UserError('the program has no command', {
      hint: 'a folder or tar file needs an executable file, at its top or in bin/; a package needs commands of its own',
    });
  return bins;
}
