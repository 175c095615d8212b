// `ls` without yargs means what it means with it.
import { expect, test } from 'vitest';
import yargs from 'yargs';
import { plainLs } from '../../src/cli/plainLs.ts';
import { lsVerb } from '../../src/cli/verbs/ls.ts';

const byYargs = async (args: readonly string[]) => {
  let seen: Record<string, unknown> = {};
  await yargs()
    .strict()
    .exitProcess(false)
    .command({
      ...lsVerb,
      handler: (argv) => {
        seen = argv;
      },
    })
    .parseAsync([...args]);
  return seen;
};

test.each([
  [['ls']],
  [['ls', 'night']],
  [['ls', '7']],
  [['ls', '-o', 'there']],
  [['ls', '-o', 'there', '--json']],
  [['ls', '--output=there', 'last']],
  [['ls', '--json', 'last', '--output', 'there']],
])('%j', async (args) => {
  const plain = plainLs(args)!;
  const { run, output, json, watch, class: exitClass } = await byYargs(args);
  expect(plain).toEqual({ ...(run !== undefined && { run }), output, json, watch });
  expect(exitClass).toBeUndefined();
});

test.each([
  [[]],
  [['run']],
  [['ls', '--help']],
  [['ls', '--watch']],
  [['ls', '--class', 'infra']],
  [['ls', '--jsno']],
  [['ls', '-o']],
  [['ls', '-o', '']],
  [['ls', '-o', 'a', '-o', 'b']],
  [['ls', 'a', 'b']],
])('%j is left to yargs', (args) => {
  expect(plainLs(args)).toBeNull();
});
