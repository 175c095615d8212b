/**
 * Modules that a configuration names: an agent, a model, an environment or a log parser of the user's. A module that
 * throws, or breaks the contract, is its author's to mend: the error says where.
 */
import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { z } from 'zod';

export type UserModule = Readonly<Record<string, unknown>>;

/** A module as errors name it. */
export interface NamedModule {
  /** "agent", "model", "environment", "log parser" */
  readonly what: string;
  readonly path: string;
}

/** Whether a name is a path, where a built-in name may stand too. */
export const isModulePath = (name: string): boolean => /[\\/]|\.[cm]?[jt]s$/.test(name);

/** Every module that was imported, by its file. */
const imported = new Map<string, NamedModule>();

/** Throws a sentence for the person who named the module; `key` is where it is named. */
export async function importUserModule(
  { key, what }: { readonly key: string; readonly what: string },
  path: string,
  baseDir: string,
): Promise<UserModule> {
  const file = resolve(baseDir, path);
  imported.set(file, { what, path });
  try {
    if (!existsSync(file)) throw new Error('there is no such file');
    return (await import(pathToFileURL(file).href)) as UserModule;
  } catch (error) {
    const line = placeOf(error)?.line;
    const at = line === undefined ? '' : `line ${line}: `;
    throw new Error(`${key}: ${path} cannot be loaded: ${at}${messageOf(error)}`, { cause: error });
  }
}

/** A module of the user's threw, or returned what nobody can use. */
export class UserModuleError extends Error {
  override readonly name = 'UserModuleError';
}

export const misused = ({ what, path }: NamedModule, problem: string, cause?: unknown): UserModuleError =>
  new UserModuleError(`your ${what} ${path} ${problem}`, { cause });

/** The same error in the words of its module, where it came through one; null where nothing of a module's is in its stack. */
export function blamed(error: unknown): UserModuleError | null {
  if (error instanceof UserModuleError) return error;
  const place = placeOf(error);
  return place && misused(place.module, `threw at line ${place.line}: ${messageOf(error)}`, error);
}

/** Wraps every call of a module: an error without a stack of ours, a text for example, is the module's too. */
function thrownBy(module: NamedModule, error: unknown): unknown {
  const isKnown = (frame: string): boolean => OURS.some((folder) => frame.includes(folder));
  // An abort belongs to the owner of its signal.
  if (
    error instanceof Error &&
    (error.name === 'AbortError' || placeOf(error) || framesOf(error).some(isKnown))
  )
    return error;
  return misused(module, `threw: ${messageOf(error)}`, error);
}

const FOLDER = `${dirname(fileURLToPath(import.meta.url))}/`;
const OURS = [FOLDER, pathToFileURL(FOLDER).href];

function messageOf(error: unknown): string {
  if (error instanceof Error) return error.message || error.name;
  try {
    return typeof error === 'object' ? (JSON.stringify(error) ?? 'nothing') : String(error);
  } catch {
    return 'something that is no error';
  }
}

/** The lines with places. A module that cannot be read is named before its own text, which stands there. */
function framesOf(error: unknown): readonly string[] {
  const stack = error instanceof Error && typeof error.stack === 'string' ? error.stack : '';
  const lines = stack.split('\n');
  return lines.filter((line, at) => /^\s{1,8}at /.test(line) || (at === 0 && error instanceof SyntaxError));
}

/** The innermost line of a module of the user's. */
function placeOf(error: unknown): { readonly module: NamedModule; readonly line: number } | null {
  for (const frame of framesOf(error))
    for (const [file, module] of imported)
      for (const name of [pathToFileURL(file).href, file]) {
        const at = frame.indexOf(`${name}:`);
        const line = at < 0 ? Number.NaN : Number.parseInt(frame.slice(at + name.length + 1), 10);
        if (!Number.isNaN(line)) return { module, line };
      }
  return null;
}

type Check = (value: unknown) => string | null;

/** The value that a function of a module makes at once. */
export function madeBy<T>(module: NamedModule, name: string, make: () => T, check: Check): T {
  let made: T;
  try {
    made = make();
  } catch (error) {
    throw thrownBy(module, error);
  }
  return usable(module, name, made, check);
}

function usable<T>(module: NamedModule, name: string, value: T, check: Check | undefined): T {
  const problem = check?.(value) ?? null;
  if (problem === null) return value;
  throw misused(module, `returned ${described(value)} from ${name}: ${problem}`);
}

/**
 * A module's object, as the contract has it: each function is called on its own object, and its error or result is checked.
 * `checks`: by name, why a result cannot be used.
 */
export function watchedModule<T extends object>(
  module: NamedModule,
  made: T,
  checks: Readonly<Record<string, Check>>,
  change: (name: string, args: unknown[]) => unknown[] = (_, args) => args,
): T {
  const known = new Map<string, unknown>();
  const wrap = (name: string, own: (...args: unknown[]) => unknown) => {
    const checked = (value: unknown): unknown =>
      usable(module, name, value, Object.hasOwn(checks, name) ? checks[name] : undefined);
    const failed = (error: unknown): never => {
      throw thrownBy(module, error);
    };
    return (...args: unknown[]): unknown => {
      let result: unknown;
      try {
        result = Reflect.apply(own, made, change(name, args));
      } catch (error) {
        failed(error);
      }
      return result instanceof Promise ? result.catch(failed).then(checked) : checked(result);
    };
  };
  // Also what is on the prototype of a class, so that a copy by spread has all of it.
  const copy = {};
  for (let from: object | null = made; from && from !== Object.prototype; from = Object.getPrototypeOf(from))
    for (const name of Object.getOwnPropertyNames(from)) {
      if (Object.hasOwn(copy, name)) continue;
      const get = (): unknown => {
        const own: unknown = Reflect.get(made, name);
        if (typeof own !== 'function') return own;
        const wrapped = known.get(name) ?? wrap(name, own as (...args: unknown[]) => unknown);
        known.set(name, wrapped);
        return wrapped;
      };
      Object.defineProperty(copy, name, { get, enumerable: true });
    }
  return copy as T;
}

/** The first thing that is wrong with a value; null where nothing is. */
export function problemWith(schema: z.ZodType, value: unknown): string | null {
  const issue = schema.safeParse(value).error?.issues[0];
  return issue ? `${issue.path.join('.') || 'it'}: ${issue.message}` : null;
}

/** The value as words of a sentence. */
export function described(value: unknown): string {
  if (value instanceof Promise) return 'a promise';
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** Which of these functions an object lacks; null where it has all. */
export function lacks(value: unknown, names: readonly string[]): string | null {
  const object = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>;
  const missing = names.filter((name) => typeof object[name] !== 'function');
  return missing.length === 0 ? null : missing.join(', ');
}
