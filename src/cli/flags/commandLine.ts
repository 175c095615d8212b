/**
 * Reads a command line before a verb does: what every verb takes (`--env-file`, `--color`), and what is wrong with it in the
 * words of the person who typed it.
 */

import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { ownEntry } from '../../base/isRecord.ts';
import { closest } from '../../base/text/closest.ts';
import { errorText } from '../../base/text/errorText.ts';
import { visibleName } from '../../base/text/inert.ts';
import { UserError } from '../../run/userError.ts';
import { kebab, type Verb } from './verb.ts';

export const ENV_FILE = 'env-file';
export const ENV_FILE_SAYS =
  'file with NAME=value lines, read where the environment has no such variable; default: .env';

/** Fills `process.env`. Returns the arguments without --env-file. Throws a UserError for a named file that cannot be read. */
export function withEnvFile(args: readonly string[], env: NodeJS.ProcessEnv = process.env): string[] {
  const texts: string[] = [];
  const rest: string[] = [];
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]!;
    if (arg === '--') {
      rest.push(...args.slice(i));
      break;
    }
    if (arg.startsWith(`--${ENV_FILE}=`)) texts.push(envFile(arg.slice(ENV_FILE.length + 3)));
    else if (arg === `--${ENV_FILE}`) texts.push(envFile(args[++i] ?? ''));
    else rest.push(arg);
  }
  if (texts.length === 0) {
    // Nobody asked for this one: a folder or a file of someone else in its place is not a mistake.
    try {
      texts.push(readFileSync('.env', 'utf8'));
    } catch {}
  }
  // The later file wins over the earlier one, as with Node.
  const found = Object.assign({}, ...texts.map((text) => parseEnv(text))) as Record<string, string>;
  for (const [name, value] of Object.entries(found)) env[name] ??= value;
  return rest;
}

function envFile(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new UserError(`--${ENV_FILE} ${path || '(nothing)'}: ${errorText(error)}`);
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

/** Rewrites yargs' error messages: names the argument as the person typed it, and suggests the closest known name. */
export function usageMessage(message: string, args: readonly string[], verb?: Verb): string {
  const command = verb?.command ?? '';
  if (message.startsWith('Not enough non-option arguments')) {
    const needed = command.match(/<[^>]+>/g) ?? [];
    const there = Number(/got (\d+)/.exec(message)?.[1] ?? 0);
    const missing = needed.slice(there).join(' and ').replaceAll('..', '');
    return `${missing} ${needed.length - there > 1 ? 'are' : 'is'} missing: swebatch ${command}`;
  }
  const valueless = /^Not enough arguments following: (.+)$/.exec(message)?.[1];
  if (valueless) return `${dashed(valueless)} needs a value`;
  const unknown = /^Unknown arguments?: (.+)$/s.exec(message)?.[1];
  if (unknown && verb) return unknownMessage(unknown.split(', '), args, verb);
  const choice = /Argument: (.+), Given: (.+), Choices: (.+)$/m.exec(message);
  if (choice) {
    const known = choice[3]!.replaceAll('"', '');
    const close = closest(choice[2]!.replaceAll('"', ''), known.split(', '));
    const swapped = args.some((arg) => known.split(', ').includes(arg));
    const help = close ? `; did you mean ${close}?` : swapped ? `; the order is: swebatch ${command}` : '';
    return `${named(choice[1]!, command)} ${choice[2]} must be one of ${known}${help}`;
  }
  return message;
}

/** yargs reads `--evaluate=yes` as false. */
export function valueOfSwitch(args: readonly string[], verb: Verb | undefined): string | undefined {
  const switches = Object.entries(verb?.flags ?? {}).flatMap(([name, { type }]) =>
    type === 'boolean' ? kebab(name) : [],
  );
  const end = args.indexOf('--');
  for (const arg of end === -1 ? args : args.slice(0, end)) {
    const [, name = '', value = ''] = /^--(?:no-)?([^=]+)=(.*)$/s.exec(arg) ?? [];
    if (switches.includes(name) && value !== 'true' && value !== 'false')
      return `--${name} takes no value (it is "${value}"); say --${name} or --no-${name}`;
  }
  return undefined;
}

const dashed = (name: string): string => (name.length === 1 ? `-${name}` : `--${name}`);
const named = (name: string, command: string): string => (command.includes(name) ? name : dashed(name));

/** What flags were called before. */
const RENAMED: Readonly<Record<string, string>> = { dialect: 'harness' };

function unknownMessage(names: readonly string[], args: readonly string[], { flags }: Verb): string {
  const options = Object.entries(flags).flatMap(([name, { place }]) => (place ? [] : kebab(name)));
  const flagOf = (arg: string) => /^--?(?:no-)?([^=]+)/.exec(arg)?.[1];
  const said = names
    // yargs lists --a-b as aB too; a word that stands alone on the line was not a flag.
    .filter((name) => args.some((arg) => arg === name || flagOf(arg) === name))
    .map((name) => {
      if (args.includes(name)) return `unexpected argument "${name}"`;
      const close = options.includes(ownEntry(RENAMED, name) ?? '')
        ? RENAMED[name]
        : closest(name, [...options, 'help', 'version']);
      return `there is no option ${visibleName(dashed(name))}${close ? `; did you mean --${close}?` : ''}`;
    });
  return said.join('\n') || `unknown: ${names.join(', ')}`;
}
