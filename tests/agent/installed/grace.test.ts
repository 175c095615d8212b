// Before it is killed a program is told to end, and what it writes then counts.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { runProgram } from '../../../src/agent/installed/installedAgent.ts';
import { textResult } from '../../../src/agent/loop/protocol.ts';
import { completeEnvironment } from '../../../src/environment/capabilities.ts';
import type { Environment } from '../../../src/environment/environment.ts';
import { tempDir } from '../../support/cli.ts';

/** Runs the lines of a program in a shell of this machine. `until`: a file that it makes when it may be told to end. */
async function played(command: string, until?: string, timeUp = new AbortController()) {
  const dir = tempDir('grace-');
  const environment = completeEnvironment({
    putFile: async (path: string, content: string) => {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, content);
    },
    async execute(line: string) {
      const child = spawn('bash', ['-c', line], { cwd: dir, stdio: 'ignore' });
      const ended = once(child, 'exit') as Promise<[number | null]>;
      if (until !== undefined) {
        await expect.poll(() => existsSync(join(dir, until)), { timeout: 120_000 }).toBe(true);
        timeUp.abort();
      }
      return textResult('', (await ended)[0] ?? -1);
    },
  } as unknown as Environment);
  const result = await runProgram({
    environment,
    launch: { env: {}, command },
    folders: { files: join(dir, 'files'), home: join(dir, 'home'), remove: async () => {} },
    prompt: 'task',
    limitS: 60,
    timeUp: timeUp.signal,
    over: new Promise(() => {}),
  });
  const read = (name: string): string | null =>
    existsSync(join(dir, name)) ? readFileSync(join(dir, name), 'utf8') : null;
  return { code: result?.exitCode, read };
}

const PROGRAM = `require('fs').writeFileSync('begun', '');
setInterval(() => {}, 1000);
process.on('SIGTERM', () => { require('fs').writeFileSync('work', 'so far'); process.exit(3); });`;

test('a program gets SIGTERM, and ends with what it has written', async () => {
  const { code, read } = await played(`exec '${process.execPath}' -e "${PROGRAM}"`, 'begun');
  expect([code, read('work')]).toEqual([3, 'so far']);
});

test('of a line of the shell the program gets it that runs, and the rest of the line still runs', async () => {
  const { code, read } = await played(
    `: > ready\n'${process.execPath}' -e "${PROGRAM}"\necho "it ended with $?" > after`,
    'begun',
  );
  expect([code, read('work'), read('after')]).toEqual([0, 'so far', 'it ended with 3\n']);
});

test('one that ends by itself ends with its code', async () => {
  expect((await played('echo done > work; exit 7')).code).toBe(7);
  expect((await played('exec false')).code).toBe(1);
  expect((await played("cat <<'END' > work\nit's (here\nEND")).read('work')).toBe("it's (here\n");
});

test('one whose time was over before it began is told as well', async () => {
  const timeUp = new AbortController();
  timeUp.abort();
  expect((await played('exec sleep 1000', undefined, timeUp)).code).toBe(143);
});
