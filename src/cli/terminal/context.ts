/**
 * The ground of every verb: exit codes, errors that speak to the person, where text goes. Data goes to stdout, people's text to stderr.
 */

import { relative } from 'node:path';
import { styleText } from 'node:util';
import { OutsideRootError } from '../../base/files/pathInside.ts';
import { isRecord } from '../../base/isRecord.ts';
import { fitted } from '../../base/text/columns.ts';
import { inert } from '../../base/text/inert.ts';
import type { Redactor } from '../../base/text/redact.ts';
import { stackOf } from '../../base/text/sourceLines.ts';
import { DatasetChangedError } from '../../dataset/datasetChanged.ts';
import { SourceError } from '../../formats/sourceError.ts';
import { ModelConfigError } from '../../model/model.ts';
import { withDollars } from '../../money.ts';
import type { ExitClass } from '../../outcome.ts';
import { type Notice, variable } from '../../run/caller.ts';
import { resultsRoot } from '../../run/resultsRoot.ts';
import { redactorOf } from '../../run/secrets.ts';
import { type NextStep, UserError } from '../../run/userError.ts';
import { asStorageError, isSqlite, lastOpened, type StorageCode, StorageError } from '../../store/open.ts';
import { blamed } from '../../userModule.ts';

/** Narrower than any terminal that people use. */
const NARROWEST = 40;
/** A terminal may not say how wide it is (`docker run -t` without a size says 0). */
export const widthOf = ({ columns }: Pick<NodeJS.WriteStream, 'columns'>): number =>
  Math.max(NARROWEST, columns || 80);

export const EXIT = { done: 0, gate: 1, usage: 2, incomplete: 3, budget: 4, storage: 5 } as const;

/**
 * Output that goes nowhere ends the output, not the work. A reader that goes away (`| head -1`) is not a failure. Data
 * that could not be written (a full disk) is one, and the exit code says so.
 */
const READER_GONE = new Set<string | undefined>(['EPIPE', 'EIO']);
let stdoutGone = false;
let lost: Error | undefined;
process.stderr.on('error', () => {});
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  stdoutGone = true;
  if (!READER_GONE.has(error.code)) lost ??= error;
});

/** The reason why some data did not reach stdout; undefined when all did, or the reader had gone. A file reports a failure a moment later. */
export async function lostOutput(): Promise<Error | undefined> {
  await new Promise<void>((written) => void process.stdout.write('', () => written()));
  return lost;
}

export function printData(text: string): void {
  if (!stdoutGone) process.stdout.write(text.endsWith('\n') ? text : `${text}\n`);
}

/** Prints without a line end of its own: a program reads these bytes. */
export function printExactly(text: string | Uint8Array): void {
  if (!stdoutGone) process.stdout.write(text);
}

/** Dollars stand beside nano-dollars. */
export const printJson = (value: unknown): void => printData(JSON.stringify(value, dollarsToo, 2));

const dollarsToo = (_: string, value: unknown): unknown =>
  isRecord(value) ? Object.fromEntries(Object.entries(value).flatMap(([k, v]) => withDollars(k, v))) : value;

/** Text for people: a terminal would break a longer line in the middle of a word. */
export const onTerminal = (text: string, stream: NodeJS.WriteStream): string =>
  stream.isTTY ? fitted(text, widthOf(stream)) : text;

/** The value with `--json`, else the text. */
export const printResult = (json: boolean, value: unknown, text: () => string): void =>
  json ? printJson(value) : printData(onTerminal(text(), process.stdout));

/** Keeps the terminal free of the secrets of this process. */
let ofTerminal: Redactor | undefined;

/** Hides these secrets too from now on; before, only those that the environment holds. */
export const keepFromTerminal = (redactor: Redactor): void => {
  ofTerminal = redactor;
};

export const forTerminal = (text: string): string => {
  ofTerminal ??= redactorOf(process.env);
  return ofTerminal.text(text);
};

export function say(text: string): void {
  const clean = paintMark(onTerminal(forTerminal(text), process.stderr));
  process.stderr.write(clean.endsWith('\n') ? clean : `${clean}\n`);
}

/** Prints a notice of the service. */
export const sayNotice = ({ level, text }: Notice): void =>
  say(inert(level === 'info' ? text : `${level}: ${text}`));

export const env = (name: string): string | undefined => variable(process.env, name);

/** A CI keeps a log, which a picture that is drawn again and again would fill. */
export const inCi = (): boolean => !['', '0', 'false'].includes(env('CI') ?? '');

/** Errors of a disk; they are not defects of swebatch. */
const DISK_ERRORS = new Set(['ENOSPC', 'EDQUOT', 'EROFS', 'EACCES', 'EPERM', 'EIO']);

/** Paths that a person named, where something else stands. */
const WRONG_PLACES: Readonly<Record<string, string>> = {
  EISDIR: 'a folder stands there; name a file',
  ENOTDIR: 'a file stands where a folder is needed; name another place',
};

/** Nothing is broken: another results root helps. */
const ANOTHER_ROOT = new Set<StorageCode>(['missing', 'read_only', 'older_schema']);

/** Turns any error of a verb into a message and an exit code. */
export function explain(error: unknown): { text: string; exitCode: number; kind: string } {
  // The first error is the cause; that something could not be closed after it is its consequence.
  if (error instanceof Error && error.name === 'SuppressedError' && 'suppressed' in error)
    return explain(error.suppressed);
  if (error instanceof UserError)
    return {
      text: [
        error.message,
        ...(error.next ? [nextStepText(error.next)] : []),
        ...(error.hint ? [error.hint] : []),
      ].join('\n  '),
      exitCode: EXIT.usage,
      kind: 'usage',
    };
  if (error instanceof DatasetChangedError || error instanceof SourceError)
    return { text: error.message, exitCode: EXIT.usage, kind: 'usage' };
  if (error instanceof OutsideRootError) return { text: error.message, exitCode: EXIT.usage, kind: 'usage' };
  if (error instanceof ModelConfigError) return { text: error.message, exitCode: EXIT.usage, kind: 'config' };
  if (error instanceof StorageError)
    return {
      text: error.message,
      exitCode: ANOTHER_ROOT.has(error.code) ? EXIT.usage : EXIT.storage,
      kind: 'storage',
    };
  // A query failed on a database that was fine when it was opened.
  if (isSqlite(error)) return explain(asStorageError(error, lastOpened()));
  const module = blamed(error);
  if (module) return { text: module.message, exitCode: EXIT.usage, kind: 'config' };
  const known = error instanceof Error ? error : new Error(String(error));
  const { code, path } = known as NodeJS.ErrnoException;
  const wrongPlace = code && path && WRONG_PLACES[code];
  if (wrongPlace) return { text: `cannot write ${path}: ${wrongPlace}`, exitCode: EXIT.usage, kind: 'usage' };
  // Node names the path of what cannot be opened, and not of what cannot be read after that.
  if (code && (known as NodeJS.ErrnoException).syscall === 'read')
    return { text: `a file cannot be read: ${known.message}`, exitCode: EXIT.usage, kind: 'usage' };
  if (code && DISK_ERRORS.has(code) && path)
    return {
      text: `cannot write ${path}: ${known.message}`,
      exitCode: EXIT.storage,
      kind: 'storage',
    };
  return {
    text: `swebatch failed: ${known.message}\n${env('SWEBATCH_DEBUG') ? stackOf(known) : '  set SWEBATCH_DEBUG=1 for the stack, and please report it'}`,
    exitCode: EXIT.storage,
    kind: 'internal',
  };
}

type Style = Parameters<typeof styleText>[0];

export const paintErr = (style: Style, text: string): string =>
  styleText(style, text, { stream: process.stderr });

const paintOut = (style: Style, text: string): string => styleText(style, text, { stream: process.stdout });

/** Red: nobody can say what the model would have done. Yellow: the model's own end, short of submitting. */
export const styleOfClass = (exitClass: ExitClass): Style => {
  if (exitClass === 'infra' || exitClass === 'config') return 'red';
  return exitClass === 'limit' || exitClass === 'model' ? 'yellow' : 'reset';
};

const OF_WORDS: Readonly<Record<string, Style | undefined>> = {
  complete: 'green',
  resolved: 'green',
  running: 'cyan',
  unresolved: 'yellow',
  empty_patch: 'yellow',
  paused: 'yellow',
  budget: 'yellow',
  interrupted: 'yellow',
  incomplete: 'red',
  failed: 'red',
  ungradable: 'red',
  infra: 'red',
};

/** A status of a run or an outcome of a grading, with the blanks around it. */
export const paintWord = (cell: string): string => {
  const style = OF_WORDS[cell.trim()];
  return style ? paintOut(style, cell) : cell;
};

/** The first word of a line for people says how much it matters. */
const OF_MARKS: readonly (readonly [mark: RegExp, style: Style])[] = [
  [/^(?:error|refused):/, ['red', 'bold']],
  [/^(?:warning|incomplete|interrupted)(?=[:;])/, 'yellow'],
];

export function paintMark(line: string): string {
  for (const [mark, style] of OF_MARKS) {
    const found = mark.exec(line)?.[0];
    if (found) return paintErr(style, found) + line.slice(found.length);
  }
  return line;
}

/** A command to copy; it has -o unless the results root is the default one. */
export function commandOn(root: string, words: string): string {
  if (root === resultsRoot(undefined)) return `"swebatch ${words}"`;
  const near = relative('', root);
  const path = near.startsWith('..') ? root : near || '.';
  return `"swebatch ${words} -o ${/^[\w./+@:-]+$/.test(path) ? path : `'${path}'`}"`;
}

const STEPS: {
  readonly [Do in Exclude<NextStep['do'], 'list_runs' | 'list_trials' | 'grade_run' | 'resume_run'>]: string;
} = {
  start_run: 'start one with "swebatch run", or name another results root with -o',
  name_results: 'name another results root with -o',
  name_dataset: 'add --subset, or set dataset.subset in the configuration',
  choose_name: 'choose another --run-id',
  allow_change:
    'choose another --run-id, restore what changed, or continue with --allow-config-change (recorded as a boundary)',
  set_baseline: 'set one with "swebatch baseline set RUN"',
  find_baseline: 'swebatch baseline show, swebatch ls; "last" takes the newest comparable run',
  join_shards: 'make one run of all shards with "swebatch join DIR..."',
  skip_remeasuring: 'leave --remeasure out',
  skip_unsupported: 'leave them out with --skip-unsupported, or choose others with -i, --filter or --slice',
  skip_grading:
    'leave --evaluate out to run them without verdicts, or leave these tasks out with --skip-unsupported',
  check_engine: 'start it, or see "swebatch doctor"',
};

/** The verb or flag for a next step. */
export function nextStepText(next: NextStep): string {
  if (next.do === 'list_runs') return `list them with ${commandOn(next.results, 'ls')}`;
  if (next.do === 'list_trials') return `list them with ${commandOn(next.results, `ls ${next.run}`)}`;
  if (next.do === 'grade_run') return `grade it with ${commandOn(next.results, `evaluate ${next.run}`)}`;
  if (next.do === 'resume_run') return `go on with ${commandOn(next.results, `resume ${next.run}`)}`;
  return STEPS[next.do];
}
