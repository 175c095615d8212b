/** Log parsers by their official ids, and the user's own beside them. */
import * as failuresOnly from './failuresOnly.ts';
import type { LogParser } from './logParser.ts';
import * as multilingual from './multilingual.ts';
import * as python from './python.ts';
import * as reporters from './reporters.ts';

export const OFFICIAL_PARSERS: Readonly<Record<string, LogParser>> = {
  parse_log_pytest: python.parsePytest,
  parse_log_pytest_options: python.parsePytestOptions,
  parse_log_pytest_v2: python.parsePytestV2,
  parse_log_django: python.parseDjango,
  parse_log_seaborn: python.parseSeaborn,
  parse_log_sympy: python.parseSympy,
  parse_log_matplotlib: python.parseMatplotlib,
  parse_log_astroid: python.parsePytest,
  parse_log_flask: python.parsePytest,
  parse_log_marshmallow: python.parsePytest,
  parse_log_pvlib: python.parsePytest,
  parse_log_pyvista: python.parsePytest,
  parse_log_sqlfluff: python.parsePytest,
  parse_log_xarray: python.parsePytest,
  parse_log_pydicom: python.parsePytestOptions,
  parse_log_requests: python.parsePytestOptions,
  parse_log_pylint: python.parsePytestOptions,
  parse_log_astropy: python.parsePytestV2,
  parse_log_scikit: python.parsePytestV2,
  parse_log_sphinx: python.parsePytestV2,
  parse_log_calypso: reporters.parseCalypso,
  parse_log_bpmn_js: failuresOnly.parseBpmnJs,
  parse_log_carbon: reporters.parseCarbon,
  parse_log_eslint: failuresOnly.parseEslint,
  parse_log_grommet: reporters.parseGrommet,
  parse_log_highlightjs: reporters.parseHighlightjs,
  parse_log_lighthouse: reporters.parseLighthouse,
  parse_log_next: reporters.parseNext,
  parse_log_openlayers: failuresOnly.parseOpenlayers,
  parse_log_prismjs: reporters.parsePrismjs,
  parse_log_quarto_cli: reporters.parseQuartoCli,
  parse_log_chart_js: failuresOnly.parseChartJs,
  parse_log_marked: failuresOnly.parseMarked,
  parse_log_p5js: failuresOnly.parseP5js,
  parse_log_react_pdf: reporters.parseCarbon,
  parse_log_jest: multilingual.parseJest,
  parse_log_jest_json: multilingual.parseJestJson,
  parse_log_vitest: multilingual.parseVitest,
  parse_log_karma: multilingual.parseKarma,
  parse_log_tap: multilingual.parseTap,
  parse_log_immutable_js: multilingual.parseImmutableJs,
  parse_log_redis: multilingual.parseRedis,
  parse_log_jq: multilingual.parseJq,
  parse_log_doctest: multilingual.parseDoctest,
  parse_log_micropython_test: multilingual.parseMicropython,
  parse_log_googletest: multilingual.parseGoogletest,
  parse_log_gotest: multilingual.parseGotest,
  parse_log_maven: multilingual.parseMaven,
  parse_log_ant: multilingual.parseAnt,
  parse_log_gradle_custom: multilingual.parseGradle,
  parse_log_phpunit: multilingual.parsePhpunit,
  parse_log_minitest: multilingual.parseMinitest,
  parse_log_cucumber: multilingual.parseCucumber,
  parse_log_ruby_unit: multilingual.parseRubyUnit,
  parse_log_rspec_transformed_json: multilingual.parseRspec,
  parse_log_jekyll: multilingual.parseJekyll,
  parse_log_cargo: multilingual.parseCargo,
};

/** Of suites beside SWE-bench, whose rows name a parser that it does not have. */
export const SUITE_PARSERS: Readonly<Record<string, LogParser>> = {
  parse_log_pytest_pydantic: python.parsePydantic,
};

export type ParserRegistry = ReadonlyMap<string, LogParser>;

const official: ParserRegistry = new Map(Object.entries({ ...OFFICIAL_PARSERS, ...SUITE_PARSERS }));
export const officialRegistry = (): ParserRegistry => official;

/** Ids are accepted with and without the official prefix (`pytest`, `parse_log_pytest`); an exact id goes first. */
export function findParser(registry: ParserRegistry, id: string): LogParser | undefined {
  return registry.get(id) ?? registry.get(`parse_log_${id}`);
}

/** Adds parsers of the user's; they may replace official ones. */
export function extendRegistry(own: Readonly<Record<string, LogParser>>): ParserRegistry {
  return new Map([...official, ...Object.entries(own)]);
}
