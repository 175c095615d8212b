/**
 * The published program is a bundle. Stacks that it shows or writes down name the lines of the sources. The maps beside the bundle are read then,
 * and not whenever a stack is looked at, as `node --enable-source-maps` does: streams look at the stack of each error that closes them.
 */
import { readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { fileURLToPath } from 'node:url';

const maps = new Map<string, SourceMap | null>();

/** Null for a file without a map: a module of Node, or one of a person. */
function mapOf(file: string): SourceMap | null {
  const known = maps.get(file);
  if (known !== undefined) return known;
  let map: SourceMap | null = null;
  try {
    map = new SourceMap(JSON.parse(readFileSync(`${fileURLToPath(file)}.map`, 'utf8')));
  } catch {
    // The line of the bundle is better than none.
  }
  maps.set(file, map);
  return map;
}

const PLACE = /(file:[^\s():]+):(\d+):(\d+)/g;

/** The stack of an error; undefined where it has none. */
export const stackOf = (error: unknown): string | undefined =>
  error instanceof Error
    ? error.stack?.replace(PLACE, (place, file: string, line: string, column: string) => {
        const entry = mapOf(file)?.findEntry(Number(line) - 1, Number(column) - 1);
        if (!entry || !('originalSource' in entry)) return place;
        const source = new URL(entry.originalSource, file).href;
        return `${source}:${entry.originalLine + 1}:${entry.originalColumn + 1}`;
      })
    : undefined;
