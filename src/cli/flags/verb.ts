/** A table of flags says once what a verb takes: yargs' options, help, the zod schema and the type of the arguments come from it. */

import type { Argv, Options, PositionalOptions } from 'yargs';
import type { z } from 'zod';
import { issueText } from '../../base/text/errorText.ts';
import { UserError } from '../../run/userError.ts';

export interface Flag {
  /** May be left out beside `choices`; with both, help shows both. */
  readonly type?: 'string' | 'number' | 'boolean';
  readonly choices?: readonly string[];
  /** Takes several values: `--name a b`, and repeats. */
  readonly list?: true;
  readonly default?: string | number | boolean;
  readonly alias?: string | readonly string[];
  readonly describe?: string;
  /** Title in help. */
  readonly group?: string;
  /** A positional argument. */
  readonly place?: 'required' | 'optional';
  /** `--name` without a value goes to `check`; without `bare`, yargs refuses it. */
  readonly bare?: true;
  readonly coerce?: (value: string | readonly string[]) => unknown;
  /** The whole schema of the value, where type, choices, list and default do not say enough. */
  readonly check?: z.ZodType;
}

/** By the name of the argument: `dataDir` is `--data-dir`. */
export type Flags = Readonly<Record<string, Flag>>;

type One<F> = F extends { choices: readonly (infer Choice)[] }
  ? Choice
  : F extends { type: 'number' }
    ? number
    : F extends { type: 'boolean' }
      ? boolean
      : string;
type Value<F> = F extends { check: infer Check extends z.ZodType }
  ? z.output<Check>
  : F extends { list: true }
    ? One<F>[]
    : One<F>;
type AlwaysThere<F> = F extends { check: infer Check extends z.ZodType }
  ? undefined extends z.output<Check>
    ? false
    : true
  : F extends { default: unknown } | { place: 'required' }
    ? true
    : false;

/** The checked arguments of a verb. */
export type Args<T extends Flags> = {
  readonly [K in keyof T as AlwaysThere<T[K]> extends true ? K : never]: Value<T[K]>;
} & {
  readonly [K in keyof T as AlwaysThere<T[K]> extends true ? never : K]?: Value<T[K]> | undefined;
};

/** Keeps the literal types, which `Args` reads. */
export const flags = <const T extends Flags>(table: T): T => table;

/** Puts flags under one title in help. */
export const grouped = <const T extends Flags>(group: string, table: T): T =>
  Object.fromEntries(Object.entries(table).map(([name, flag]) => [name, { ...flag, group }])) as Flags as T;

export const kebab = (name: string): string => name.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`);

/** Whether the value is there even when it was not given. */
export const alwaysThere = (flag: Flag): boolean => flag.default !== undefined || flag.place === 'required';

type Given = Readonly<Record<string, unknown>>;

/** yargs lets NaN, repeats and missing values through. Throws UserError with every problem. */
export async function checkArgs<T extends Flags>(flags: T, argv: Given): Promise<Args<T>> {
  if (isPlain(flags, argv)) return pick(flags, argv) as Args<T>;
  const parsed = (await schemaOf(flags)).safeParse(argv);
  if (parsed.success) return parsed.data as Args<T>;
  const problems = parsed.error.issues.map((issue) => {
    const name = String(issue.path[0]);
    const repeated = issue.code === 'invalid_type' && issue.path.length === 1 && Array.isArray(argv[name]);
    const typed = flags[name]?.place ? `<${name}>` : `--${kebab(name)}`;
    return `${typed}: ${repeated ? 'given more than once' : issueText(issue)}`;
  });
  throw new UserError(problems.join('\n'));
}

async function schemaOf(flags: Flags): Promise<z.ZodObject> {
  const { z } = await import('zod');
  const schema = (flag: Flag): z.ZodType => {
    if (flag.check) return flag.check;
    const one = flag.choices ? z.enum(flag.choices) : z[flag.type ?? 'string']();
    const value = flag.list ? z.array(one) : one;
    return alwaysThere(flag) ? value : value.optional();
  };
  return z.object(Object.fromEntries(Object.entries(flags).map(([name, flag]) => [name, schema(flag)])));
}

/** Loading zod takes as long as `ls` takes to answer: it is not needed where every value has the plain type that the table says. */
const isPlain = (flags: Flags, argv: Given): boolean =>
  Object.entries(flags).every(([name, { type, check, choices, list }]) => {
    if (check) return false;
    const value = argv[name];
    return value === undefined || (type !== 'number' && !choices && !list && typeof value === type);
  });

const pick = (flags: Flags, argv: Given): Given =>
  Object.fromEntries(Object.keys(flags).flatMap((name) => (name in argv ? [[name, argv[name]]] : [])));

export interface Verb {
  readonly command: string;
  readonly describe: string;
  readonly flags: Flags;
  builder(parser: Argv): Argv;
  /** Checks what was given. Returns the exit code; throws UserError for what a person can mend. */
  run(argv: Readonly<Record<string, unknown>>): Promise<number>;
}

interface VerbParts<T extends Flags> {
  readonly name: string;
  readonly describe: string;
  readonly flags: T;
  readonly examples: readonly (readonly [command: string, says: string])[];
  run(args: Args<T>): Promise<number>;
}

export const defineVerb = <T extends Flags>({
  name,
  describe,
  flags,
  examples,
  run,
}: VerbParts<T>): Verb => ({
  command: commandOf(name, flags),
  describe,
  flags,
  builder: (parser) =>
    examples.reduce((all, [command, says]) => all.example(command, says), withFlags(parser, flags)),
  run: async (argv) => run(await checkArgs(flags, argv)),
});

const withFlags = (parser: Argv, flags: Flags): Argv =>
  Object.entries(flags).reduce(
    (all, [name, flag]) =>
      flag.place ? all.positional(name, positionalOf(flag)) : all.option(kebab(name), optionOf(flag)),
    parser,
  );

/** `compare <sides..>`: the verb and what stands behind it. */
const commandOf = (verb: string, flags: Flags): string =>
  [verb, ...Object.entries(flags).flatMap(([name, flag]) => placeOf(name, flag) ?? [])].join(' ');

function placeOf(name: string, { place, list }: Flag): string | undefined {
  const words = list ? `${name}..` : name;
  return place && (place === 'required' ? `<${words}>` : `[${words}]`);
}

/** yargs checks whether a key is present, not whether it has a value. */
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
