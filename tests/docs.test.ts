// The pages name files of this repository: every path under src, tests, scripts, configs, datasets and docs must be there.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { PROVIDERS } from '../src/model/names.ts';

const ROOT = join(import.meta.dirname, '..');

const PAGES = [
  ...readdirSync(ROOT).filter((name) => name.endsWith('.md') && name !== 'CHANGELOG.md'),
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
];

/** Paths from the root as prose and code spans write them; a `<name>`, `*` or `NAME` in one stands for many files. Python tests are those of datasets. */
const pathsIn = (text: string): string[] =>
  [...text.matchAll(/(?<![\w./-])(?:src|tests|scripts|configs|docs)\/[\w./<>*-]*[\w/>*]/g)]
    .map(([path]) => path)
    .filter((path) => !/[<>*]|[A-Z]{4}|^tests\/.*\.py$/.test(path));

describe('paths on the pages', () => {
  test.each(PAGES)('%s names files that exist', (page) => {
    const named = pathsIn(readFileSync(join(ROOT, page), 'utf8'));
    expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });

  test('a path that is gone is found', () => {
    expect(pathsIn('see `src/gone.ts`, `src/model/dialects/<name>/` and docs/gone.md.')).toEqual([
      'src/gone.ts',
      'docs/gone.md',
    ]);
  });
});

/** What stands between two spaces and has a letter or a digit: signs of tables and lists are no words. */
const words = (text: string) => text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
const wordsOf = (pages: readonly string[]) =>
  pages.reduce((sum, page) => sum + words(readFileSync(join(ROOT, page), 'utf8')), 0);

describe('how much there is to read', () => {
  test('the README has at most 700 words', () => {
    expect(wordsOf(['README.md'])).toBeLessThanOrEqual(700);
  });
  test('docs/ has at most 24,000, without the appendix: simulations, logs, lists of proofs and decisions', () => {
    const pages = PAGES.filter((page) => /^docs\/(?!appendix\/)/.test(page));
    expect(wordsOf(pages)).toBeLessThanOrEqual(24_000);
  });
  test('the appendix has at most 9,000, without what "npm run docs:proofs" writes', () => {
    const pages = PAGES.filter((page) => /^docs\/appendix\/(?!proofs)/.test(page));
    const seeds = readFileSync(join(ROOT, 'docs', 'appendix', 'seeds.md'), 'utf8');
    const written = [...seeds.matchAll(/^\| S-\d\d \|.*\|([^|]*(?:\\\|[^|]*)*)\|$/gm)].map(
      ([, cell]) => cell!,
    );
    expect(written.length).toBeGreaterThan(0);
    expect(wordsOf(pages) - words(written.join(' '))).toBeLessThanOrEqual(9_000);
  });
  // A merge of both sides brings the whole past back: take the file of main, and add the line again.
  test('the changelog begins at the first release, and has at most 1,500', () => {
    expect(wordsOf(['CHANGELOG.md'])).toBeLessThanOrEqual(1_500);
  });
  test('the changelog has at most 40 lines for what is unreleased', () => {
    const [, unreleased = ''] = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8').split('\n## ');
    expect(unreleased).toContain('[Unreleased]');
    expect(unreleased.match(/^- /gm)?.length ?? 0).toBeLessThanOrEqual(40);
  });
  test('every page is named in the README', () => {
    const named = readFileSync(join(ROOT, 'README.md'), 'utf8');
    const pages = PAGES.filter((page) => /^docs\/(?!appendix\/decisions\/)/.test(page));
    expect(pages.filter((page) => !named.includes(`(${page})`))).toEqual([]);
  });
});

test('AGENTS.md has at most 40 lines', () => {
  const lines = readFileSync(join(ROOT, 'AGENTS.md'), 'utf8').trimEnd().split('\n');
  expect(lines.length).toBeLessThanOrEqual(40);
});

test('docs/models.md has every provider with its variables and its address', () => {
  const rows = readFileSync(join(ROOT, 'docs', 'models.md'), 'utf8').match(/^\| `[a-z_]+\/` \|.*$/gm) ?? [];
  const code = (values: readonly string[]) => values.map((value) => `\`${value}\``).join(', ');
  const expected = PROVIDERS.map(({ prefix, dialect, keys, baseUrl, baseUrls }) => {
    const spoken = prefix === 'openai' ? 'chat; responses for models that think' : dialect;
    const address = baseUrl === null ? 'yours' : code([baseUrl]);
    return `| \`${prefix}/\` | ${spoken} | ${code(keys)} | ${address} | ${code(baseUrls)} |`;
  });
  expect(rows).toEqual(expected);
});
