/** One sentence of pip's ninety lines: a list of all versions that another Python would take, or the output of a build. Pure. */
import { errorFirst } from '../../base/text/errorFirst.ts';

export interface PipAsked {
  readonly name: string;
  readonly version: string;
  /** The Python version of this machine. */
  readonly python: string;
}

const IGNORED = 'Ignored the following versions that require a different python version: ';
const NEEDS_PYTHON = ' Requires-Python ';
const MISSING = 'Could not find a version that satisfies the requirement ';
const FROM = ' (from ';
const VERSIONS = ' (from versions: ';
const OTHER_PYTHON = ' requires a different Python: ';
const NOT_IN = ' not in ';
const NAMED = 3;
const MOST_SHOWN = 300;

export function pipSentence(said: string, asked: PipAsked): string {
  const lines = said
    .split('\n')
    .map((line) => line.replace(/^\s{0,99}(?:ERROR: |WARNING: )?/, '').trimEnd())
    .filter((line) => line !== '');
  return broken(lines) ?? built(lines) ?? otherPython(lines, asked) ?? missing(lines, asked) ?? atLast(lines);
}

/** "Retrying (Retry(total=0, …)) after connection broken by 'SSLError(…)': /simple/name/" */
const broken = (lines: readonly string[]): string | undefined =>
  lines
    .find((line) => /connection broken|certificate/i.test(line))
    ?.split('connection broken by ')
    .at(-1);

/** pip shows what a build wrote between two marks, and which package it was behind them, if at all. */
function built(lines: readonly string[]): string | undefined {
  const begins = lines.findLastIndex((line) => /^╰─> \[\d+ lines? of output\]/.test(line));
  if (begins < 0) return undefined;
  const ends = lines.indexOf('[end of output]', begins);
  const shown = lines.slice(begins + 1, ends < 0 ? undefined : ends);
  const behind = ends < 0 ? [] : lines.slice(ends + 1);
  const names = behind
    .flatMap((line) => [
      /^╰─> (?!See above)([\w.[\]-]+)$/.exec(line)?.[1] ?? [],
      /^(?:Failed building wheel for|Could not build wheels for|Failed to build) '?([\w.-]+)/.exec(
        line,
      )?.[1] ?? [],
      /projects \(([^()]{1,200})\)$/.exec(line)?.[1] ?? [],
    ])
    .flat();
  const first = errorFirst(shown.join('\n'), MOST_SHOWN).split('\n')[0]!;
  return `${names.at(-1) ?? 'it, or a package that it needs,'} cannot be built here: ${first || 'its build said nothing'}`;
}

function otherPython(lines: readonly string[], { version, python }: PipAsked): string | undefined {
  const entry = ignoredIn(lines).find((one) => one.startsWith(`${version}${NEEDS_PYTHON}`));
  if (entry) return `it wants Python ${entry.split(NEEDS_PYTHON)[1]}, and this machine has ${python}`;
  // "Package 'x' requires a different Python: 3.11.7 not in '>=3.13'"
  const line = lines.find((one) => one.startsWith('Package ') && one.includes(OTHER_PYTHON));
  const [name = '', wanted = ''] = line?.slice('Package '.length).split(OTHER_PYTHON) ?? [];
  const bare = (text: string): string => text.replaceAll("'", '');
  if (line !== undefined)
    return `${bare(name)} wants Python ${bare(wanted.split(NOT_IN)[1] ?? '')}, and this machine has ${python}`;
  return undefined;
}

const ignoredIn = (lines: readonly string[]): string[] =>
  lines
    .find((line) => line.startsWith(IGNORED))
    ?.slice(IGNORED.length)
    .split('; ') ?? [];

function missing(lines: readonly string[], { name, version, python }: PipAsked): string | undefined {
  const line = lines.find((one) => one.startsWith(MISSING))?.slice(MISSING.length);
  if (line === undefined) return undefined;
  const [requirement = ''] = line.split(FROM);
  if (requirement !== `${name}==${version}`)
    return `it needs ${requirement}, which the registry does not have for Python ${python} on this machine`;
  const from = line.split(VERSIONS)[1]?.replace(/\)$/, '') ?? 'none';
  const known =
    from === 'none' ? ignoredIn(lines).map((one) => one.split(NEEDS_PYTHON)[0]!) : from.split(', ');
  return known.length === 0
    ? `the registry has no package ${name}`
    : `the registry has no version ${version}; the last that it has: ${known.slice(-NAMED).join(', ')}`;
}

const atLast = (lines: readonly string[]): string =>
  errorFirst(lines.join('\n'), MOST_SHOWN).split('\n')[0] || 'it gave no reason';
