// Every line of the lists of docs/appendix/proofs.md and docs/appendix/seeds.md is proved by a test that exists, or is not ours for a reason.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { allIds, allProofs, NOT_OURS, proofsIn, proofsPage, seedsPage } from '../scripts/proofs.ts';
import { AGENT_ERROR_CODES } from '../src/agent/errors.ts';

const page = (name: string) =>
  readFileSync(join(import.meta.dirname, '..', 'docs', 'appendix', name), 'utf8');
const proofs = allProofs();

test('the pages are what "npm run docs:proofs" writes', () => {
  expect(page('proofs.md')).toBe(proofsPage(proofs));
  expect(page('seeds.md')).toBe(seedsPage(page('seeds.md'), proofs));
});

test('no line is without a test, but the ones that are not ours', () => {
  const proved = new Set(proofs.map(({ id }) => id));
  expect(allIds().filter((id) => !proved.has(id))).toEqual(Object.keys(NOT_OURS).sort());
});

test('a title names lines that there are', () => {
  const known = new Set(allIds());
  expect(proofs.filter(({ id }) => !known.has(id))).toEqual([]);
});

test('the seeds have each of their lines, each code of the agent, and two refusals', () => {
  const rows = page('seeds.md').match(/(?<=^\| )S-\d\d/gm);
  expect(rows).toEqual(allIds().filter((id) => id.startsWith('S')));
  expect(AGENT_ERROR_CODES.filter((code) => !page('seeds.md').includes(`\`${code}\``))).toEqual([]);
  expect(page('seeds.md').match(/\*\*refused\*\*/g)).toHaveLength(2);
});

test('ids are read from titles, not from comments', () => {
  const text =
    "// 'T-01 no'\ntest('T-02 stops; goes on [M-03]', () => {});\n  'told, and goes on [S-04, T-05]',";
  expect(proofsIn('a.test.ts', text).map(({ id, title }) => `${id} ${title}`)).toEqual([
    'T-02 stops; goes on',
    'M-03 stops; goes on',
    'S-04 told, and goes on',
    'T-05 told, and goes on',
  ]);
});
