// Variables from .env: they fill what the environment does not have, and never go over it.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readEnvFiles } from '../../../src/cli/flags/everyVerb.ts';
import { cli, tempDir } from '../../support/cli.ts';

function file(text: string, name = 'some.env'): string {
  const path = join(tempDir(), name);
  writeFileSync(path, text);
  return path;
}

test('a named file fills variables', () => {
  const env: NodeJS.ProcessEnv = { TAKEN: 'from the environment' };
  const path = file('TAKEN=no\nexport NEW="a b"\n# a remark\nQUOTED=\'x=1\'\n');
  readEnvFiles([path], env);
  expect(env).toEqual({ TAKEN: 'from the environment', NEW: 'a b', QUOTED: 'x=1' });
});

test('of two files the later one wins', () => {
  const env: NodeJS.ProcessEnv = {};
  readEnvFiles([file('A=1\nB=1'), file('A=2')], env);
  expect(env).toEqual({ A: '2', B: '1' });
});

test('the program reads .env of the working folder', async () => {
  const cwd = tempDir();
  writeFileSync(join(cwd, '.env'), 'MISTRAL_API_KEY=abcdefghijklmnop\n');
  const said = await cli(['models', 'mistral/mistral-large-latest', '--json'], { cwd });
  expect(JSON.parse(said.stdout).key_set).toBe(true);
});

test('a named file that is not there is a mistake', async () => {
  expect(() => readEnvFiles(['nowhere.env'], {})).toThrow('--env-file nowhere.env: ENOENT');
  // Node looks for --env-file itself, also behind the script, and ends before the program starts.
  const said = await cli(['models', '--env-file', 'nowhere.env'], { cwd: tempDir() });
  expect(said.code).not.toBe(0);
  expect(said.stderr).toContain('nowhere.env');
});

test('a folder named .env is not read, and not a mistake', async () => {
  const cwd = tempDir();
  mkdirSync(join(cwd, '.env'));
  expect((await cli(['models'], { cwd })).code).toBe(0);
});
