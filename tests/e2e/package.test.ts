// What npm would publish, alone in an empty folder: the bundled dataset runs, and its types compile with nothing more installed.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { REPO, tempDir } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';

const docker = await dockerAvailable();
let folder: string;

interface Locked {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean; readonly devOptional?: boolean }>>;
}

/** As `npm install swebatch` would leave it: only what the package itself depends on is beside it. */
beforeAll(() => {
  folder = tempDir('swebatch-package-');
  const modules = join(folder, 'node_modules');
  mkdirSync(join(modules, 'swebatch'), { recursive: true });
  const [packed] = JSON.parse(
    execFileSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], {
      cwd: REPO,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }),
  ) as [{ filename: string }];
  execFileSync('tar', [
    ...['-xzf', join(folder, packed.filename), '-C', join(modules, 'swebatch')],
    '--strip-components=1',
  ]);
  const lock = JSON.parse(readFileSync(join(REPO, 'package-lock.json'), 'utf8')) as Locked;
  const here = new Set(readdirSync(join(REPO, 'node_modules'), { recursive: false, encoding: 'utf8' }));
  for (const [path, { dev, devOptional }] of Object.entries(lock.packages)) {
    const name = /^node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(path)?.[1];
    if (name === undefined || dev || devOptional || !here.has(name.split('/')[0]!)) continue;
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(join(REPO, 'node_modules', name), join(modules, name));
  }
  // A program in TypeScript has the types of Node; an optional peer says so.
  mkdirSync(join(modules, '@types'));
  for (const types of ['@types/node', 'undici-types'])
    symlinkSync(join(REPO, 'node_modules', types), join(modules, types));
  writeFileSync(join(folder, 'package.json'), '{"private": true}');
});

const program = (...args: string[]) =>
  spawnSync(process.execPath, ['node_modules/swebatch/dist/cli/bin.js', ...args], {
    cwd: folder,
    encoding: 'utf8',
    env: { PATH: process.env.PATH, HOME: process.env.HOME, NO_COLOR: '1' },
  });

test('it has few files, little besides what runs, and needs few packages', () => {
  const inside = join(folder, 'node_modules', 'swebatch');
  const files = readdirSync(inside, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
  // A checkout keeps chunks of earlier builds; `npm publish` builds anew.
  const parts = files.filter(({ parentPath }) => parentPath !== join(inside, 'dist'));
  expect(parts.length).toBeLessThan(150);
  expect(files.filter(({ name }) => /\.map$|\.png$/.test(name))).toEqual([]);
  expect(files.filter(({ name }) => name.endsWith('.d.ts')).map(({ name }) => name)).toEqual(['index.d.ts']);
  const { dependencies } = JSON.parse(readFileSync(join(inside, 'package.json'), 'utf8')) as {
    dependencies: object;
  };
  // What is native or read from its path by a worker, and zod, whose schemas are among the exports.
  expect(Object.keys(dependencies)).toEqual(['better-sqlite3', 'hyparquet', 'hyparquet-compressors', 'zod']);
});

test('it brings its licence, its configurations and its dataset', () => {
  const files = readdirSync(join(folder, 'node_modules', 'swebatch'));
  expect(files).toEqual(
    expect.arrayContaining(['LICENSE', 'README.md', 'CHANGELOG.md', 'configs', 'datasets']),
  );
  expect(program('config', 'show', '-c', 'demo').stdout).toContain('built-in demo');
});

test('the plan of the bundled dataset needs nothing but a name of a configuration', () => {
  const plan = program('run', '-c', 'demo', '--dry-run', '--json');
  expect(plan.stderr).toBe('');
  expect(JSON.parse(plan.stdout)).toMatchObject({ trials: 14 });
});

describe.skipIf(!docker)('with an engine', () => {
  test('swebatch run -c demo runs and grades', () => {
    const ran = program('run', '-c', 'demo', '--slice', '0:2', '--evaluate', '--run-id', 'first');
    expect(ran.stderr).toMatch(/run first: complete · agent 2/);
    expect(ran.stderr).toMatch(/graded: resolved \d/);
    expect(ran.status).toBe(0);
  });
});

test('its types compile under strict, its own declarations checked too', () => {
  writeFileSync(
    join(folder, 'uses.mts'),
    `import { compare, openResults, startRun } from 'swebatch';
const running = await startRun({ results: 'results' });
for await (const event of running.events) console.log(event.type);
console.log(await running.result, compare, openResults);
`,
  );
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: {
        strict: true,
        module: 'NodeNext',
        target: 'ES2024',
        noEmit: true,
        skipLibCheck: false,
        types: ['node'],
      },
      files: ['uses.mts'],
    }),
  );
  const compiled = spawnSync(
    process.execPath,
    ['--preserve-symlinks', join(REPO, 'node_modules', 'typescript', 'bin', 'tsc'), '--preserveSymlinks'],
    { cwd: folder, encoding: 'utf8' },
  );
  expect(compiled.stdout).toBe('');
  expect(compiled.status).toBe(0);
});
