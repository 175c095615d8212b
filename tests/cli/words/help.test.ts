// The words a new user tries first: -h, help, -V, and verbs of two words.
import { expect, test } from 'vitest';
import { cli } from '../../support/cli.ts';

test('-h, --help and help say the same, and list verbs of two words as they are typed', async () => {
  const [short, long, word] = await Promise.all([cli(['-h']), cli(['--help']), cli(['help'])]);
  expect([short.code, long.code, word.code]).toEqual([0, 0, 0]);
  expect(short.stdout).toBe(long.stdout);
  expect(word.stdout).toBe(long.stdout);
  expect(long.stdout).toContain('swebatch run stop <run>');
  expect(long.stdout).not.toContain('run-stop');
});

test('help of a verb is its --help', async () => {
  const [word, flag, two] = await Promise.all([
    cli(['help', 'ls']),
    cli(['ls', '-h']),
    cli(['help', 'run', 'delete']),
  ]);
  expect(word.stdout).toBe(flag.stdout);
  expect(word.stdout).toContain('swebatch ls [run]');
  expect(two.stdout).toContain('swebatch run delete <run>');
});

test('-V is the version', async () => {
  expect((await cli(['-V'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test('half of a verb of two words is answered with the whole one', async () => {
  const said = await cli(['config']);
  expect(said.code).toBe(2);
  expect(said.stderr).toContain('did you mean "config show"?');
});
