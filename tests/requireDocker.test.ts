// A machine without Docker skips what needs it; where Docker is required (CI) the same absence is a failure.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { REPO } from './support/cli.ts';

const ask = (required: Record<string, string>) =>
  spawnSync(
    process.execPath,
    [
      '--input-type=module',
      '-e',
      `const { dockerAvailable } = await import(${JSON.stringify(join(REPO, 'tests/support/docker.ts'))}); console.log(await dockerAvailable());`,
    ],
    { encoding: 'utf8', env: { PATH: process.env.PATH, DOCKER_HOST: 'tcp://127.0.0.1:1', ...required } },
  );

test('without Docker, tests that need it are skipped, and fail where it is required', () => {
  expect(ask({})).toMatchObject({ status: 0, stdout: 'false\n' });
  const required = ask({ SWEBATCH_REQUIRE_DOCKER: '1' });
  expect(required.status).not.toBe(0);
  expect(required.stderr).toContain('Docker is required for these tests and cannot be reached');
});

test('CI requires it', () => {
  expect(readFileSync(join(REPO, '.ci', 'run'), 'utf8')).toMatch(/export .*SWEBATCH_REQUIRE_DOCKER=1/);
});
