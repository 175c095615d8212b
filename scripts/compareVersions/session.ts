// Calls one version of the program and keeps what each call says, as files that can be compared.
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** What all items are given. */
export interface Shared {
  /** Holds `here` while a version runs, then `old` and `new`. */
  readonly work: string;
  readonly data: string;
  /** The old version's: the demo's dataset and configuration are taken from one place. */
  readonly checkout: string;
}

export interface Session {
  /** The version that is called. */
  readonly checkout: string;
  /** Working folder of every call. */
  readonly folder: string;
  /** Calls the program; stdout, stderr and exit code go to `said/<number> <arguments>`. Gives the exit code. */
  call(...args: string[]): Promise<number | null>;
  /** Writes a file to be compared. */
  keep(name: string, text: string): void;
}

/** No variable of this machine leaks in but what a program needs to start. */
const environment = (checkout: string): NodeJS.ProcessEnv => ({
  PATH: `${join(checkout, 'node_modules', '.bin')}:${process.env.PATH}`,
  HOME: process.env.HOME,
  TZ: 'UTC',
  OPENAI_API_KEY: 'test',
});

export function createSession(checkout: string, folder: string): Session {
  let calls = 0;
  const keep = (name: string, text: string) => {
    mkdirSync(join(folder, 'said'), { recursive: true });
    writeFileSync(join(folder, 'said', name), text);
  };
  const call = (...args: string[]) =>
    new Promise<number | null>((resolve, reject) => {
      calls += 1;
      const words = args.map((arg) => arg.split('/').at(-1)).join(' ');
      const name = `${String(calls).padStart(2, '0')} ${words.slice(0, 80)}`;
      const child = spawn(process.execPath, [join(checkout, 'src', 'cli', 'bin.ts'), ...args], {
        cwd: folder,
        env: environment(checkout),
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const said = { stdout: '', stderr: '' };
      child.stdout.setEncoding('utf8').on('data', (text: string) => (said.stdout += text));
      child.stderr.setEncoding('utf8').on('data', (text: string) => (said.stderr += text));
      child.on('error', reject);
      child.on('close', (code, signal) => {
        keep(`${name}.stdout`, said.stdout);
        keep(`${name}.stderr`, `${said.stderr}exit ${code ?? signal}\n`);
        resolve(code);
      });
    });
  return { checkout, folder, call, keep };
}
