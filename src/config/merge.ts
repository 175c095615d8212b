/** Merges layers of a configuration, left to right: objects merge, other values replace, undefined is ignored. */

export type Tree = { readonly [key: string]: unknown };

/** A configuration after a rule, with the messages of that rule. */
export interface Rewritten {
  readonly tree: Tree;
  readonly warnings: readonly string[];
  readonly problems: readonly string[];
}

export const isTree = (value: unknown): value is Tree =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Neither input is changed. */
export function merge(base: Tree, over: Tree): Tree {
  const out: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(over)) {
    if (value === undefined) continue;
    const before = Object.hasOwn(out, key) ? out[key] : undefined;
    define(out, key, isTree(value) ? merge(isTree(before) ? before : {}, value) : value);
  }
  return out;
}

/** A key named __proto__ is a key, not a prototype. */
const define = (target: object, key: string, value: unknown): void => {
  Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
};

/** Dotted paths of the values that are not objects; an empty object counts as a value. */
export function leaves(tree: Tree, prefix = ''): string[] {
  return Object.entries(tree).flatMap(([key, value]) => {
    const path = prefix ? `${prefix}.${key}` : key;
    if (value === undefined) return [];
    return isTree(value) && Object.keys(value).length > 0 ? leaves(value, path) : [path];
  });
}

export function at(tree: Tree, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (value, key) => (isTree(value) && Object.hasOwn(value, key) ? value[key] : undefined),
    tree,
  );
}

export function nest(path: readonly string[], value: unknown): Tree {
  const [key, ...rest] = path as [string, ...string[]];
  const out = {};
  define(out, key, rest.length === 0 ? value : nest(rest, value));
  return out;
}

/** The tree without one value; objects that become empty go too. */
export function without(tree: Tree, path: readonly string[]): Tree {
  const [key, ...rest] = path as [string, ...string[]];
  if (!Object.hasOwn(tree, key)) return tree;
  const { [key]: child, ...others } = tree;
  if (rest.length === 0 || !isTree(child)) return others;
  const left = without(child, rest);
  return Object.keys(left).length === 0 ? others : { ...others, [key]: left };
}
