// Keeps the arrows of docs/architecture.md: which folder may import which, and where a named package may be imported.
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Import, importsOf } from './support/importsOf.ts';

const ROOT = join(import.meta.dirname, '..');
const SRC = join(ROOT, 'src');

/** Everybody may import these: the ground floor and foreign formats. */
const GROUND = ['base', 'formats'];

const MAY_IMPORT: Record<string, readonly string[]> = {
  base: [],
  formats: ['base'],
  template: GROUND,
  dataset: GROUND,
  model: GROUND,
  environment: GROUND,
  store: GROUND,
  demo: GROUND,
  agent: [...GROUND, 'model', 'environment', 'template'],
  grading: [...GROUND, 'environment', 'dataset', 'store'],
  suites: [...GROUND, 'agent', 'environment', 'dataset', 'grading'],
  config: [...GROUND, 'template', 'dataset', 'model', 'environment', 'agent', 'grading'],
  report: [...GROUND, 'store', 'dataset', 'environment'],
  run: [
    ...GROUND,
    ...['config', 'dataset', 'model', 'environment', 'agent', 'store', 'template', 'grading', 'report'],
    'suites',
  ],
  results: [
    ...GROUND,
    ...['config', 'dataset', 'model', 'environment', 'agent', 'store', 'template', 'grading', 'report'],
    'suites',
    'run',
  ],
  viewer: [...GROUND, 'store', 'report', 'run', 'results'],
  cli: [
    ...GROUND,
    ...['config', 'dataset', 'model', 'environment', 'agent', 'store', 'template', 'grading', 'report'],
    'suites',
    ...['run', 'results', 'viewer', 'demo'],
  ],
};

/** Rooms inside a folder, and which of their neighbours each may import. Files beside the rooms are open to all of them. */
const ROOM_MAY_IMPORT: Record<string, readonly string[]> = {
  'environment/exec': [],
  'environment/relay': [],
  'environment/egress': [],
  'environment/patch': [],
  'environment/places': [],
  'environment/container': ['environment/exec', 'environment/patch', 'environment/places'],
  'environment/programs': ['environment/places'],
  'environment/docker': [
    'environment/programs',
    'environment/exec',
    'environment/relay',
    'environment/egress',
    'environment/patch',
    'environment/container',
    'environment/places',
  ],
  'environment/kubernetes': [
    'environment/programs',
    'environment/exec',
    'environment/relay',
    'environment/patch',
    'environment/container',
    'environment/places',
  ],
  'environment/local': ['environment/exec', 'environment/patch'],
  // The record knows neither the attempts nor the grader that it writes down.
  'run/record': [],
  'run/grader': ['run/record'],
  'run/attempt': ['run/record'],
};

/** A package named here may be imported in the given folders only. */
const HOME: Record<string, string | readonly string[]> = {
  dockerode: ['environment/docker', 'environment/places', 'environment/programs'],
  '@kubernetes/client-node': 'environment/kubernetes',
  openai: 'model',
  undici: 'model',
  '@pydantic/genai-prices': 'model',
  '@aws-sdk/credential-provider-node': 'model/clouds',
  '@smithy/signature-v4': 'model/clouds',
  '@smithy/eventstream-codec': 'model/clouds',
  'google-auth-library': 'model/clouds',
  '@azure/identity': 'model/clouds',
  'better-sqlite3': 'store',
  nunjucks: 'template',
  'p-queue': 'run',
  'p-limit': 'environment',
  'string-width': 'base',
  re2js: 'base',
  yargs: 'cli',
  'cli-progress': 'cli',
  pino: 'run',
  'csv-parse': 'dataset',
  yauzl: 'formats/inspect',
  hyparquet: 'dataset',
  '@huggingface/hub': 'dataset',
  'smol-toml': 'suites/harbor',
};

function folderOf(file: string): string {
  return file.includes('/') ? file.split('/')[0]! : '';
}

const roomOf = (file: string): string | undefined =>
  Object.keys(ROOM_MAY_IMPORT).find((room) => file.startsWith(`${room}/`));

/** Sentences that name each arrow that should not be there. */
function violations(imports: readonly Import[]): string[] {
  const wrong: string[] = [];
  for (const { file, target } of imports) {
    const folder = folderOf(file);
    if (target.startsWith('.')) {
      const to = folderOf(relative(SRC, join(SRC, file, '..', target)));
      if (folder && to && to !== folder && !(MAY_IMPORT[folder] ?? []).includes(to))
        wrong.push(`${file} imports ${target}: ${folder} may not import ${to}`);
      if (to !== folder) continue;
      const room = roomOf(file);
      const next = roomOf(relative(SRC, join(SRC, file, '..', target)));
      if (room && next && next !== room && !ROOM_MAY_IMPORT[room]!.includes(next))
        wrong.push(`${file} imports ${target}: ${room} may not import ${next}`);
      continue;
    }
    const name = target.startsWith('@') ? target.split('/').slice(0, 2).join('/') : target.split('/')[0]!;
    const home = HOME[name];
    if (home && ![home].flat().some((place) => file.startsWith(`${place}/`)))
      wrong.push(`${file} imports ${name}, which belongs to ${[home].flat().join(', ')}`);
  }
  return wrong;
}

/**
 * Files that import each other, directly or over others: a list for each group. A type counts as a value does: it ties its readers too. A
 * table that loads its leaves late does not know them.
 */
function circles(imports: readonly Import[]): string[][] {
  const targets = Map.groupBy(
    imports.filter(({ target, late }) => target.startsWith('.') && !late),
    ({ file }) => file,
  );
  const importedBy = (file: string): string[] => [
    ...new Set((targets.get(file) ?? []).map(({ target }) => join(file, '..', target))),
  ];
  const reachable = new Map<string, ReadonlySet<string>>();
  for (const file of targets.keys()) {
    const seen = new Set<string>();
    const ahead = importedBy(file);
    for (let next = ahead.pop(); next !== undefined; next = ahead.pop()) {
      if (seen.has(next)) continue;
      seen.add(next);
      ahead.push(...importedBy(next));
    }
    reachable.set(file, seen);
  }
  const groups = new Map<string, string[]>();
  for (const [file, seen] of reachable) {
    if (!seen.has(file)) continue;
    const group = [...seen].filter((other) => reachable.get(other)?.has(file)).sort();
    groups.set(group.join(), group);
  }
  return [...groups.values()];
}

const everything = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((f) => /\.tsx?$/.test(f))
  .map((f) => ({ file: f, text: readFileSync(join(SRC, f), 'utf8') }));
const files = everything.filter(({ file }) => !file.startsWith('viewer/page/'));

describe('architecture', () => {
  test('every import follows the allowed arrows', () => {
    expect(files.length).toBeGreaterThan(5);
    expect(violations(files.flatMap((f) => importsOf(f.file, f.text)))).toEqual([]);
  });

  test('a planted import against an arrow is found', () => {
    expect(violations([{ file: 'agent/agent.ts', target: '../store/open.ts' }])).toHaveLength(1);
    expect(violations([{ file: 'report/compare.ts', target: 'better-sqlite3' }])).toHaveLength(1);
    expect(violations([{ file: 'run/run.ts', target: '../cli/main.ts' }])).toHaveLength(1);
    expect(
      violations([{ file: 'environment/exec/channel.ts', target: '../docker/container.ts' }]),
    ).toHaveLength(1);
    expect(violations([{ file: 'environment/exec/channel.ts', target: 'dockerode' }])).toHaveLength(1);
  });

  test('no file imports itself over others, in src, tests and scripts', () => {
    const code = tree.filter((path) => /\.(?:tsx?|mjs)$/.test(path));
    expect(circles(code.flatMap((path) => importsOf(path, readFileSync(join(ROOT, path), 'utf8'))))).toEqual(
      [],
    );
  });

  test('a planted circle is found, of types over three files too', () => {
    const planted: [file: string, text: string][] = [
      ['runner/a.ts', `import type { B } from './schedule/b.ts';`],
      ['runner/schedule/b.ts', `import { c } from '../c.ts';`],
      ['runner/c.ts', `export { type A } from './a.ts';`],
      ['runner/onlyReads.ts', `import { a } from './a.ts';`],
    ];
    expect(circles(planted.flatMap(([file, text]) => importsOf(file, text)))).toEqual([
      ['runner/a.ts', 'runner/c.ts', 'runner/schedule/b.ts'],
    ]);
  });

  test('only cli prints, reads the process environment or exits', () => {
    const offenders = files
      .filter(
        (f) =>
          folderOf(f.file) !== 'cli' &&
          /\bconsole\.(log|error|warn)\b|process\.(env|exit|argv|stdout|stderr)\b/.test(f.text),
      )
      .map((f) => f.file);
    expect(offenders).toEqual([]);
  });

  test('SQL is in the store alone', () => {
    const holdsSql = (text: string) => /`\s*(?:SELECT|INSERT INTO|UPDATE|DELETE FROM) \w/.test(text);
    expect(everything.filter((f) => holdsSql(f.text) && folderOf(f.file) !== 'store')).toEqual([]);
    expect(everything.some((f) => holdsSql(f.text))).toBe(true);
  });
});

const tree = ['src', 'tests', 'scripts'].flatMap((top) =>
  readdirSync(join(ROOT, top), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length + 1))
    .filter((path) => !path.includes('/fixtures/')),
);

const withHyphen = (paths: readonly string[]): string[] =>
  paths.filter((path) => basename(path).includes('-'));

describe('names', () => {
  test('names are camelCase, without hyphens', () => {
    expect(withHyphen(tree)).toEqual([]);
    expect(withHyphen(['scripts/build-demo.ts', 'src/a-b/run.ts'])).toEqual(['scripts/build-demo.ts']);
  });
});

describe('tests that depend on nothing but what they test', () => {
  const tests = tree
    .filter((path) => /^tests\/(?!long|kubernetes|podman|fuzz).*\.ts$/.test(path))
    .map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }));
  const withoutSeed = (files: typeof tests) =>
    files.filter(({ text }) => /^import .* from 'fast-check'/m.test(text)).map(({ path }) => path);
  /** A limit of its own that is below the common one judges how busy the machine is. */
  const hurried = (files: typeof tests) =>
    files.flatMap(({ path, text }) =>
      [...text.matchAll(/^\s*\}, (\d+)_000\);$/gm)].filter(([, s]) => Number(s) < 300).map(() => path),
    );

  test('properties have a seed: they are imported from tests/support/property.ts', () => {
    expect(withoutSeed(tests)).toEqual(['tests/support/property.ts']);
  });

  test('no test has less time than all of them have', () => {
    expect(hurried(tests)).toEqual([]);
    expect(hurried([{ path: 'tests/planted.test.ts', text: 'test(a, () => {\n}, 60_000);\n' }])).toEqual([
      'tests/planted.test.ts',
    ]);
  });
});
