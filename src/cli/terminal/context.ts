/**
 * What every verb shares: exit codes, errors that speak to the person, where text goes. Data goes to stdout, people's text to stderr.
 */
import { dirname, relative, resolve } from 'node:path';
import { ModelConfigError } from '../../model/failure.ts';
import {
  asStorageError,
  isSqlite,
  lastOpened,
  openStore,
  StorageError,
  type Store,
} from '../../store/open.ts';
import { findRun, hasRuns, type RunRow } from '../../store/records/runs.ts';
import { forTerminal } from './secrets.ts';

/** design.md, CLI. */
export const EXIT = { done: 0, gate: 1, usage: 2, incomplete: 3, budget: 4, storage: 5 } as const;

/** A problem that the person at the terminal can act on; `hint` is the next thing to do. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly exitCode: number;
  readonly hint: string | undefined;
  constructor(message: string, more: { exitCode?: number; hint?: string } = {}) {
    super(message);
    this.exitCode = more.exitCode ?? EXIT.usage;
    this.hint = more.hint;
  }
}

/**
 * Output that goes nowhere ends the output, not the work. A reader that goes away (`| head -1`) is no failure; data that was asked for
 * and could not be written (a full disk) is one, told by the exit code.
 */
const READER_GONE = new Set<string | undefined>(['EPIPE', 'EIO']);
let stdoutGone = false;
let lost: Error | undefined;
process.stderr.on('error', () => {});
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  stdoutGone = true;
  if (!READER_GONE.has(error.code)) lost ??= error;
});

/** Why not all data reached stdout; undefined when it did, or nobody wanted it any more. A file tells of a failure a moment later. */
export async function lostOutput(): Promise<Error | undefined> {
  await new Promise<void>((written) => void process.stdout.write('', () => written()));
  return lost;
}

export function printData(text: string): void {
  if (!stdoutGone) process.stdout.write(text.endsWith('\n') ? text : `${text}\n`);
}

/** Not a byte more or less: what a program reads. */
export function printExactly(text: string): void {
  if (!stdoutGone) process.stdout.write(text);
}

export const printJson = (value: unknown): void => printData(JSON.stringify(value, null, 2));

export function say(text: string): void {
  const clean = forTerminal(text);
  process.stderr.write(clean.endsWith('\n') ? clean : `${clean}\n`);
}

export const env = (name: string): string | undefined => {
  const value = process.env[name];
  return value === undefined || value === '' ? undefined : value;
};

export const resultsRoot = (option: string | undefined): string => resolve(option ?? 'results');

/** A command for the person to copy: it names the results root where that is not the default one. */
export function commandOn(root: string, words: string): string {
  if (root === resultsRoot(undefined)) return `"swebatch ${words}"`;
  const near = relative('', root);
  const path = near.startsWith('..') ? root : near || '.';
  return `"swebatch ${words} -o ${/^[\w./+@:-]+$/.test(path) ? path : `'${path}'`}"`;
}

export const databasePath = (root: string): string => resolve(root, 'swebatch.db');

export function openForReading(root: string): Store {
  return openStore(databasePath(root), { readonly: true });
}

/** A run by name, unique prefix or "last"; anything else says what there is. */
export function requireRun(store: Store, selector: string): RunRow {
  const found = findRun(store, selector);
  if ('id' in found) return found;
  if (found.candidates.length > 0)
    throw new CliError(`"${selector}" names several runs: ${found.candidates.join(', ')}`);
  if (!hasRuns(store))
    throw new CliError(`${dirname(store.name)} holds no runs yet`, {
      hint: 'start one with "swebatch run", or name another results root with -o',
    });
  throw new CliError(`there is no run "${selector}"`, {
    hint: `list them with ${commandOn(dirname(store.name), 'ls')}`,
  });
}

/** What a disk says, and no defect of ours. */
const DISK_ERRORS = new Set(['ENOSPC', 'EDQUOT', 'EROFS', 'EACCES', 'EPERM', 'EIO', 'ENOTDIR']);

/** Turns whatever a verb threw into a message and an exit code. */
export function explain(error: unknown): { text: string; exitCode: number; kind: string } {
  if (error instanceof CliError)
    return {
      text: error.hint ? `${error.message}\n  ${error.hint}` : error.message,
      exitCode: error.exitCode,
      kind: 'usage',
    };
  if (error instanceof ModelConfigError) return { text: error.message, exitCode: EXIT.usage, kind: 'config' };
  if (error instanceof StorageError)
    return {
      text: error.message,
      exitCode: error.code === 'missing' ? EXIT.usage : EXIT.storage,
      kind: 'storage',
    };
  // Of a query on a database that was fine when it was opened.
  if (isSqlite(error)) return explain(asStorageError(error, lastOpened()));
  const known = error instanceof Error ? error : new Error(String(error));
  const { code, path } = known as NodeJS.ErrnoException;
  if (code && DISK_ERRORS.has(code) && path)
    return {
      text: `cannot write ${path}: ${known.message}`,
      exitCode: EXIT.storage,
      kind: 'storage',
    };
  return {
    text: `swebatch failed: ${known.message}\n${env('SWEBATCH_DEBUG') ? known.stack : '  set SWEBATCH_DEBUG=1 for the stack, and please report it'}`,
    exitCode: EXIT.storage,
    kind: 'internal',
  };
}

/** Control characters, escapes and bidi overrides made visible: text of models and containers never steers a terminal. */
export function inert(text: string): string {
  return text.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (c) => (c === '\r' ? '' : `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`),
  );
}
