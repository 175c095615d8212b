// The README and the pages say what the program does: verbs, flags, links.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { VERSION } from '../src/base/files/packageFile.ts';
import { allVerbs, FURTHER_VERBS, listVerbs, loadVerb, VERBS as names } from '../src/cli/verbs.ts';
import { cli, REPO } from './support/cli.ts';

const readme = readFileSync(join(REPO, 'README.md'), 'utf8');

test('a verb is loaded by its own name, and help lists those of the first page', async () => {
  expect((await allVerbs()).map(({ name }) => name)).toEqual(names);
  for (const name of names) expect((await loadVerb(name)).name).toBe(name);
  expect((await listVerbs()).map(({ usage }) => usage.split(' ')[0])).toEqual(names.slice(0, 8));
});

test('the table of verbs has those of the first page of help, in its order', () => {
  const rows = [...readme.matchAll(/^\| `([a-z ]+)` \|/gm)].map((m) => m[1]);
  expect(rows).toEqual(names.slice(0, 8));
  expect(names.slice(8)).toEqual(FURTHER_VERBS);
});

describe('commands', () => {
  const commands = [...readme.matchAll(/(?:npx )?swebatch ([a-z]+)((?: [^\n`#;]+)?)/g)]
    .map((m) => ({ verb: m[1] as string, flags: (m[2] ?? '').match(/(?<= )--?[a-z][a-z-]*/g) ?? [] }))
    .filter(({ verb, flags }) => names.includes(verb) && flags.length > 0);
  test('there are some', () => expect(commands.length).toBeGreaterThan(2));
  test.each([...new Set(commands.map((c) => c.verb))])('flags of "swebatch %s" exist', async (verb) => {
    const help = (await cli([verb, '--help'])).stdout;
    const flags = commands.filter((c) => c.verb === verb).flatMap((c) => c.flags);
    expect(flags.filter((flag) => !new RegExp(`(^|[ ,])${flag}\\b`, 'm').test(help))).toEqual([]);
  });
  test('scripts that it names are those of package.json', () => {
    const { scripts } = JSON.parse(readFileSync(join(REPO, 'package.json'), 'utf8')) as { scripts: object };
    const named = [...readme.matchAll(/npm (?:run ([a-z:]+)|(test))/g)].map((m) => m[1] ?? m[2]!);
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
  });
});

test('links of the README and of docs/ lead to files', () => {
  const docs = join(REPO, 'docs');
  const pages = readdirSync(docs, { recursive: true, encoding: 'utf8' }).filter((f) => f.endsWith('.md'));
  const broken = (folder: string, text: string) =>
    [...text.matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)]
      .map((m) => m[1] as string)
      .filter((target) => !existsSync(join(folder, target)));
  expect(broken(REPO, readme)).toEqual([]);
  for (const page of pages)
    expect(broken(join(docs, page, '..'), readFileSync(join(docs, page), 'utf8')), page).toEqual([]);
});

test('the changelog has the version of the package', () => {
  const changes = readFileSync(join(REPO, 'CHANGELOG.md'), 'utf8');
  expect(changes).toContain('## [Unreleased]');
  expect(changes).toContain(`## [${VERSION}]`);
});

test('decisions are numbered and short', () => {
  const folder = join(REPO, 'docs', 'appendix', 'decisions');
  for (const name of readdirSync(folder)) {
    expect(name).toMatch(/^\d{4}-[a-z0-9-]+\.md$/);
    expect(readFileSync(join(folder, name), 'utf8').split('\n').length, name).toBeLessThanOrEqual(40);
  }
});
