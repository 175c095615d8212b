/** A table of flags says once what a verb takes: yargs' options, help, the zod schema and the type of the arguments come from it. */
import type { z } from 'zod';

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
