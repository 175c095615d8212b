/** Log parsers of the user's: `grading.parsers` maps an id to a module that exports `parseLog(log, context)`. */
import { isRecord } from '../base/isRecord.ts';
import { importUserModule } from '../userModule.ts';
import type { LogParser } from './parsers/logParser.ts';
import { extendRegistry, officialRegistry, type ParserRegistry } from './parsers/parserRegistry.ts';

/** A parser may return a Map or a plain object; anything else is an error that names the parser. */
function checked(id: string, parse: (log: string, context: unknown) => unknown): LogParser {
  return (log, context) => {
    const found = parse(log, context);
    const entries = found instanceof Map ? [...found] : isRecord(found) ? Object.entries(found) : undefined;
    if (!entries?.every(([name, status]) => typeof name === 'string' && typeof status === 'string'))
      throw new Error(`parseLog of "${id}" must return a Map or an object from test name to status`);
    return new Map(entries as [string, string][]);
  };
}

/** Throws with a sentence for the person when a module cannot be used. */
export async function loadParsers(
  parsers: Readonly<Record<string, string>>,
  baseDir: string,
): Promise<ParserRegistry> {
  if (Object.keys(parsers).length === 0) return officialRegistry();
  const own: Record<string, LogParser> = {};
  for (const [id, path] of Object.entries(parsers)) {
    const { parseLog: parse } = await importUserModule(`grading.parsers.${id}`, path, baseDir);
    if (typeof parse !== 'function')
      throw new Error(`grading.parsers.${id}: ${path} does not export a function parseLog`);
    own[id] = checked(id, parse as (log: string, context: unknown) => unknown);
  }
  return extendRegistry(own);
}
