// Packages as npm publishes them, made on the spot: gzipped tars with what a test puts into them, and a registry that serves them.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import tar from 'tar-stream';

export interface PackedFile {
  readonly name: string;
  readonly content?: string | Buffer;
  readonly mode?: number;
  readonly type?: 'file' | 'directory' | 'symlink' | 'link' | 'fifo';
  readonly linkname?: string;
}

export async function packed(files: readonly PackedFile[]): Promise<Buffer> {
  const pack = tar.pack();
  for (const { content, ...header } of files) pack.entry(header, content ?? '');
  pack.finalize();
  return gzipSync(await buffer(pack as unknown as AsyncIterable<Buffer>));
}

export const integrityOf = (bytes: Buffer): string =>
  `sha512-${createHash('sha512').update(bytes).digest('base64')}`;

/** A package on the disk, as the cache holds it. */
export async function packageAt(file: string, files: readonly PackedFile[], folder = 'demo') {
  const bytes = await packed(files);
  writeFileSync(file, bytes);
  return { file, integrity: integrityOf(bytes), folder };
}

export interface Published {
  readonly name: string;
  readonly version: string;
  readonly bytes: Buffer;
  readonly licence?: string;
  /** Instead of the hash of the bytes. */
  readonly integrity?: string;
}

export interface FakeRegistry {
  readonly url: string;
  /** Paths of files that were asked for. */
  readonly fetched: string[];
  close(): Promise<void>;
}

export async function fakeRegistry(published: readonly Published[]): Promise<FakeRegistry> {
  const fetched: string[] = [];
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '').slice(1);
    const file = published.find(({ name, version }) => path === `${name}/-/${version}.tgz`);
    if (file) {
      fetched.push(path);
      response.end(file.bytes);
      return;
    }
    const versions = published.filter(({ name }) => name === path);
    if (versions.length === 0) response.statusCode = 404;
    response.setHeader('content-type', 'application/json');
    response.end(
      JSON.stringify(versions.length === 0 ? { error: 'not found' } : document(path, versions, url)),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return {
    url,
    fetched,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

const document = (name: string, versions: readonly Published[], url: string) => ({
  name,
  'dist-tags': { latest: versions[0]!.version },
  versions: Object.fromEntries(
    versions.map(({ version, licence, bytes, integrity }) => [
      version,
      {
        name,
        version,
        ...(licence !== undefined && { license: licence }),
        dist: { tarball: `${url}${name}/-/${version}.tgz`, integrity: integrity ?? integrityOf(bytes) },
      },
    ]),
  ),
});
