// Archives from the engine: whole, or an error; never a wait without end.
import { once } from 'node:events';
import { PassThrough, Readable } from 'node:stream';
import tar from 'tar-stream';
import { describe, expect, test } from 'vitest';
import { extractArchive } from '../../../src/environment/docker/container.ts';

async function packed(): Promise<Buffer> {
  const pack = tar.pack();
  pack.entry({ name: 'a' }, 'x'.repeat(5000));
  pack.entry({ name: 'b' }, 'y'.repeat(5000));
  pack.finalize();
  const parts: Buffer[] = [];
  for await (const part of pack) parts.push(part as Buffer);
  return Buffer.concat(parts);
}

async function namesOf(archive: PassThrough, signal?: AbortSignal): Promise<string[]> {
  const names: string[] = [];
  for await (const entry of extractArchive(archive, signal)) {
    names.push(entry.header.name);
    entry.resume();
  }
  return names;
}

describe('an archive', () => {
  test('that is whole', async () => {
    const archive = new PassThrough();
    archive.end(await packed());
    expect(await namesOf(archive)).toEqual(['a', 'b']);
  });

  test.each([100, 600, 3000, 5632, 6200])('that is cut after %i bytes is an error', async (bytes) => {
    const archive = new PassThrough();
    archive.write((await packed()).subarray(0, bytes));
    setImmediate(() => archive.destroy());
    await expect(namesOf(archive)).rejects.toMatchObject({ code: 'ECONNRESET' });
  });

  test('of which enough was read is let go of', async () => {
    const header = (await packed()).subarray(0, 512);
    let sent = 0;
    // A file of 50 GB that never ends.
    const archive = new Readable({
      read() {
        this.push(sent++ === 0 ? header : Buffer.alloc(65_536));
      },
    });
    for await (const entry of extractArchive(archive)) {
      expect(entry.header.name).toBe('a');
      break;
    }
    if (!archive.closed) await once(archive, 'close');
    expect(archive.destroyed).toBe(true);
    expect(sent).toBeLessThan(100);
  });

  test('whose connection fails is that error', async () => {
    const archive = new PassThrough();
    archive.write((await packed()).subarray(0, 600));
    setImmediate(() => archive.destroy(new Error('aborted')));
    await expect(namesOf(archive)).rejects.toThrow('aborted');
  });

  test('that takes too long ends with its signal', async () => {
    const archive = new PassThrough();
    archive.write((await packed()).subarray(0, 600));
    const abort = new AbortController();
    setImmediate(() => abort.abort(new Error('too long')));
    await expect(namesOf(archive, abort.signal)).rejects.toThrow('too long');
  });
});
