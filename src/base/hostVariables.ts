/**
 * Variables of this machine that a task wants in its containers. A task names them; their values are given by its user, and are in no
 * record.
 */

/** Under which name a container gets a variable of this machine, to the name that it has here. */
export type WantedVariables = Readonly<Record<string, string>>;
export type VariableValues = Readonly<Record<string, string>>;

/** Variables that have a value. */
export const givenOf = (wanted: WantedVariables = {}, values: VariableValues = {}): Record<string, string> =>
  Object.fromEntries(
    Object.entries(wanted).flatMap(([key, name]) =>
      Object.hasOwn(values, name) ? [[key, values[name]!] as const] : [],
    ),
  );

/** The variables of a container: a value that is given goes over a default. */
export function withVariables<
  T extends {
    readonly env?: Readonly<Record<string, string>> | undefined;
    readonly variables?: WantedVariables | undefined;
  },
>(needs: T, values: VariableValues | undefined): Omit<T, 'variables'> {
  const { variables, ...rest } = needs;
  if (variables === undefined) return needs;
  return { ...rest, env: { ...needs.env, ...givenOf(variables, values) } };
}
