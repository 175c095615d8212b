// Runs the real program as a child process, the way a person does, and collects what it says.
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const REPO = join(import.meta.dirname, '..', '..');
/** Built by builtProgram.ts. */
export const BIN = join(REPO, 'dist', 'cli', 'bin.js');

export interface CliResult {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunningCli {
  readonly process: ChildProcess;
  readonly done: Promise<CliResult>;
  /** Resolves once stderr holds the text; rejects when the program ends without it. */
  said(text: string | RegExp): Promise<void>;
  /** The same of stdout. */
  printed(text: string | RegExp): Promise<void>;
}

/** No variable of this machine leaks in but what a program needs to start. */
const baseEnv = (): NodeJS.ProcessEnv => ({
  PATH: `${join(REPO, 'node_modules', '.bin')}:${process.env.PATH}`,
  HOME: process.env.HOME,
  TMPDIR: process.env.TMPDIR,
  TZ: 'UTC',
  SWEBATCH_DEBUG: '1',
  // The engine that the tests themselves ask.
  ...(process.env.DOCKER_HOST && { DOCKER_HOST: process.env.DOCKER_HOST }),
});

const NETWORK =
  /^(NODE_(EXTRA_CA_CERTS|USE_SYSTEM_CA|USE_ENV_PROXY)|SSL_CERT_(FILE|DIR)|(HTTPS?|NO|ALL)_PROXY|(npm_config|PIP)_.*)$/i;

/** How this machine reaches a registry: certificates, proxies and the configuration of npm and pip. Only what fetches packages gets it. */
export const machineNetwork = (): Record<string, string> =>
  Object.fromEntries(
    Object.entries(process.env).filter(
      (entry): entry is [string, string] => entry[1] !== undefined && NETWORK.test(entry[0]),
    ),
  );

interface CliOptions {
  readonly env?: Record<string, string>;
  readonly cwd?: string;
  /** A file that output goes to, as a shell's `>` and `2>` would send it. */
  readonly to?: { readonly stdout?: string; readonly stderr?: string };
}

export function startCli(args: readonly string[], options: CliOptions = {}): RunningCli {
  const files = [options.to?.stdout, options.to?.stderr].map((path) => (path ? openSync(path, 'a') : 'pipe'));
  const child: ChildProcess = spawn(process.execPath, [BIN, ...args], {
    cwd: options.cwd ?? REPO,
    env: { ...baseEnv(), ...options.env },
    stdio: ['ignore', ...files] as ['ignore', 'pipe', 'pipe'],
  });
  for (const file of files) if (typeof file === 'number') closeSync(file);
  let stdout = '';
  let stderr = '';
  const listeners = new Set<() => void>();
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk;
    for (const listener of listeners) listener();
  });
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk;
    for (const listener of listeners) listener();
  });
  const done = new Promise<CliResult>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
  const until = (text: string | RegExp, output: () => string) =>
    new Promise<void>((resolve, reject) => {
      const check = () => {
        const found = typeof text === 'string' ? output().includes(text) : text.test(output());
        if (!found) return;
        listeners.delete(check);
        resolve();
      };
      listeners.add(check);
      check();
      void done.then((r) =>
        reject(new Error(`ended with ${r.code ?? r.signal} without saying ${text}:\n${r.stderr}`)),
      );
    });
  return {
    process: child,
    done,
    said: (text) => until(text, () => stderr),
    printed: (text) => until(text, () => stdout),
  };
}

let warm: ChildProcess | undefined;
let last: Promise<unknown> = Promise.resolve();

/** Node reads its variables when it starts; with the other one the program kills itself. */
const ITS_OWN = /^(?:NODE_.*|SWEBATCH_CRASH_AT)$/;

/**
 * The program with these words, until its end. One process answers, one line after the other, and loads the program once, which is most of what a
 * short line costs. What is killed, runs beside other lines or must end by itself has a process of its own (`startCli`).
 */
export function cli(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  if (options.to || Object.keys(options.env ?? {}).some((name) => ITS_OWN.test(name)))
    return startCli(args, options).done;
  const answer = last.then(
    () =>
      new Promise<CliResult>((resolve, reject) => {
        warm ??= fork(join(import.meta.dirname, 'warmProgram.mjs'), { execArgv: [], stdio: 'ignore' });
        const child = warm;
        const ended = (code: number | null) => {
          warm = undefined;
          reject(new Error(`the program ended with ${code} instead of answering ${args.join(' ')}`));
        };
        child.once('exit', ended);
        child.once('message', (result) => {
          child.off('exit', ended);
          resolve(result as CliResult);
        });
        child.send({ args, env: { ...baseEnv(), ...options.env }, cwd: options.cwd ?? REPO });
      }),
  );
  last = answer.catch(() => undefined);
  return answer;
}

export const tempDir = (name = 'swebatch-'): string => mkdtempSync(join(tmpdir(), name));
