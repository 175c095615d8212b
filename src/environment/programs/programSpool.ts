/**
 * A program as one gzipped archive of a known length, for streams that do not end by themselves. This process makes it once of the packages,
 * in a file without a name: it is gone with the process, however that ends.
 */
import { randomUUID } from 'node:crypto';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { programTar } from './packageTar.ts';
import type { ProgramVariant } from './program.ts';

export interface SpooledProgram {
  readonly bytes: number;
  read(): AsyncIterable<Buffer>;
}

export interface ProgramSpools {
  /** Rejects with UnsafePackageError where a package cannot be trusted. */
  ensure(variant: ProgramVariant): Promise<SpooledProgram>;
  /** Nobody reads any more. */
  close(): Promise<void>;
}

const CHUNK = 262_144;

export function createProgramSpools(): ProgramSpools {
  const made = new Map<ProgramVariant, Promise<{ file: FileHandle; bytes: number }>>();
  return {
    async ensure(variant) {
      const making = made.get(variant) ?? spool(variant);
      made.set(variant, making);
      // What went wrong once may go well in the next attempt.
      making.catch(() => made.delete(variant));
      const { file, bytes } = await making;
      return { bytes, read: () => chunksOf(file, bytes) };
    },
    async close() {
      const spooled = await Promise.allSettled(made.values());
      made.clear();
      for (const one of spooled) if (one.status === 'fulfilled') await one.value.file.close();
    },
  };
}

async function spool({ packages }: ProgramVariant): Promise<{ file: FileHandle; bytes: number }> {
  const path = join(tmpdir(), `swebatch-program-${randomUUID()}`);
  const file = await open(path, 'wx+', 0o600);
  try {
    await unlink(path);
    // Made once and sent often, and the fastest level is nearly as small as the packages.
    const zipped = createGzip({ level: 1 });
    await pipeline(Readable.from(programTar(packages)), zipped, async (parts: AsyncIterable<Buffer>) => {
      for await (const part of parts) await file.appendFile(part);
    });
    return { file, bytes: (await file.stat()).size };
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Several read at a time, each from the beginning. */
async function* chunksOf(file: FileHandle, bytes: number): AsyncIterable<Buffer> {
  for (let at = 0; at < bytes; ) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(CHUNK), 0, CHUNK, at);
    if (bytesRead === 0) throw new Error('the unpacked program was cut short');
    yield buffer.subarray(0, bytesRead);
    at += bytesRead;
  }
}
