/**
 * `workers: { alias: 'w', type: 'number', describe: 'slots' }`: a table of flags says once what a verb takes. How words are read, help, completion
 * and the type of the arguments come from it. Nothing here needs zod, because `ls` has flags.
 */
import type { z } from 'zod';
import { issueText } from '../../base/text/errorText.ts';
import { UserError } from '../../run/userError.ts';

export interface Flag {
  /** May be left out beside `choices`; with both, help shows both. A boolean with choices may have one of them behind `=`: `--color=never`. */
  readonly type?: 'string' | 'number' | 'boolean';
  readonly choices?: readonly string[];
  /** Several values: `--name a b`, and repeats. */
  readonly list?: true;
  /** One value each time it is given; a list, empty without it. */
  readonly repeats?: true;
  readonly default?: string | number | boolean;
  readonly alias?: string | readonly string[];
  readonly describe?: string;
  /** Title in help. */
  readonly group?: string;
  /** A positional argument. */
  readonly place?: 'required' | 'optional';
  /** `--name` alone is an empty value. */
  readonly valueOptional?: true;
  /** The schema of the whole value, where type, choices, list and default do not say enough. */
  readonly check?: z.ZodType;
}

/** The flags by the name of the argument: `dataDir` is `--data-dir`. */
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
  : F extends { list: true } | { repeats: true }
    ? One<F>[]
    : One<F>;
type AlwaysThere<F> = F extends { check: infer Check extends z.ZodType }
  ? undefined extends z.output<Check>
    ? false
    : true
  : F extends { default: unknown } | { place: 'required' } | { repeats: true }
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
  ({ choices, describe }) as const;

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

/** A switch needs no value; one with choices may have one of them behind `=`. */
export const isSwitch = ({ type }: Flag): boolean => type === 'boolean';

/** Values by the names of their flags, as typed: nothing is checked but choices. */
export type GivenValues = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

/** Throws UserError with every value that is not what its flag says. */
export function checkArgs<T extends Flags>(flags: T, given: GivenValues): Args<T> {
  const problems: string[] = [];
  const checked = Object.entries(flags).map(([name, flag]) => {
    const { value, wrong } = settledValue(flag, given[name]);
    for (const one of wrong) problems.push(`${flag.place ? `<${name}>` : `--${kebab(name)}`}: ${one}`);
    return [name, value];
  });
  if (problems.length > 0) throw new UserError(problems.join('\n'));
  return Object.fromEntries(checked) as Args<T>;
}

/** Only a flag with a `check` has loaded zod, which takes as long as `ls` takes to answer. */
function settledValue(flag: Flag, given: GivenValues[string]): { value?: unknown; wrong: readonly string[] } {
  const said = given ?? (flag.repeats ? [] : flag.default);
  if (Array.isArray(said) && !flag.list && !flag.repeats) return { wrong: ['given more than once'] };
  const value = flag.type === 'number' && typeof said === 'string' ? numberIn(said) : said;
  if (!flag.check) return { value, wrong: Number.isNaN(value) ? ['must be a number'] : [] };
  const parsed = flag.check.safeParse(value);
  if (parsed.success) return { value: parsed.data, wrong: [] };
  const tooBig = (issue: z.core.$ZodIssue) => (issue.code === 'too_big' ? ` (it is ${value})` : '');
  return { wrong: parsed.error.issues.map((issue) => `${issueText(issue)}${tooBig(issue)}`) };
}

const numberIn = (text: string): number => (text.trim() === '' ? Number.NaN : Number(text));

export interface Verb {
  readonly name: string;
  /** `compare <sides..>`: the verb and what stands behind it. */
  readonly usage: string;
  readonly describe: string;
  readonly flags: Flags;
  readonly examples: readonly (readonly [command: string, says: string])[];
  /** Checks the values. Returns the exit code; throws UserError for what a person can mend. */
  run(given: GivenValues): Promise<number>;
}

export const defineVerb = <T extends Flags>(verb: {
  readonly name: string;
  readonly describe: string;
  readonly flags: T;
  readonly examples: Verb['examples'];
  /** Resolves to the exit code. */
  run(args: Args<T>): Promise<number>;
}): Verb => ({
  ...verb,
  usage: usageOf(verb.name, verb.flags),
  run: async (given) => verb.run(checkArgs(verb.flags, given)),
});

function usageOf(verb: string, flags: Flags): string {
  const places = Object.entries(flags).flatMap(([name, { place, list }]) => {
    const words = list ? `${name}..` : name;
    return place ? [place === 'required' ? `<${words}>` : `[${words}]`] : [];
  });
  return [verb, ...places].join(' ');
}
