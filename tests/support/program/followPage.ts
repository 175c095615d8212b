/** The blocks of a page that are marked to be run, followed as a person follows them: each line in a shell, in a folder of its own. */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { BIN, REPO, tempDir } from '../cli.ts';

export interface Said {
  readonly code: number | null;
  readonly text: string;
  readonly stdout: string;
}

export function pageOf(name: string) {
  const text = readFileSync(join(REPO, 'docs', name), 'utf8');
  const home = tempDir('swebatch-page-');
  mkdirSync(join(home, 'bin'));
  const program = join(home, 'bin', 'swebatch');
  writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${BIN}' "$@"\n`);
  chmodSync(program, 0o755);
  symlinkSync(join(REPO, 'datasets'), join(home, 'datasets'));

  const linesOf = (kind: string): string[] =>
    [...text.matchAll(/^```(sh[^\n]*)\n(.*?)^```/gms)]
      .filter((m) => m[1] === kind)
      .flatMap((m) => m[2]!.trim().split('\n'));

  /** One line of the page, with `swebatch` being this program. */
  const shell = (line: string): Said => {
    const done = spawnSync('bash', ['-o', 'pipefail', '-c', line], {
      cwd: home,
      encoding: 'utf8',
      env: {
        PATH: `${join(home, 'bin')}:${process.env.PATH}`,
        HOME: process.env.HOME,
        TZ: 'UTC',
        ...(process.env.DOCKER_HOST && { DOCKER_HOST: process.env.DOCKER_HOST }),
      },
    });
    return { code: done.status, text: `${done.stdout}${done.stderr}`, stdout: done.stdout };
  };

  /** Runs the lines of all blocks of a kind, and gives what each said; each must end with 0. */
  const follow = (kind: string): ReadonlyMap<string, Said> =>
    new Map(
      linesOf(kind).map((line) => {
        const result = shell(line);
        expect(result.code, `${line}\n${result.text}`).toBe(0);
        return [line, result];
      }),
    );
  return { text, home, linesOf, shell, follow };
}

export const saidBy = (said: ReadonlyMap<string, Said>, part: string): Said =>
  [...said].find(([line]) => line.includes(part))![1];
