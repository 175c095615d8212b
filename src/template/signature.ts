/** Arguments of filters and methods, bound as Python binds them. */

export type Named = Readonly<Record<string, unknown>>;

/** A callable with arguments by place or by name, as Python binds them. */
export interface Signature {
  /** Names of the arguments behind the value; null where it takes any. */
  readonly params: readonly string[] | null;
}
/** One sentence where arguments do not fit, or null. */
export function misfit(
  what: string,
  { params }: Signature,
  given: number,
  names: readonly string[],
): string | null {
  if (params === null) return null;
  if (given > params.length) return `${what} takes at most ${params.length} arguments here`;
  const unknown = names.find((name) => !params.slice(given).includes(name));
  return unknown === undefined ? null : `${what} takes no argument '${unknown}' here`;
}

/** The arguments in the order of their names. */
export const bind = ({ params }: Signature, args: readonly unknown[], named: Named): readonly unknown[] =>
  params === null ? args : params.map((name, i) => (i < args.length ? args[i] : own(named, name)));
export const own = (named: Named, name: string): unknown =>
  Object.hasOwn(named, name) ? named[name] : undefined;
