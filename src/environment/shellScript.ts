/**
 * The text of a shell script that lies beside the module which uses it. A script reads the parts it shares with others by `. ./NAME`, so
 * shellcheck sees whole programs; there are no such files in a container, so the line is replaced by the file.
 */
import { readFileSync } from 'node:fs';

/** Comments are for readers: a script travels to the container as an argument. */
const COMMENT_LINE = /^[ \t]*#.*\n/gm;
const INCLUDE_LINE = /^\. \.\/(\S+)\n/gm;

export function shellScript(name: string, from: string): string {
  const file = new URL(name, from).href;
  return readFileSync(new URL(file), 'utf8')
    .replace(COMMENT_LINE, '')
    .replace(INCLUDE_LINE, (_, included: string) => shellScript(included, file));
}
