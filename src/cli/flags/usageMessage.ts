/** Rewrites yargs' error messages: names the argument as the person typed it, and suggests the closest known name. */
import { closest } from '../../base/text/closest.ts';
import { kebab, type Verb } from './verb.ts';

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
    return `${named(choice[1]!, command)} ${choice[2]} must be one of ${known}${close ? `; did you mean ${close}?` : ''}`;
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

function unknownMessage(names: readonly string[], args: readonly string[], verb: Verb): string {
  const known = flagsOf(verb);
  const said = names
    // yargs lists --a-b as aB too; a word that stands alone on the line was not a flag.
    .filter((name) => args.some((arg) => arg === name || flagOf(arg) === name))
    .map((name) => {
      if (args.includes(name)) return `unexpected argument "${name}"`;
      const close = closest(name, known);
      return `there is no option ${dashed(name)}${close ? `; did you mean --${close}?` : ''}`;
    });
  return said.join('\n') || `unknown: ${names.join(', ')}`;
}

const flagOf = (arg: string): string | undefined => /^--?(?:no-)?([^=]+)/.exec(arg)?.[1];

const flagsOf = (verb: Verb): string[] => [
  ...Object.entries(verb.flags).flatMap(([name, { place }]) => (place ? [] : kebab(name))),
  ...['help', 'version'],
];
