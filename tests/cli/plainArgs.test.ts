// A command line that Node reads alone means what it means with yargs, for every verb.
import { beforeAll, expect, test } from 'vitest';
import yargs from 'yargs';
import { plainArgs } from '../../src/cli/flags/commandLine.ts';
import { kebab, type Verb } from '../../src/cli/flags/verb.ts';
import { lsVerb } from '../../src/cli/verbs/ls.ts';
import { reportVerb } from '../../src/cli/verbs/report.ts';
import { loadVerbs } from '../../src/cli/verbs.ts';
import fc from '../support/property.ts';

/** What the verb would get of its flags; null where yargs refuses, or shows help. */
async function byYargs(verb: Verb, args: readonly string[]): Promise<Record<string, unknown> | null> {
  let seen: Record<string, unknown> | null = null;
  const parser = yargs()
    .strict()
    .exitProcess(false)
    .fail((message, error) => {
      throw error ?? new Error(message);
    })
    .command({
      // Some verbs have two words, and yargs knows verbs of one.
      command: verb.command.replace(/^[^<[]*[^<[ ]/, 'verb'),
      describe: verb.describe,
      builder: verb.builder,
      handler: (argv) => {
        seen = Object.fromEntries(
          Object.keys(verb.flags).flatMap((name) => (argv[name] === undefined ? [] : [[name, argv[name]]])),
        );
      },
    });
  try {
    await parser.parseAsync(['verb', ...args], {}, () => {});
  } catch {}
  return seen;
}

test.each([
  [[]],
  [['night']],
  [['7']],
  [['-o', 'there']],
  [['-o', 'there', '--json']],
  [['--output=there', 'last']],
  [['--json', 'last', '--output', 'there']],
  [['last', '--class', 'infra']],
  [['--watch']],
])('ls %j', async (args) => {
  const plain = plainArgs(lsVerb.flags, args);
  expect(plain).not.toBeNull();
  expect(plain).toEqual(await byYargs(lsVerb, args));
});

test.each([
  [['--help']],
  [['--jsno']],
  [['--no-json']],
  [['--class']],
  [['-o']],
  [['-o', '']],
  [['-othere']],
  [['-o=there']],
  [['-o', 'a', '-o', 'b']],
  [['a', 'b']],
  [['help']],
  [['--json', 'true']],
  [['--', 'a']],
])('ls %j is left to yargs', (args) => {
  expect(plainArgs(lsVerb.flags, args)).toBeNull();
});

test('numbers, lists and what is none of the choices are left to yargs', () => {
  expect(plainArgs(reportVerb.flags, ['--format', 'html'])).toMatchObject({ run: 'last', format: 'html' });
  expect(plainArgs(reportVerb.flags, ['--format', 'pdf'])).toBeNull();
  expect(plainArgs(reportVerb.flags, ['--seed', '3'])).toBeNull();
});

let verbs: Verb[] = [];
beforeAll(async () => {
  verbs = await loadVerbs();
});

test('of every verb, whatever is read without yargs is read as yargs reads it', async () => {
  const value = fc.oneof(
    fc.constantFrom(
      ...['a', '7', '007', '1e3', '0x1f', '-1', 'x=y', 'a b', '"q"', "'q'", 'help', 'true', 'false', 'all'],
    ),
    fc.constantFrom(
      ...['none', 'html', 'exact', 'show', 'set', 'auto', '--', '-', '', 'é', '__proto__', 'a.b'],
    ),
  );
  const command = fc.nat(verbs.length - 1).chain((index) => {
    const verb = verbs[index]!;
    const name = fc.constantFrom(...Object.keys(verb.flags));
    const word = fc.oneof(
      value.map((v) => [v]),
      name.map((n) => [`--${kebab(n)}`]),
      fc.tuple(name, value).map(([n, v]) => [`--${kebab(n)}`, v]),
      fc.tuple(name, value).map(([n, v]) => [`--${kebab(n)}=${v}`]),
      name.map((n) => [`--no-${kebab(n)}`]),
      fc.tuple(fc.constantFrom('-o', '-w', '-oa', '-w2', '-i'), value).map((pair) => pair),
    );
    return fc.tuple(fc.constant(verb), fc.array(word, { maxLength: 4 }));
  });
  let plainOnes = 0;
  await fc.assert(
    fc.asyncProperty(command, async ([verb, words]) => {
      const args = words.flat();
      const plain = plainArgs(verb.flags, args);
      if (!plain) return;
      plainOnes++;
      expect(plain).toEqual(await byYargs(verb, args));
    }),
    { numRuns: 5000 },
  );
  expect(plainOnes).toBeGreaterThan(300);
});
