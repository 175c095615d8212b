/** Parses `a.b=value` of the command line: split at the first "="; the value is JSON if it parses, else text. */
import { ConfigError } from './configError.ts';
import { nest, type Tree } from './merge.ts';

export function parseKeyValue(spec: string): Tree {
  const split = spec.indexOf('=');
  const path = spec.slice(0, split).split('.');
  if (split < 1 || path.some((segment) => segment.trim() === ''))
    throw new ConfigError([`-c ${spec}: expected key.path=value, with no empty part in the path`]);
  return nest(path, parseValue(spec.slice(split + 1)));
}

function parseValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** A spec is key=value when its "=" comes after nothing but the letters of a key; a path with "=" in it can be given as ./path. */
export const isKeyValue = (spec: string): boolean => /^[\w.\s-]*=/.test(spec) && !spec.startsWith('./');
