/** Log parsers by their official ids, and the user's own beside them. */
import {
  parseAnt,
  parseCargo,
  parseGoogletest,
  parseGotest,
  parseGradle,
  parseJq,
  parseMaven,
  parseMicropython,
  parsePhpunit,
  parseRedis,
} from './compiled.ts';
import { parseDoctest } from './doctest.ts';
import {
  parseBpmnJs,
  parseChartJs,
  parseEslint,
  parseMarked,
  parseOpenlayers,
  parseP5js,
} from './failuresOnly.ts';
import {
  parseImmutableJs,
  parseJest,
  parseJestJson,
  parseKarma,
  parseTap,
  parseVitest,
} from './javascript.ts';
import type { LogParser } from './logParser.ts';
import { parseNext } from './next.ts';
import {
  parseDjango,
  parseMatplotlib,
  parsePytest,
  parsePytestOptions,
  parsePytestV2,
  parseSeaborn,
  parseSympy,
} from './python.ts';
import {
  parseCalypso,
  parseCarbon,
  parseGrommet,
  parseHighlightjs,
  parseLighthouse,
  parsePrismjs,
  parseQuartoCli,
} from './reporters.ts';
import { parseCucumber, parseJekyll, parseMinitest, parseRspec, parseRubyUnit } from './ruby.ts';

export const OFFICIAL_PARSERS: Readonly<Record<string, LogParser>> = {
  parse_log_pytest: parsePytest,
  parse_log_pytest_options: parsePytestOptions,
  parse_log_pytest_v2: parsePytestV2,
  parse_log_django: parseDjango,
  parse_log_seaborn: parseSeaborn,
  parse_log_sympy: parseSympy,
  parse_log_matplotlib: parseMatplotlib,
  parse_log_astroid: parsePytest,
  parse_log_flask: parsePytest,
  parse_log_marshmallow: parsePytest,
  parse_log_pvlib: parsePytest,
  parse_log_pyvista: parsePytest,
  parse_log_sqlfluff: parsePytest,
  parse_log_xarray: parsePytest,
  parse_log_pydicom: parsePytestOptions,
  parse_log_requests: parsePytestOptions,
  parse_log_pylint: parsePytestOptions,
  parse_log_astropy: parsePytestV2,
  parse_log_scikit: parsePytestV2,
  parse_log_sphinx: parsePytestV2,
  parse_log_calypso: parseCalypso,
  parse_log_bpmn_js: parseBpmnJs,
  parse_log_carbon: parseCarbon,
  parse_log_eslint: parseEslint,
  parse_log_grommet: parseGrommet,
  parse_log_highlightjs: parseHighlightjs,
  parse_log_lighthouse: parseLighthouse,
  parse_log_next: parseNext,
  parse_log_openlayers: parseOpenlayers,
  parse_log_prismjs: parsePrismjs,
  parse_log_quarto_cli: parseQuartoCli,
  parse_log_chart_js: parseChartJs,
  parse_log_marked: parseMarked,
  parse_log_p5js: parseP5js,
  parse_log_react_pdf: parseCarbon,
  parse_log_jest: parseJest,
  parse_log_jest_json: parseJestJson,
  parse_log_vitest: parseVitest,
  parse_log_karma: parseKarma,
  parse_log_tap: parseTap,
  parse_log_immutable_js: parseImmutableJs,
  parse_log_redis: parseRedis,
  parse_log_jq: parseJq,
  parse_log_doctest: parseDoctest,
  parse_log_micropython_test: parseMicropython,
  parse_log_googletest: parseGoogletest,
  parse_log_gotest: parseGotest,
  parse_log_maven: parseMaven,
  parse_log_ant: parseAnt,
  parse_log_gradle_custom: parseGradle,
  parse_log_phpunit: parsePhpunit,
  parse_log_minitest: parseMinitest,
  parse_log_cucumber: parseCucumber,
  parse_log_ruby_unit: parseRubyUnit,
  parse_log_rspec_transformed_json: parseRspec,
  parse_log_jekyll: parseJekyll,
  parse_log_cargo: parseCargo,
};

export type ParserRegistry = ReadonlyMap<string, LogParser>;

const official: ParserRegistry = new Map(Object.entries(OFFICIAL_PARSERS));
export const officialRegistry = (): ParserRegistry => official;

/** Ids are accepted with and without the official prefix (`pytest`, `parse_log_pytest`); an exact id goes first. */
export function findParser(registry: ParserRegistry, id: string): LogParser | undefined {
  return registry.get(id) ?? registry.get(`parse_log_${id}`);
}

/** Adds parsers of the user's; they may replace official ones. */
export function extendRegistry(own: Readonly<Record<string, LogParser>>): ParserRegistry {
  return new Map([...official, ...Object.entries(own)]);
}
