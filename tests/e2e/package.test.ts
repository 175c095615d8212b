// What npm would publish, alone in an empty folder: every verb, every leaf of every table and every module that is loaded when it is needed works
// there, the bundled dataset runs, and its types compile with nothing more installed.
import { execFileSync, fork, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { missingNames, namesOf, reachedFrom, scriptsOf } from '../../scripts/packageNeeds.ts';
import { AGENT_NAMES } from '../../src/agent/agents.ts';
import { VERBS } from '../../src/cli/verbs.ts';
import { environmentNames } from '../../src/environment/environments.ts';
import { WRITTEN_ATTEMPTS, WRITTEN_FORMATS } from '../../src/formats/formats.ts';
import { DIALECT_NAMES } from '../../src/model/dialects/dialects.ts';
import { type CliResult, REPO, tempDir } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';
import { installPacked } from '../support/program/installPacked.ts';
import { jsonReply, startRawServer } from '../support/rawServer.ts';

const docker = await dockerAvailable();
let folder: string;
let inside: string;
let dist: string;
let names: ReturnType<typeof namesOf>;
let reached: ReadonlySet<string>;

/** As `npm install swebatch` would leave it: only what the package itself depends on is beside it, and nothing above. */
beforeAll(() => {
  folder = tempDir('swebatch-package-');
  inside = join(folder, 'node_modules', 'swebatch');
  dist = join(inside, 'dist');
  installPacked({ work: folder, into: inside, root: folder });
  names = namesOf(scriptsOf(dist));
  reached = reachedFrom(['cli/bin.js', 'index.js'], names);
  // A checkout keeps parts of earlier builds; `npm publish` builds anew.
  for (const file of readdirSync(dist))
    if (file.endsWith('.js') && !reached.has(file)) rmSync(join(dist, file));
  names = names.filter(({ where }) => existsSync(join(dist, where.replace(/:\d+$/, ''))));
  // A program in TypeScript has the types of Node; an optional peer says so.
  mkdirSync(join(folder, 'node_modules', '@types'));
  for (const types of ['@types/node', 'undici-types'])
    symlinkSync(join(REPO, 'node_modules', types), join(folder, 'node_modules', types));
  writeFileSync(join(folder, 'package.json'), '{"private": true}');
});

const program = (...args: string[]) =>
  spawnSync(process.execPath, ['node_modules/swebatch/dist/cli/bin.js', ...args], {
    cwd: folder,
    encoding: 'utf8',
    env: { PATH: process.env.PATH, HOME: process.env.HOME, NO_COLOR: '1' },
  });

test('it has few files, little besides what runs, and needs few packages', () => {
  const files = readdirSync(inside, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
  const parts = files.filter(({ parentPath }) => parentPath !== dist);
  expect(parts.length).toBeLessThan(150);
  expect(files.filter(({ name }) => /\.map$|\.png$/.test(name))).toEqual([]);
  expect(files.filter(({ name }) => name.endsWith('.d.ts')).map(({ name }) => name)).toEqual(['index.d.ts']);
  const archive = join(folder, 'again.tgz');
  execFileSync('tar', ['-czf', archive, '-C', dirname(inside), 'swebatch']);
  expect(statSync(archive).size).toBeLessThan(3_000_000);
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

test('it names nothing that it does not bring', () => {
  const manifest = JSON.parse(readFileSync(join(inside, 'package.json'), 'utf8')) as object;
  expect(missingNames(names, manifest, (path) => existsSync(join(dist, path)))).toEqual([]);
});

describe('what it loads when it is needed', () => {
  /** The program of the empty folder, which says which files it has loaded. */
  let started: ReturnType<typeof fork> | undefined;
  const line = (args: readonly string[], env: Record<string, string> = {}): Promise<CliResult> => {
    started ??= fork(
      join(REPO, 'tests', 'support', 'warmProgram.mjs'),
      [join(inside, 'dist', 'cli', 'bin.js')],
      { cwd: folder, execArgv: ['--import', join(folder, 'seen.mjs')], stdio: 'ignore' },
    );
    const child = started;
    const { PATH = '', HOME = '' } = process.env;
    return new Promise((resolve, reject) => {
      child.once('exit', (code) => reject(new Error(`the program ended with ${code} at ${args.join(' ')}`)));
      child.once('message', (result) => {
        child.removeAllListeners('exit');
        resolve(result as CliResult);
      });
      child.send({ args, env: { PATH, HOME, NO_COLOR: '1', ...env }, cwd: folder });
    });
  };
  afterAll(() => void started?.disconnect());

  const failed: string[] = [];
  /** Whatever it answers, it is a sentence about what was asked. */
  const says = async (args: readonly string[], env?: Record<string, string>) => {
    const { code, stdout, stderr } = await line(args, env);
    const said = `${stdout}${stderr}`;
    if (code === 5 || /Cannot find (?:module|package)|ERR_\w*(?:MODULE|PACKAGE)|internal error/i.test(said))
      failed.push(`swebatch ${args.join(' ')}: ${code} ${said.slice(0, 600)}`);
    return { code, stdout, said };
  };

  const put = (name: string, text: string) => {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
    return name;
  };
  const ROW = { repo: 'a/a', image: 'a:1', problem_statement: 'p', patch: '', test_patch: '' };
  const TESTS = { FAIL_TO_PASS: '[]', PASS_TO_PASS: '[]' };

  /** The rows and folders of each suite, as `src/suites/suites.ts` tells them apart. */
  const tasksOf = (row: object): string[] => [
    ...Object.entries({
      multiSwe: { org: 'a', repo: 'a', number: 1, base: { sha: 'a'.repeat(40), ref: 'main' }, fix_patch: '' },
      pro: { ...row, dockerhub_tag: 'a' },
      live: { ...row, test_cmds: ['a'], log_parser: 'pytest' },
      rebenchV2: { ...row, install_config: {}, image: 'swerebenchv2/a' },
      smith: { ...row, repo: 'swesmith/a__a.1' },
      r2eGym: { ...row, kind: 'r2e-gym', repo_name: 'a', docker_image: 'a', commit_hash: 'a'.repeat(40) },
    }).map(([name, one]) => put(`rows/${name}.jsonl`, JSON.stringify(one))),
    put('rows/comma.csv', 'instance_id,repo,base_commit\na__a-1,a/a,b\n'),
    dirname(put('harbor/one/task.toml', '[environment]\ndocker_image = "a:1"\n')),
    dirname(put('repository/sweb.yaml', 'a: b\n')),
  ];
  /** What other tools leave, as tests/formats/recognise.test.ts tells it apart. */
  const LEFT: Readonly<Record<string, string>> = {
    'left/inspect.json': '{"version": 2, "eval": {"task": "t", "model": "m"}}',
    'left/log.eval': 'PK',
    'left/preds.json': '{"a__a-1": {"model_name_or_path": "m", "model_patch": ""}}',
    'left/x.atif.json': '{"schema_version": "ATIF-v1.8", "steps": []}',
    'left/m.r.json': '{"total_instances": 1, "submitted_ids": ["a__a-1"]}',
    'left/results.json': '{"no_generation": [], "resolved": ["a__a-1"]}',
    'left/eval_results.json': '{"a__a-1": true}',
    'left/job/result.json': '{"n_total_trials": 1}',
    'left/mini/a/a.traj.json': '{"info": {}, "messages": []}',
  };

  test('every verb and every leaf answers in sentences about what was asked', async () => {
    const seen = put('seen.txt', '');
    put('seen.mjs', SEEN(join(folder, seen)));
    const tree = join(folder, 'tree');
    execFileSync('bash', ['-c', `git init -q ${tree} && cd ${tree} && echo a > a && git add a && ${COMMIT}`]);
    const base_commit = execFileSync('git', ['-C', tree, 'rev-parse', 'HEAD'], { encoding: 'utf8' }).trim();
    const row = { instance_id: 'a__a-1', base_commit, ...ROW, ...TESTS };
    const rows = put('rows.jsonl', JSON.stringify(row));
    put('replies.json', JSON.stringify([REPLY]));
    put('repository/tasks/a/task.yaml', 'a: b\n');

    for (const verb of VERBS) expect((await says([...verb.split(' '), '--help'])).code).toBe(0);

    const local = [
      '-c',
      'default',
      '-c',
      'environment.environment_class=local',
      '-c',
      `environment.cwd=${tree}`,
    ];
    const run = ['run', '--subset', rows, '-m', 'scripted:replies.json', ...local];
    expect((await says([...run, '--run-id', 'one'])).code).toBe(0);
    expect((await says([...run, '--dry-run'])).code).toBe(0);
    expect((await says([...run, '-c', 'run.gate.min_rate=0', '--run-id', 'gated'])).said).toBeTruthy();
    for (const agent of AGENT_NAMES)
      await says([...run, '-c', `agent.agent_class=${agent}`, '--run-id', `by-${agent}`]);
    for (const agent of ['command', 'acp'])
      await says([...run, '-c', `agent.agent_class=${agent}`, '-c', 'agent.command=true', '--dry-run']);

    for (const tasks of tasksOf(row)) await says(['datasets', 'check', tasks]);
    await says(['datasets', 'convert', rows, 'rows.json']);
    await says(['datasets', 'show', 'harbor:none@1.0.0'], { HTTPS_PROXY: 'http://127.0.0.1:9' });
    for (const [name, text] of Object.entries(LEFT)) put(name, text);
    for (const name of [...Object.keys(LEFT), 'left/job', 'left/mini', 'results/one'])
      await says(['import', name, '--run-id', `left-${name.replaceAll(/\W/g, '-')}`]);

    for (const words of [
      ...[
        'ls',
        'ls one',
        'show one',
        'show one a__a-1',
        'verify one',
        'ctl one',
        'report one',
        'report one --json',
      ],
      ...[
        'report one --paper',
        'report one --format html',
        'report one --history',
        'compare one left/results.json',
      ],
      ...[
        'resume one',
        'replay results/one/trajectories',
        'baseline set b one',
        'baseline show',
        'view --bundle page',
      ],
      ...[
        'clean --dry-run',
        'completion bash',
        'completion zsh',
        'completion fish',
        'config show -c swebench',
      ],
      ...['images plan rows.jsonl', 'images ls', 'agents ls', 'models', 'models gpt-5.4', 'evaluate one'],
      ...[
        'run --dry-run --subset rows.jsonl -m replay:results',
        'ls one --watch',
        'delete left-left-preds-json',
      ],
      ...['all', 'preds', 'trajs', 'summary', 'manifest', 'csv', 'junit', 'config', 'html', 'recording']
        .concat([...WRITTEN_FORMATS, ...WRITTEN_ATTEMPTS].map(({ word }) => word))
        .map((what) => `export one ${what} --to out/${what}`),
    ])
      await says(words.split(' '));
    expect((await says(['models', 'gpt-5.4'])).stdout).toMatch(/prices +\$[\d.]+ in, .*genai-prices@\d/);

    // A server that takes none of it: each dialect has written a request.
    await using server = await startRawServer([jsonReply({ error: { message: 'not here' } }, 400)]);
    for (const dialect of DIALECT_NAMES)
      await says([
        ...['run', '--subset', rows, '-m', 'hosted_vllm/m', '-c', `model.base_url=${server.url}`],
        ...[
          '-c',
          `model.dialect=${dialect}`,
          '-c',
          'model.prices=free',
          ...local,
          '--run-id',
          `in-${dialect}`,
        ],
      ]);
    expect(new Set(server.requests.map(({ path }) => path)).size).toBeGreaterThanOrEqual(
      DIALECT_NAMES.length,
    );

    for (const name of environmentNames())
      await says(['doctor', '-c', `environment.environment_class=${name}`, '-m', 'scripted:replies.json']);
    const kubernetes = [
      'doctor',
      '-m',
      'scripted:replies.json',
      '-c',
      'environment.environment_class=kubernetes',
    ];
    expect((await line(kubernetes)).stdout).toMatch(
      /package that is not installed: .*\n +fix: npm install @kubernetes/,
    );
    for (const [name, env] of Object.entries(CLOUDS)) {
      const { said } = await says(['doctor', '-m', name], env);
      expect(said).toMatch(
        /needs (?:a package that is|packages that are) not installed: .*\n +fix: npm install @?\w/,
      );
    }
    expect(failed).toEqual([]);

    // Each leaf was needed by one of these lines. The rest of what is loaded late loads too.
    const loaded = new Set(readFileSync(join(folder, seen), 'utf8').split(/(?:\?\d+)?\n/));
    const rest = [...reached].filter((file) => !loaded.has(pathToFileURL(join(dist, file)).href));
    const leaves = LEAVES.flatMap((table) => [
      ...readFileSync(join(REPO, 'src', table), 'utf8').matchAll(/\bload: .*import\('.*\/(\w+)\.ts'\)/g),
    ]).map(([, name]) => `${name}-`);
    expect(leaves.length).toBeGreaterThan(30);
    expect(rest.filter((file) => leaves.some((leaf) => file.startsWith(leaf)))).toEqual([]);
    put(
      'rest.mjs',
      rest
        .map((file) => `await import(${JSON.stringify(`./node_modules/swebatch/dist/${file}`)});`)
        .join('\n'),
    );
    const imported = spawnSync(process.execPath, ['rest.mjs'], { cwd: folder, encoding: 'utf8' });
    expect([imported.stderr, imported.status]).toEqual(['', 0]);
  });
});
const LEAVES = ['agent/agents.ts', 'model/dialects/dialects.ts', 'formats/formats.ts', 'suites/suites.ts'];
const REPLY =
  'a\n\n```bash\necho b > a; git add -A; git diff --cached > ../p; echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; cat ../p\n```';
/** A model of each cloud, and what says where it is. */
const CLOUDS = {
  'azure/m': { AZURE_API_BASE: 'https://m.openai.azure.com', AZURE_API_VERSION: 'v1' },
  'bedrock/anthropic.claude-3': { AWS_REGION_NAME: 'us-east-1' },
  'vertex_ai/gemini-2.5-pro': { VERTEXAI_PROJECT: 'p', VERTEXAI_LOCATION: 'us-east1' },
};
const COMMIT = 'git -c user.name=a -c user.email=a@example.org commit -qm a';
/** Keeps the address of every file that is loaded, by import or require. */
const SEEN = (file: string) => `import { appendFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
const seen = new Set();
registerHooks({
  resolve(name, context, next) {
    const found = next(name, context);
    if (!seen.has(found.url)) appendFileSync(${JSON.stringify(file)}, found.url + '\\n');
    seen.add(found.url);
    return found;
  },
});
`;

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
