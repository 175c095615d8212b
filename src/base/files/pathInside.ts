/** Paths whose parts somebody else named: an id, a model, a branch. Such paths never leave their root. */
import { lstatSync, realpathSync } from 'node:fs';
import { join, resolve, sep } from 'node:path';

/** A name that cannot be a path below its root. Nothing was written. */
export class OutsideRootError extends Error {
  override readonly name = 'OutsideRootError';
}

/** Linux takes names of 255 bytes and paths of 4096, with the zero at their end. */
const LONGEST_NAME = 255;
const LONGEST_PATH = 4095;

/** A part may be several names with "/" between them; an empty part is left out. Links that stay below the root are followed. */
export function pathInside(root: string, ...parts: readonly string[]): string {
  if (parts.reduce((length, part) => length + part.length, 0) > LONGEST_PATH)
    throw refusal(root, parts, 'the path is too long');
  const names = parts.filter((part) => part !== '').flatMap((part) => part.split('/'));
  for (const name of names) {
    const problem = nameProblem(name);
    if (problem) throw refusal(root, parts, problem);
  }
  const path = join(root, ...names);
  if (Buffer.byteLength(resolve(path)) > LONGEST_PATH) throw refusal(root, parts, 'the path is too long');
  const link = linkOutside(root, names);
  if (link) throw refusal(root, parts, `${link} is a link that leads outside`);
  return path;
}

const refusal = (root: string, parts: readonly string[], why: string): OutsideRootError =>
  new OutsideRootError(`${JSON.stringify(parts.join('/').slice(0, 300))} is not a path in ${root}: ${why}`);

function nameProblem(name: string): string | null {
  if (name === '' || name === '.' || name === '..') return `it has the part ${JSON.stringify(name)}`;
  if (name.includes('\0')) return 'it holds a zero byte';
  return Buffer.byteLength(name) > LONGEST_NAME ? 'a name in it is too long' : null;
}

/** The root itself may be a link: a person chose it. */
function linkOutside(root: string, names: readonly string[]): string | null {
  let path = root;
  for (const name of names) {
    path = join(path, name);
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (!stat) return null;
    if (stat.isSymbolicLink() && !leadsInside(root, path)) return path;
  }
  return null;
}

function leadsInside(root: string, link: string): boolean {
  try {
    const home = realpathSync(root);
    return `${realpathSync(link)}${sep}`.startsWith(home.endsWith(sep) ? home : `${home}${sep}`);
  } catch {
    // The link leads nowhere: a write through it would make its target.
    return false;
  }
}
