// A foreign format is one folder and one line of the table: the rooms that read results of others name none.
import { globSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect, test } from 'vitest';
import { allFormats, WRITTEN_FORMATS, writerOf } from '../../src/formats/formats.ts';

const SRC = join(import.meta.dirname, '..', '..', 'src');
const folders = readdirSync(join(SRC, 'formats'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

test('every folder is in the tables, and each format can be loaded', async () => {
  const tables = readFileSync(join(SRC, 'formats', 'formats.ts'), 'utf8');
  expect(folders.filter((folder) => !tables.includes(`import('./${folder}/`))).toEqual([]);
  expect(await allFormats()).not.toEqual([]);
  for (const { word } of WRITTEN_FORMATS) expect(await writerOf(word)).toBeTypeOf('function');
});

test('results, store, viewer and comparisons import no format', () => {
  const rooms = ['results', 'store', 'viewer', 'report/compare', 'report/measure', 'report/gate'];
  const wrong = rooms
    .flatMap((room) => globSync(join(SRC, room, '**/*.{ts,tsx}')))
    .filter((path) => new RegExp(`/formats/(?:${folders.join('|')})/`).test(readFileSync(path, 'utf8')));
  expect(wrong.map((path) => relative(SRC, path))).toEqual([]);
});
