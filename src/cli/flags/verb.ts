/**
 * A table of flags says once what a verb takes: yargs' options, help, the zod schema and the type of the arguments come from it. Nothing here
 * needs zod, because `ls` has flags.
 */
import type { Argv } from 'yargs';
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

export const string = (describe: string) => ({ type: 'string', describe }) as const;

/** Off unless it is given. */
export const toggle = (describe: string) => ({ type: 'boolean', default: false, describe }) as const;

export const oneOf = <const Choices extends readonly string[]>(choices: Choices, describe: string) =>
  ({ choices, bare: true, describe }) as const;

export const output = {
  alias: 'o',
  default: 'results',
  ...string('results root: holds swebatch.db and a folder for each run'),
} as const;

export const json = toggle('data as JSON on stdout');

/** A recorded run that has to be named. */
export const namedRun = { place: 'required', ...string('name, unique prefix, or "last"') } as const;

/** The formats of `report` and `compare`. */
export const FORMATS = ['terminal', 'markdown', 'json', 'html'] as const;
export const format = {
  choices: FORMATS,
  describe: 'default: what the name of --to ends in, else terminal',
} as const;
export const to = string('write to this file instead of stdout');

export const kebab = (name: string): string => name.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`);

type Given = Readonly<Record<string, unknown>>;

/** yargs lets NaN, repeats and missing values through. Throws UserError with every problem. */
export async function checkArgs<T extends Flags>(flags: T, argv: Given): Promise<Args<T>> {
  if (isPlain(flags, argv))
    return Object.fromEntries(Object.entries(argv).filter(([name]) => name in flags)) as Args<T>;
  const parsed = (await schemaOf(flags)).safeParse(argv);
  if (parsed.success) return parsed.data as Args<T>;
  const problems = parsed.error.issues.map((issue) => {
    const name = String(issue.path[0]);
    const repeated = issue.code === 'invalid_type' && issue.path.length === 1 && Array.isArray(argv[name]);
    const typed = flags[name]?.place ? `<${name}>` : `--${kebab(name)}`;
    const given = issue.code === 'too_big' ? ` (it is ${argv[name]})` : '';
    return `${typed}: ${repeated ? 'given more than once' : `${issueText(issue)}${given}`}`;
  });
  throw new UserError(problems.join('\n'));
}

/** Loading zod takes as long as `ls` takes to answer: it is not needed where every value has the plain type that the table says. */
const isPlain = (flags: Flags, argv: Given): boolean =>
  Object.entries(flags).every(([name, { type, check, choices, list }]) => {
    if (check) return false;
    const value = argv[name];
    return value === undefined || (type !== 'number' && !choices && !list && typeof value === type);
  });

async function schemaOf(flags: Flags): Promise<z.ZodObject> {
  const { z } = await import('zod');
  const schema = (flag: Flag): z.ZodType => {
    if (flag.check) return flag.check;
    const one = flag.choices ? z.enum(flag.choices) : z[flag.type ?? 'string']();
    const value = flag.list ? z.array(one) : one;
    return flag.default !== undefined || flag.place === 'required' ? value : value.optional();
  };
  return z.object(Object.fromEntries(Object.entries(flags).map(([name, flag]) => [name, schema(flag)])));
}

export interface Verb {
  readonly command: string;
  readonly describe: string;
  readonly flags: Flags;
  builder(parser: Argv): Argv;
  /** Checks what was given. Returns the exit code; throws UserError for what a person can mend. */
  run(argv: Given): Promise<number>;
}

export const defineVerb = <T extends Flags>(verb: {
  readonly name: string;
  readonly describe: string;
  readonly flags: T;
  readonly examples: readonly (readonly [command: string, says: string])[];
  /** Resolves to the exit code. */
  run(args: Args<T>): Promise<number>;
}): Verb => ({
  command: commandOf(verb.name, verb.flags),
  describe: verb.describe,
  flags: verb.flags,
  builder(parser) {
    for (const [name, flag] of Object.entries(verb.flags))
      if (flag.place) parser.positional(name, yargsOption(flag));
      else parser.option(kebab(name), yargsOption(flag));
    for (const [command, says] of verb.examples) parser.example(command, says);
    return parser;
  },
  run: async (argv) => verb.run(await checkArgs(verb.flags, argv)),
});

/** `compare <sides..>`: the verb and what stands behind it. */
function commandOf(verb: string, flags: Flags): string {
  const places = Object.entries(flags).flatMap(([name, { place, list }]) => {
    const words = list ? `${name}..` : name;
    return place ? [place === 'required' ? `<${words}>` : `[${words}]`] : [];
  });
  return [verb, ...places].join(' ');
}

/** yargs checks whether a key is present, not whether it has a value. */
function yargsOption({ place, list, bare, check: _, ...told }: Flag): object {
  if (place) return { ...told, ...(place === 'required' && { demandOption: true }) };
  const needsValue = told.type !== 'boolean' && !bare;
  return { ...told, ...(list && { array: true }), ...(needsValue && { requiresArg: true }) };
}
