// Every command on every page is one that the program takes: its own tables of flags read each line. Blocks marked `sh docker` and `sh offline` are
// run for real (tests/demo).
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { everyVerb } from '../src/cli/flags/everyVerb.ts';
import { parseWords } from '../src/cli/flags/parseWords.ts';
import { checkArgs } from '../src/cli/flags/verb.ts';
import { allVerbs, VERBS } from '../src/cli/verbs.ts';

const ROOT = join(import.meta.dirname, '..');
const PAGES = [
  ...['README.md', 'CONTRIBUTING.md'],
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
];
const read = (page: string) => readFileSync(join(ROOT, page), 'utf8');

/** Blocks of a shell: marked so, or with no mark and a line that begins as a command does. */
const shellBlocks = (page: string): string[] =>
  [...page.matchAll(/^```(sh[^\n]*)?\n(.*?)^```$/gms)].map(([, , block]) => block!.replaceAll('\\\n', ' '));

/** Words as a shell has them; a part with an ellipsis stands for others. */
const wordsOf = (command: string): string[] =>
  (command.match(/(?:"[^"]*"|'[^']*'|\$\([^)]*\)|[^\s"'])+/g) ?? [])
    .map((word) => word.replace(/^(['"])(.*)\1$/, '$2').replace(/\$\([^)]*\)/g, 'x'))
    .filter((word) => word !== '…' && word !== '...');

/** The commands of one line: behind `#` it is said what they do. */
const commandsIn = (line: string): string[][] =>
  line
    .replace(/(^|\s)#.*$/, '')
    .split(/\s*(?:\||&&|;|<<<|>{1,2}|2>)\s*/)
    .map(wordsOf)
    .map((words) => words.slice(words.findIndex((word) => !/^[A-Z_]+=/.test(word) && word !== 'npx')))
    .filter(([program]) => program === 'swebatch')
    .map(([, ...rest]) => rest);

const verbs = new Map((await allVerbs()).map((verb) => [verb.name, verb]));

/** What is wrong with a command line; null where the program would take it. */
function refused(words: readonly string[]): string | null {
  const name = VERBS.find((verb) => `${words.join(' ')} `.startsWith(`${verb} `));
  if (name === undefined) return words[0]?.startsWith('-') ? null : `no verb "${words[0]}"`;
  const { usage, flags } = verbs.get(name)!;
  const { given, mistakes } = parseWords(words.slice(name.split(' ').length), {
    usage,
    flags: { ...flags, ...everyVerb },
  });
  if (mistakes.length > 0) return mistakes.join('\n');
  try {
    checkArgs(flags, given);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

test('what the program does not take is found', () => {
  expect(refused(wordsOf('run --subset a.jsonl -m x -w 4'))).toBeNull();
  expect(refused(wordsOf('run --subset a.jsonl --wrokers 4'))).toContain('wrokers');
  expect(refused(wordsOf('stpo last'))).toContain('no verb');
  expect(refused(wordsOf('report a b'))).toContain('b');
  expect(refused(wordsOf('run --order backwards'))).toContain('backwards');
  expect(commandsIn('FOO=1 npx swebatch ls last | head # the newest')).toEqual([['ls', 'last']]);
});

const KEYS = [...read('docs/configuration.md').matchAll(/^\| `([a-z_.]+)` \|/gm)].map(([, key]) => key!);
const SECTIONS = new Set(KEYS.map((key) => key.split('.')[0]!));
const isKey = (path: string) => KEYS.some((key) => path === key || path.startsWith(`${key}.`));

/** Its settings as the reference names them; a list or a map may be the value of one. */
const settingsIn = (value: unknown, path: string): string[] =>
  isKey(path) || typeof value !== 'object' || value === null || Array.isArray(value)
    ? [path]
    : Object.entries(value).flatMap(([name, below]) => settingsIn(below, `${path}.${name}`));

test('a key that is none is found', () => {
  expect(settingsIn({ policy: 'keep', polcy: 'keep' }, 'images').filter((path) => !isKey(path))).toEqual([
    'images.polcy',
  ]);
});

describe.each(PAGES)('%s', (page) => {
  const lines = shellBlocks(read(page)).flatMap((block) => block.split('\n'));
  const inline = [...read(page).matchAll(/`(swebatch [a-z][^`\n]*)`/g)].map(([, command]) => command!);
  // A verb alone in the middle of a sentence is its name.
  const named = inline.flatMap(commandsIn).filter((words) => !VERBS.includes(words.join(' ')));
  const commands = [...lines.flatMap(commandsIn), ...named];

  test('its commands are taken', () => {
    const wrong: string[] = [];
    for (const words of commands) {
      const why = refused(words);
      if (why !== null) wrong.push(`swebatch ${words.join(' ')}: ${why}`);
    }
    expect(wrong).toEqual([]);
  });
  test('its scripts of npm exist', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: object };
    const named = [...read(page).matchAll(/npm run ([a-z:]+)/g)].map(([, name]) => name!);
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
  });
  test('its settings are those of the reference', () => {
    const blocks = [...read(page).matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, block]) => parseYaml(block!));
    const given = commands.flatMap((words) =>
      words.flatMap((word) => /^([a-z]+\.[a-z_.]+)=/.exec(word)?.[1] ?? []),
    );
    const named = blocks.flatMap((block: object) =>
      Object.entries(block).flatMap(([name, value]) => (SECTIONS.has(name) ? settingsIn(value, name) : [])),
    );
    expect([...given, ...named].filter((path) => !isKey(path))).toEqual([]);
  });
  test('its blocks of YAML and JSON can be read', () => {
    for (const [, kind, block] of read(page).matchAll(/^```(yaml|json)\n(.*?)^```$/gms))
      expect(() => (kind === 'json' ? JSON.parse(block!) : parseYaml(block!)), block).not.toThrow();
  });
});
