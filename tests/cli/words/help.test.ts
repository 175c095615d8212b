// The words a new user tries first: -h, help, -V, and verbs of two words.
import { expect, test } from 'vitest';
import { FURTHER_VERBS, VERBS } from '../../../src/cli/verbs.ts';
import { cli } from '../../support/cli.ts';

test('-h, --help and help say the same: eight verbs, and the others in one line', async () => {
  const [short, long, word] = await Promise.all([cli(['-h']), cli(['--help']), cli(['help'])]);
  expect([short.code, long.code, word.code]).toEqual([0, 0, 0]);
  expect(short.stdout).toBe(long.stdout);
  expect(word.stdout).toBe(long.stdout);
  const described = long.stdout.match(/^ {2}swebatch \w+/gm)?.map((line) => line.trim().split(' ')[1]);
  expect(described).toEqual(['run', 'resume', 'report', 'compare', 'view', 'evaluate', 'export', 'doctor']);
  const more = long.stdout.split('\n\n').find((part) => part.startsWith('more: '))!;
  expect(more.replace(/\s+/g, ' ').slice('more: '.length).split(', ')).toEqual(FURTHER_VERBS);
  expect([...described!, ...FURTHER_VERBS]).toEqual(VERBS);
});

test('help of a verb is its --help', async () => {
  const [word, flag, two] = await Promise.all([
    cli(['help', 'ls']),
    cli(['ls', '-h']),
    cli(['help', 'config', 'show']),
  ]);
  expect(word.stdout).toBe(flag.stdout);
  expect(word.stdout).toContain('swebatch ls [run]');
  expect(two.stdout).toContain('swebatch config show');
  expect(two.stdout).not.toContain('config-show');
  expect((await cli(['-h', 'ls'])).stdout).toBe(word.stdout);
});

test('-V is the version', async () => {
  expect((await cli(['-V'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test.each([
  [['top'], 'top', 'ctl RUN'],
  [['engines', 'r1'], 'engines', 'ctl RUN engines'],
  [['run', 'stop', 'r1'], 'run stop', 'ctl RUN stop'],
  [['run', 'delete', 'r1', '-y'], 'run delete', 'delete RUN'],
  [['help', 'top'], 'top', 'ctl RUN'],
])('%s is answered with the word of today', async (words, old, now) => {
  const said = await cli(words);
  expect(said.code).toBe(2);
  expect(said.stderr).toContain(`there is no verb "${old}" any more; it is "swebatch ${now}" now`);
});

test.each([
  ['reprot', 'report'],
  ['eval', 'evaluate'],
  ['grade', 'evaluate'],
  ['list', 'ls'],
  ['stop', 'ctl'],
])('%s is answered with the nearest verb', async (word, nearest) => {
  const said = await cli([word]);
  expect(said.code).toBe(2);
  expect(said.stderr).toContain(`there is no verb "${word}"; did you mean "${nearest}"?`);
});
