/** The layers of a configuration: a file's place and text, read as PyYAML reads it, and `a.b=value`. */
import { isAbsolute, join } from 'node:path';
import { PACKAGE_ROOT } from '../base/files/packageFile.ts';
import { closest } from '../base/text/closest.ts';
import { visibleName } from '../base/text/inert.ts';
import { parsePythonYaml, YamlError } from '../base/text/yaml.ts';
import { nest, type Tree } from './merge.ts';

/** YAML with merge keys; a key given twice is an error here. Throws a ConfigError that names the file. */
export function readYaml(text: string, path: string): unknown {
  try {
    return parsePythonYaml(text);
  } catch (error) {
    if (!(error instanceof YamlError)) throw error;
    throw new ConfigError(error.problems.map((problem) => `${path}: ${problem}`));
  }
}

/** Text of a file, or null when there is none. */
export type ReadFile = (path: string) => string | null;

interface Found {
  readonly path: string;
  readonly text: string;
}

export const PACKAGE_CONFIGS = join(PACKAGE_ROOT, 'configs');

export const BUILT_IN_CONFIGS = [
  'default',
  'demo',
  'nightly',
  'swebench',
  'swebench-text',
  'agents',
  'demo-agents',
  'demo-skill',
] as const;

/** Finds the file of a `-c`: the path as given, then the package's `configs/`; the ending `.yaml` may be left out. */
export function findConfig(name: string, cwd: string, readFile: ReadFile): Found {
  const asGiven = isAbsolute(name) ? name : join(cwd, name);
  const inPackage = join(PACKAGE_CONFIGS, name);
  const spellings = (path: string) => (/\.ya?ml$/.test(path) ? [path] : [path, `${path}.yaml`]);
  const candidates = [...spellings(asGiven), ...(isAbsolute(name) ? [] : spellings(inPackage))];
  for (const path of candidates) {
    const text = readFile(path);
    if (text !== null) return { path, text };
  }
  const close = closest(name.replace(/\.ya?ml$/, ''), BUILT_IN_CONFIGS);
  if (!close && /^\w+(?:\.\w+)+$/.test(name) && spellings(name).length > 1)
    throw new ConfigError([
      `there is no configuration "${name}"; where it is a key, it takes a value: ${name}=VALUE`,
    ]);
  throw new ConfigError([
    `there is no configuration "${visibleName(name)}"; ${close ? `did you mean "${close}"? Looked` : 'looked'} for ${candidates.join(', ')}. Built in are ${BUILT_IN_CONFIGS.join(', ')}`,
  ]);
}

/** Parses `a.b=value` of the command line: split at the first "="; the value is JSON if it parses, else text. */
export function parseKeyValue(spec: string): Tree {
  const split = spec.indexOf('=');
  const path = spec.slice(0, split).split('.');
  if (split < 1 || path.some((segment) => segment.trim() === ''))
    throw new ConfigError([`-c ${spec}: expected key.path=value, with no empty part in the path`]);
  return nest(path, parseValue(spec.slice(split + 1)));
}

function parseValue(text: string): unknown {
  // Python reads 1_000 in a file as a number.
  if (/^[-+]?\d{1,15}(?:_\d{1,15}){1,5}$/.test(text)) return Number(text.replaceAll('_', ''));
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** A spec is key=value when its "=" comes after nothing but the letters of a key; a path with "=" in it can be given as ./path. */
export const isKeyValue = (spec: string): boolean => /^[\w.\s-]*=/.test(spec) && !spec.startsWith('./');

/** Everything that is wrong with a configuration, at once. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(problems.length === 1 ? problems[0] : problems.map((p) => `- ${p}`).join('\n'));
    this.problems = problems;
  }
}
