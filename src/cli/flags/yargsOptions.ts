/** A table of flags as yargs knows it. */
import type { Argv, Options, PositionalOptions } from 'yargs';
import { type Flag, type Flags, kebab } from './flags.ts';

export const withFlags = (parser: Argv, flags: Flags): Argv =>
  Object.entries(flags).reduce(
    (all, [name, flag]) =>
      flag.place ? all.positional(name, positionalOf(flag)) : all.option(kebab(name), optionOf(flag)),
    parser,
  );

/** `compare <sides..>`: the verb and what stands behind it. */
export const commandOf = (verb: string, flags: Flags): string =>
  [verb, ...Object.entries(flags).flatMap(([name, flag]) => placeOf(name, flag) ?? [])].join(' ');

function placeOf(name: string, { place, list }: Flag): string | undefined {
  const words = list ? `${name}..` : name;
  return place && (place === 'required' ? `<${words}>` : `[${words}]`);
}

/** yargs asks whether a key is there, not whether it says something. */
const shared = ({ type, choices, default: fallback, describe }: Flag): PositionalOptions => ({
  ...(type && { type }),
  ...(choices && { choices }),
  ...(fallback !== undefined && { default: fallback }),
  ...(describe !== undefined && { describe }),
});

const positionalOf = (flag: Flag): PositionalOptions => ({
  ...shared(flag),
  ...(flag.place === 'required' && { demandOption: true }),
});

const optionOf = (flag: Flag): Options => ({
  ...(shared(flag) as Options),
  ...(flag.alias && { alias: flag.alias }),
  ...(flag.list && { array: true }),
  ...(flag.group && { group: flag.group }),
  ...(flag.coerce && { coerce: flag.coerce }),
  ...(flag.type !== 'boolean' && !flag.bare && { requiresArg: true }),
});
