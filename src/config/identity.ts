/**
 * The settings that identify a run, from the class beside each key of the schema. The selection of rows is not among them, because one
 * selection has many spellings; the hashes of the rows are compared instead.
 */

import { z } from 'zod';
import type { FieldClass } from '../base/fieldClass.ts';
import { sha256 } from '../base/sha256.ts';
import { environmentNames } from '../environment/environments.ts';
import { allPaths, type Config, schemaAt } from './configSchema.ts';
import { at, isTree } from './merge.ts';

/** Undefined where the schema has no class; a test refuses that. */
const classOf = (path: string): FieldClass | undefined =>
  z.globalRegistry.get(schemaAt(path.split('.'))!)?.class as FieldClass | undefined;

/** The class of every path that can be set. */
export const FIELD_CLASSES: Readonly<Record<string, FieldClass | undefined>> = Object.fromEntries(
  allPaths().map((path) => [path, classOf(path)]),
);

/** In the order of the schema, so moving a key there changes every hash. */
const IDENTITY = Object.keys(FIELD_CLASSES).filter((path) => FIELD_CLASSES[path] === 'identity');

/** Keys that are newer than recorded runs. One that is not set is left out of the hash, so that old hashes stay; so is a key of one kind of environment alone. */
const LATER: ReadonlySet<string> = new Set([
  'model.dialect',
  'model.cache_ttl',
  'grading.pids_limit',
  'grading.cpus',
  'agent.prompt_template',
  'agent.command',
  'gateway.models',
  'gateway.provider_tools',
  'gateway.translate',
]);

const isOwnKey = (path: string): boolean =>
  environmentNames().some((name) => path.startsWith(`environment.${name}.`));

/** Values that stood here before a key lost its default: a configuration that leaves it out keeps its hash. */
const FORMER_DEFAULTS: Readonly<Record<string, unknown>> = { 'grading.memory': '0' };

/** Hash over the identity fields, independent of the order of keys. */
export function configHash(config: Config): string {
  const identity = IDENTITY.map(
    (path) => [path, at(config, path.split('.')) ?? FORMER_DEFAULTS[path] ?? null] as const,
  ).filter(([path, value]) => value !== null || !(LATER.has(path) || isOwnKey(path)));
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
