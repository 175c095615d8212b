// A git that is killed, where a machine or a container runs out of memory, has said nothing of its repository: neither that there is no history,
// nor that none is left, nor what the start tree is.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { sealHistory, verifySealed } from '../../src/environment/container/sealedHistory.ts';
import { type ScriptRunner, takeSnapshot } from '../../src/environment/patch/capture.ts';

const root = mkdtempSync(join(tmpdir(), 'swebatch-killed-git-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const GIT = execFileSync('bash', ['-c', 'command -v git'], { encoding: 'utf8' }).trim();
const bin = join(root, 'bin');
mkdirSync(bin);
const program = (name: string, real: string) =>
  writeFileSync(
    join(bin, name),
    `#!/bin/bash\nfor one in ${name} "$@"; do [ "$one" != "$KILLED" ] || kill -9 $$; done\nexec ${real} "$@"\n`,
    { mode: 0o755 },
  );
program('git', GIT);
program('sort', '/usr/bin/sort');

/** On a folder of ours; `killed`: the word of a command that dies. */
const runWith =
  (killed: string): ScriptRunner =>
  async (script, { env }) => {
    const done = spawnSync('bash', ['-p', '-c', script], {
      env: { PATH: `${bin}:${process.env.PATH}`, KILLED: killed, ...env },
      cwd: root,
    });
    const raw = Buffer.concat([done.stdout, done.stderr]);
    return { code: done.status ?? -1, raw, output: raw.toString(), timedOut: false, omittedBytes: 0 };
  };

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(root, 'tree-'));
  const leaky =
    'git init -q -b main . && git config user.email a@b && git config user.name a && echo one >f && git add f && git commit -qm base && git checkout -q -b future && echo fix >f && git commit -qam fix && git checkout -q main';
  execFileSync('bash', ['-c', leaky], { cwd, env: { PATH: process.env.PATH, HOME: root } });
});

describe('history', () => {
  test('is sealed where git lives', async () => {
    const sealed = await sealHistory(runWith(''), { cwd });
    expect(sealed.state).toBe('sealed');
    expect(await verifySealed(runWith(''), { cwd }, sealed.text, '')).toEqual({
      reason: undefined,
      notes: [],
    });
  });

  test.each([
    'rev-parse',
    'symbolic-ref',
    'for-each-ref',
    'remote',
    'cat-file',
    'rev-list',
    'repack',
    'sort',
  ])('is neither sealed nor absent nor beyond sealing where git %s is killed', async (killed) => {
    await expect(sealHistory(runWith(killed), { cwd })).rejects.toMatchObject({
      code: 'start_failed',
      message: expect.stringContaining('was killed'),
    });
  });

  test.each(['rev-parse', 'for-each-ref', 'remote'])(
    'is not called another where git %s is killed',
    async (killed) => {
      const sealed = await sealHistory(runWith(''), { cwd });
      await expect(verifySealed(runWith(killed), { cwd }, sealed.text, '')).rejects.toMatchObject({
        code: 'start_failed',
      });
    },
  );
});

test('a start tree is not recorded without the files that a killed git did not add', async () => {
  writeFileSync(join(cwd, 'new'), 'new\n');
  const name = `killed-git-${process.pid}`;
  const taken = takeSnapshot(runWith('add'), cwd, name, 60);
  await expect(
    taken.finally(() => rmSync(`/var/lib/.swebatch.${name}`, { recursive: true, force: true })),
  ).rejects.toMatchObject({
    code: 'setup_failed',
    message: expect.stringContaining('git add was killed'),
  });
});
