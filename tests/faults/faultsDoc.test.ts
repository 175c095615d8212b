// docs/traceability/faults.md says the truth: every row T-01 to T-60 is there, and every test that it names exists under that title.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..', '..');
const page = readFileSync(join(root, 'docs', 'traceability', 'faults.md'), 'utf8');
const rows = page.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| row |'));

test('every row of the report is on the page, once', () => {
  const named = rows.flatMap((row) => row.split('|')[1]!.match(/T-\d\d/g) ?? []);
  expect(named.sort()).toEqual(Array.from({ length: 60 }, (_, i) => `T-${String(i + 1).padStart(2, '0')}`));
});

test('every row names a test', () => {
  expect(rows.filter((row) => !/`tests\/[^`]+` › "/.test(row))).toEqual([]);
});

const named = [...page.matchAll(/`(tests\/[^`]+)` › "([^"]+)"/g)].map(
  (m) => [m[1], m[2]] as [string, string],
);
test.each(named)('%s has "%s"', (path, title) => {
  const plain = (text: string): string => text.replaceAll('\\', '').replaceAll(/['’"]/g, "'");
  expect(existsSync(join(root, path))).toBe(true);
  expect(plain(readFileSync(join(root, path), 'utf8'))).toContain(plain(title));
});
