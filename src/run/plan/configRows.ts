/** A resolved configuration as rows: each value with where it came from. */
import { configSchema } from '../../config/configSchema.ts';
import { at, isTree, leaves, type Tree } from '../../config/merge.ts';
import type { ResolvedConfig } from './resolveConfig.ts';

export interface ConfigRow {
  /** Dotted, as `-c` takes it; of several arms `NAME: agent.…` where they differ. */
  readonly path: string;
  readonly value: unknown;
  /** A file, `-c key=value`, `command line`, `arms`, `default`, or `derived` from other values. */
  readonly from: string;
}

export function configRows(resolved: ResolvedConfig): ConfigRow[] {
  const { arms, run, grading, images, dataset, origins } = resolved;
  const defaults = configSchema.parse({}) as Tree;
  const [first, ...others] = arms.map(({ name: _, ...sections }) => plain(sections));
  const shared = { ...first, ...plain({ run, grading, images, dataset }) };
  const row = (tree: Tree, path: string, name = ''): ConfigRow => {
    const value = at(tree, path.split('.'));
    const from = name === '' ? origin(path, value, origins, defaults) : 'arms';
    return { path: name === '' ? path : `${name}: ${path}`, value, from };
  };
  const differs = (path: string) =>
    others.some((other) => !same(at(other, path.split('.')), at(first!, path.split('.'))));
  const differing = new Set([first!, ...others].flatMap((arm) => leaves(arm)).filter(differs));
  return [
    ...leaves(shared).flatMap((path) => (differing.has(path) ? [] : row(shared, path))),
    ...arms.flatMap((arm, k) =>
      [...differing].flatMap((path) => {
        const tree = [first!, ...others][k]!;
        return at(tree, path.split('.')) === undefined ? [] : row(tree, path, arm.name);
      }),
    ),
  ];
}

function origin(path: string, value: unknown, origins: ResolvedConfig['origins'], defaults: Tree): string {
  const set = origins[path] ?? origins[Object.keys(origins).find((key) => path.startsWith(`${key}.`)) ?? ''];
  if (set !== undefined) return set;
  return same(value, at(defaults, path.split('.'))) ? 'default' : 'derived';
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Without what is undefined. */
const plain = (value: object): Tree => {
  const tree: unknown = JSON.parse(JSON.stringify(value));
  return isTree(tree) ? tree : {};
};
