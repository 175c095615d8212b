/**
 * Which settings make a run what it is, from the class that stands beside each key of the schema. Which rows a run takes is in neither hash
 * nor refusal by key, because one selection has many spellings: runs are compared by the hashes of the rows themselves.
 */
import { z } from 'zod';
import type { FieldClass } from '../base/fieldClass.ts';
import { sha256 } from '../base/sha256.ts';
import { allPaths, type Config, schemaAt } from './configSchema.ts';
import { at, isTree } from './merge.ts';

/** Undefined where the schema says none, which a test refuses. */
const classOf = (path: string): FieldClass | undefined =>
  z.globalRegistry.get(schemaAt(path.split('.'))!)?.class as FieldClass | undefined;

/** Of every path that can be set. */
export const FIELD_CLASSES: Readonly<Record<string, FieldClass | undefined>> = Object.fromEntries(
  allPaths().map((path) => [path, classOf(path)]),
);

/** In the order of the schema: a key that moves there changes every hash. */
const IDENTITY = Object.keys(FIELD_CLASSES).filter((path) => FIELD_CLASSES[path] === 'identity');

/** Keys that came after runs had been recorded: one that is not set leaves the hash of those runs as it was. */
const LATER: ReadonlySet<string> = new Set(['model.dialect', 'grading.pids_limit', 'grading.cpus']);

/** Hash over the identity fields, independent of the order of keys. */
export function configHash(config: Config): string {
  const identity = IDENTITY.map((path) => [path, at(config, path.split('.')) ?? null] as const).filter(
    ([path, value]) => value !== null || !LATER.has(path),
  );
  return sha256(canonical(identity));
}

/** JSON with sorted keys. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (!isTree(value)) return JSON.stringify(value) ?? 'null';
  return `{${Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`)
    .join(',')}}`;
}
