/**
 * Reads a plain command line with Node alone: loading yargs takes longer than `ls` takes to answer, and `ls` runs beside a run that
 * fills every core. Anything else, mistakes included, is left to yargs.
 */
import { parseArgs } from 'node:util';
import { type Flag, type Flags, kebab } from './verb.ts';

/** yargs and Node read these differently: `-ofile`, `-o=file`, a lone dash, an empty or quoted value, the words help, true and false. */
const NOT_PLAIN = /^-[^-].|^--?$|^$|=$|^(--[^=]*=)?["']|^(help|true|false)$/;

/** The arguments as yargs would give them to the verb, or null. */
export function plainArgs(flags: Flags, args: readonly string[]): Record<string, unknown> | null {
  const read = args.some((arg) => NOT_PLAIN.test(arg)) ? null : byNode(flags, args);
  if (!read) return null;
  const found: Record<string, unknown> = {};
  const positionals = [...read.positionals];
  for (const [name, flag] of Object.entries(flags)) {
    const values = flag.place ? positionals.splice(0, 1) : (read.values[kebab(name)] ?? []);
    if (values.length > 1 || !isPlain(flag, values[0])) return null;
    const value = values[0] ?? flag.default;
    if (value !== undefined) found[name] = value;
  }
  return positionals.length === 0 ? found : null;
}

function isPlain(flag: Flag, value: string | boolean | undefined): boolean {
  if (value === undefined) return flag.place !== 'required';
  if (flag.list || flag.coerce || flag.type === 'number') return false;
  return flag.choices === undefined || flag.choices.includes(String(value));
}

type Read = {
  values: Readonly<Record<string, readonly (string | boolean)[] | undefined>>;
  positionals: readonly string[];
};

function byNode(flags: Flags, args: readonly string[]): Read | null {
  const options = Object.entries(flags).flatMap(([name, { place, type, alias }]) => {
    if (place) return [];
    const short = typeof alias === 'string' && alias.length === 1 ? { short: alias } : {};
    return [
      [kebab(name), { type: type === 'boolean' ? type : ('string' as const), multiple: true, ...short }],
    ];
  });
  try {
    return parseArgs({
      args: [...args],
      options: Object.fromEntries(options),
      allowPositionals: true,
    }) as unknown as Read;
  } catch {
    return null;
  }
}
