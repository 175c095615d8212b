/**
 * What every verb takes: `.env` of the working folder or the files of --env-file, which fill variables that the environment does not have, and
 * `--color`, which sets the variables that decide about colours everywhere.
 */

import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { errorText } from '../base/text/errorText.ts';
import { UserError } from '../run/userError.ts';

export const ENV_FILE = 'env-file';
export const ENV_FILE_SAYS =
  'file with NAME=value lines, read where the environment has no such variable; default: .env';

/** Fills `process.env`. Returns the arguments without --env-file. Throws a UserError for a named file that cannot be read. */
export function withEnvFile(args: readonly string[], env: NodeJS.ProcessEnv = process.env): string[] {
  const { files, rest } = takeEnvFiles(args);
  const texts = files.length > 0 ? files.map(named) : [unnamed('.env')];
  // The later file wins over the earlier one, as with Node.
  const found = Object.assign({}, ...texts.map((text) => parseEnv(text))) as Record<string, string>;
  for (const [name, value] of Object.entries(found)) env[name] ??= value;
  return rest;
}

function takeEnvFiles(args: readonly string[]): { files: string[]; rest: string[] } {
  const files: string[] = [];
  const rest: string[] = [];
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]!;
    if (arg === '--') return { files, rest: [...rest, ...args.slice(i)] };
    if (arg.startsWith(`--${ENV_FILE}=`)) files.push(arg.slice(ENV_FILE.length + 3));
    else if (arg === `--${ENV_FILE}`) files.push(args[++i] ?? '');
    else rest.push(arg);
  }
  return { files, rest };
}

function named(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new UserError(`--${ENV_FILE} ${path || '(nothing)'}: ${errorText(error)}`);
  }
}

/** Nobody asked for this one: a folder or a file of someone else in its place is not a mistake. */
function unnamed(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

export const COLOR = 'color';
export const COLOR_SAYS =
  'colours: always, never (or --no-color), or auto: where a terminal has them; NO_COLOR and FORCE_COLOR are read too';

const SET: Readonly<Record<string, Record<string, string | undefined> | undefined>> = {
  auto: {},
  always: { FORCE_COLOR: '1', NO_COLOR: undefined },
  never: { FORCE_COLOR: undefined, NO_COLOR: '1' },
};

const FLAG = /^--(no-)?color(?:=(.*))?$/;

/** Returns the arguments without it. */
export function withColor(args: readonly string[], env: NodeJS.ProcessEnv = process.env): string[] {
  const end = args.indexOf('--');
  const rest: string[] = [];
  for (const [i, arg] of args.entries()) {
    const found = end === -1 || i < end ? FLAG.exec(arg) : null;
    if (!found) {
      rest.push(arg);
      continue;
    }
    const when = found[1] ? 'never' : (found[2] ?? 'always');
    const set = SET[when];
    if (!set) throw new UserError(`--color=${when} must be one of ${Object.keys(SET).join(', ')}`);
    for (const [name, value] of Object.entries(set))
      if (value === undefined) delete env[name];
      else env[name] = value;
  }
  return rest;
}
