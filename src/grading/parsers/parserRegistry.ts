/**
 * Log parsers by their official ids, and the user's own beside them: `grading.parsers` maps an id to a module that exports `parseLog(log,
 * context)`.
 */
import { isRecord } from '../../base/isRecord.ts';
import { blamed, importUserModule, madeBy, type NamedModule } from '../../userModule.ts';
import * as failuresOnly from './failuresOnly.ts';
import { type LogParser, STATUS_WORDS } from './logParser.ts';
import * as multilingual from './multilingual.ts';
import * as python from './python.ts';
import * as reporters from './reporters.ts';

/** `parseJestJson` is `parse_log_jest_json`: a parser is exported under its official id. */
const idOf = (name: string): string =>
  name
    .replaceAll(/(?=[A-Z])/g, '_')
    .replace('parse_', 'parse_log_')
    .toLowerCase();

/** Ids under which a repository has the parser of another. */
export const SAME_PARSER = {
  parsePytest: ['astroid', 'flask', 'marshmallow', 'pvlib', 'pyvista', 'sqlfluff', 'xarray'],
  parsePytestOptions: ['pydicom', 'requests', 'pylint'],
  parsePytestV2: ['astropy', 'scikit', 'sphinx'],
  parseCarbon: ['react_pdf'],
} as const;

const modules = [
  ...Object.entries(python),
  ...Object.entries(reporters),
  ...Object.entries(failuresOnly),
  ...Object.entries(multilingual),
];
const named = new Map<string, LogParser>(modules);

export const OFFICIAL_PARSERS: Readonly<Record<string, LogParser>> = Object.fromEntries([
  ...modules.filter(([name]) => name.startsWith('parse')).map(([name, parser]) => [idOf(name), parser]),
  ...Object.entries(SAME_PARSER).flatMap(([name, ids]) =>
    ids.map((id) => [`parse_log_${id}`, named.get(name)!]),
  ),
]);

/** The parsers of suites beside SWE-bench, whose rows name one that it does not have. */
export const SUITE_PARSERS: Readonly<Record<string, LogParser>> = {
  parse_log_pytest_pydantic: python.gymPydantic,
};

export type ParserRegistry = ReadonlyMap<string, LogParser>;

const known: ParserRegistry = new Map(Object.entries({ ...OFFICIAL_PARSERS, ...SUITE_PARSERS }));
export const officialRegistry = (): ParserRegistry => known;

/** Ids are accepted with and without the official prefix (`pytest`, `parse_log_pytest`); an exact id goes first. */
export function findParser(registry: ParserRegistry, id: string): LogParser | undefined {
  return registry.get(id) ?? registry.get(`parse_log_${id}`);
}

/** Adds parsers of the user's; they may replace official ones. */
export function extendRegistry(own: Readonly<Record<string, LogParser>>): ParserRegistry {
  return new Map([...known, ...Object.entries(own)]);
}

const entriesOf = (found: unknown): [unknown, unknown][] | undefined => {
  if (found instanceof Map) return [...found];
  return isRecord(found) && !(found instanceof Promise) ? Object.entries(found) : undefined;
};

/**
 * A parser may return a Map or a plain object; a status that nobody counts would be a test that fails (observed:
 * tests/grading/userParsers.test.ts).
 */
function problemOf(id: string, found: unknown): string | null {
  const entries = entriesOf(found);
  if (!entries) return `parseLog of "${id}" must return a Map or an object from test name to status`;
  const wrong = entries.find(
    ([name, status]) => typeof name !== 'string' || !STATUS_WORDS.some((word) => word === status),
  );
  return wrong
    ? `${String(wrong[0])} is ${String(wrong[1])}, and a status is one of ${STATUS_WORDS.join(', ')}`
    : null;
}

function checked(
  id: string,
  module: NamedModule,
  parseLog: (log: string, context: unknown) => unknown,
): LogParser {
  return (log, context) => {
    try {
      const parse = () => parseLog(log, context);
      const found = madeBy(module, 'parseLog', parse, (made) => problemOf(id, made));
      return new Map(entriesOf(found) as [string, string][]);
    } catch (error) {
      throw blamed(error) ?? error;
    }
  };
}

/** Throws with a sentence for the person when a module cannot be used. */
export async function loadParsers(
  parsers: Readonly<Record<string, string>>,
  baseDir: string,
): Promise<ParserRegistry> {
  if (Object.keys(parsers).length === 0) return known;
  const own: Record<string, LogParser> = {};
  for (const [id, path] of Object.entries(parsers)) {
    const { parseLog: parse } = await importUserModule(
      { key: `grading.parsers.${id}`, what: 'log parser' },
      path,
      baseDir,
    );
    if (typeof parse !== 'function')
      throw new Error(`grading.parsers.${id}: ${path} does not export a function parseLog`);
    own[id] = checked(id, { what: 'log parser', path }, parse as (log: string, context: unknown) => unknown);
  }
  return extendRegistry(own);
}
