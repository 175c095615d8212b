// A bundle is small: what belongs to attempts is packed, and each message is stored once beside its raw form.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { writeBundle } from '../../src/viewer/bundle.ts';
import type { PackedChunk } from '../../src/viewer/documents/attemptDocuments.ts';
import { createDocuments } from '../../src/viewer/documents/resources.ts';
import { addRun, openFixture } from './fixture.ts';

test('a bundle holds every message and its raw form in a fraction of their bytes', () => {
  const dir = mkdtempSync(join(tmpdir(), 'swebatch-bundle-'));
  try {
    const store = openFixture(dir);
    addRun(store, { name: 'night', instances: 4, steps: 60 });
    mkdirSync(join(dir, 'page', 'assets'), { recursive: true });
    writeFileSync(join(dir, 'page', 'index.html'), '<meta name="swebatch-mode" content="live"><div></div>');
    const out = join(dir, 'bundle');
    const { bytes, files } = writeBundle(dir, out, { pageDir: join(dir, 'page') });
    const names = readdirSync(out, { recursive: true, encoding: 'utf8' });
    expect(names.filter((name) => statSync(join(out, name)).isFile())).toHaveLength(files);
    const documents = createDocuments(store, { title: '' });
    let plain = 0;
    const chunks = names.filter((name) => /attempts\/\d+\/messages\//.test(name));
    expect(chunks.length).toBeGreaterThan(4);
    for (const name of chunks) {
      const packed = JSON.parse(gunzipSync(readFileSync(join(out, name))).toString('utf8')) as PackedChunk;
      const path = name.replace(/^data\//, '').replace(/\.json\.gz$/, '');
      const messages = documents.read(path) as { messages: unknown[] };
      const raw = documents.read(path.replace('/messages/', '/raw/')) as { messages: { data: string }[] };
      expect(packed.pairs.map((pair) => pair.message)).toEqual(messages.messages);
      expect(packed.pairs.map((pair) => pair.raw?.value)).toEqual(
        raw.messages.map(({ data }) => JSON.parse(data) as unknown),
      );
      plain += JSON.stringify(messages).length + JSON.stringify(raw).length;
    }
    expect(bytes * 4).toBeLessThan(plain);
    store.close();
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
