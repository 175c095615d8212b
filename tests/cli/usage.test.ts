// What a person reads when a line cannot be meant, and the commands that messages offer to copy.
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { usageMessage } from '../../src/cli/flags/commandLine.ts';
import type { Verb } from '../../src/cli/flags/verb.ts';
import { commandOn } from '../../src/cli/terminal/context.ts';
import { lsVerb } from '../../src/cli/verbs/ls.ts';

test('a command to copy names the results root, unless it is the default one', () => {
  expect(commandOn(resolve('results'), 'resume r1')).toBe('"swebatch resume r1"');
  expect(commandOn(resolve('out', 'night'), 'resume r1')).toBe(
    `"swebatch resume r1 -o ${join('out', 'night')}"`,
  );
  expect(commandOn('/data/nights', 'ls r1')).toBe('"swebatch ls r1 -o /data/nights"');
  expect(commandOn('/data/my nights', 'ls')).toBe(`"swebatch ls -o '/data/my nights'"`);
  expect(commandOn(process.cwd(), 'ls')).toBe('"swebatch ls -o ."');
});

test.each<[string, string[], string]>([
  ['Unknown argument: wath', ['ls', '--wath'], 'there is no option --wath; did you mean --watch?'],
  ['Unknown arguments: my-flag, myFlag', ['ls', '--my-flag=3'], 'there is no option --my-flag'],
  ['Unknown arguments: x, foo', ['ls', '-x', '--foo'], 'there is no option -x\nthere is no option --foo'],
  ['Unknown argument: b', ['ls', 'a', 'b'], 'unexpected argument "b"'],
  ['Not enough arguments following: class', ['ls', '--class'], '--class needs a value'],
  ['Not enough arguments following: o', ['ls', '-o'], '-o needs a value'],
  ['something new', ['ls'], 'something new'],
])('%s', async (said, args, ours) => {
  expect(await usageMessage(said, args, lsVerb)).toBe(ours);
});

test('what has to stand behind a verb is named, without what is there already', async () => {
  const verb: Verb = { ...lsVerb, command: 'convert <source> <files..>' };
  const missing = (got: number) =>
    usageMessage(`Not enough non-option arguments: got ${got}, need at least 2`, ['convert'], verb);
  expect(await missing(0)).toBe('<source> and <files> are missing: swebatch convert <source> <files..>');
  expect(await missing(1)).toBe('<files> is missing: swebatch convert <source> <files..>');
});
