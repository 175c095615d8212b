// Keeps the arrows of docs/architecture.md: which folder may import which, and where a named package may be imported.
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { describe, expect, test } from 'vitest';

const SRC = join(import.meta.dirname, '..', 'src');

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
  suspicion: [...GROUND, 'environment'],
  agent: [...GROUND, 'model', 'environment', 'template'],
  grading: [...GROUND, 'environment', 'dataset', 'store', 'suspicion'],
  config: [...GROUND, 'template', 'dataset', 'model', 'environment', 'agent', 'grading', 'suspicion'],
  report: [...GROUND, 'store', 'dataset'],
  runner: [
    ...GROUND,
    ...['config', 'dataset', 'model', 'environment', 'agent', 'store', 'template', 'grading', 'report'],
    'suspicion',
  ],
  service: [
    ...GROUND,
    ...['config', 'dataset', 'model', 'environment', 'agent', 'store', 'template', 'grading', 'report'],
    ...['runner', 'suspicion'],
  ],
  viewer: [...GROUND, 'store', 'report', 'service'],
  cli: [
    ...GROUND,
    ...['config', 'dataset', 'model', 'environment', 'agent', 'store', 'template', 'grading', 'report'],
    ...['runner', 'suspicion', 'service', 'viewer'],
  ],
};

/** A package named here may be imported in the given folder only. */
const HOME: Record<string, string> = {
  dockerode: 'environment',
  openai: 'model',
  undici: 'model',
  '@pydantic/genai-prices': 'model',
  'better-sqlite3': 'store',
  nunjucks: 'template',
  'p-queue': 'runner',
  yargs: 'cli',
  'cli-progress': 'cli',
  pino: 'cli',
  hyparquet: 'dataset',
  '@huggingface/hub': 'dataset',
};

interface Import {
  file: string;
  target: string;
}

function importsOf(file: string, text: string): Import[] {
  const found = text.matchAll(/(?:from|import)\s*\(?\s*['"]([^'"]+)['"]/g);
  return [...found].map((m) => ({ file, target: m[1]! }));
}

function folderOf(file: string): string {
  return file.includes('/') ? file.split('/')[0]! : '';
}

/** Sentences that name each arrow that should not be there. */
function violations(imports: readonly Import[]): string[] {
  const wrong: string[] = [];
  for (const { file, target } of imports) {
    const folder = folderOf(file);
    if (target.startsWith('.')) {
      const to = folderOf(relative(SRC, join(SRC, file, '..', target)));
      if (folder && to && to !== folder && !(MAY_IMPORT[folder] ?? []).includes(to))
        wrong.push(`${file} imports ${target}: ${folder} may not import ${to}`);
      continue;
    }
    const name = target.startsWith('@') ? target.split('/').slice(0, 2).join('/') : target.split('/')[0]!;
    const home = HOME[name];
    if (home && home !== folder) wrong.push(`${file} imports ${name}, which belongs to ${home}`);
  }
  return wrong;
}

const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((f) => /\.tsx?$/.test(f) && !f.startsWith('viewer/page/'))
  .map((f) => ({ file: f, text: readFileSync(join(SRC, f), 'utf8') }));

describe('architecture', () => {
  test('every import follows the allowed arrows', () => {
    expect(files.length).toBeGreaterThan(5);
    expect(violations(files.flatMap((f) => importsOf(f.file, f.text)))).toEqual([]);
  });

  test('a planted import against an arrow is found', () => {
    expect(violations([{ file: 'agent/agent.ts', target: '../store/open.ts' }])).toHaveLength(1);
    expect(violations([{ file: 'report/compare.ts', target: 'better-sqlite3' }])).toHaveLength(1);
    expect(violations([{ file: 'runner/run.ts', target: '../cli/main.ts' }])).toHaveLength(1);
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

  test('files stay short enough to read', () => {
    const long = files.filter((f) => f.text.split('\n').length > 400).map((f) => f.file);
    expect(long).toEqual([]);
  });
});
