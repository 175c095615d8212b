// The examples of docs/extension.md are modules that work: each is taken from the page and run by the program.
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import Database from 'better-sqlite3';
import { beforeAll, describe, expect, test } from 'vitest';
import { loadParsers } from '../../src/grading/parsers/parserRegistry.ts';
import { cli, REPO, tempDir } from '../support/cli.ts';

const page = readFileSync(join(REPO, 'docs', 'extension.md'), 'utf8');
const DATASET = 'datasets/demo/demo.jsonl';

/** The first TypeScript block below a heading; the package's name stands for what is built of this source tree. */
function example(heading: string): string {
  const [, section] = page.split(`\n## ${heading}\n`);
  const block = /```ts\n(.*?\n)```\n/s.exec(section?.split('\n## ')[0] ?? '');
  if (!block) throw new Error(`docs/extension.md has no example under "${heading}"`);
  return block[1]!.replaceAll("'swebatch'", `'${join(REPO, 'dist', 'index.js')}'`);
}

let dir: string;
const module = (name: string) => join(dir, name);
beforeAll(() => {
  dir = tempDir();
  mkdirSync(dir, { recursive: true });
  for (const [heading, name] of [
    ['An agent', 'agent.ts'],
    ['A model', 'model.ts'],
    ['An environment', 'environment.ts'],
    ['A log parser', 'parser.ts'],
  ] as const)
    writeFileSync(module(name), example(heading));
});

test('agent, model and environment of the page work together in a run', async () => {
  const out = tempDir();
  const result = await cli([
    ...['run', '--subset', DATASET, '--slice', '0:1', '-o', out, '--run-id', 'r1'],
    ...['-c', `agent.agent_class=${module('agent.ts')}`, '-c', `model.model_class=${module('model.ts')}`],
    ...['-c', `environment.environment_class=${module('environment.ts')}`, '-m', 'echo-1'],
  ]);
  expect(result.stderr).toMatch(/submitted · 1 step /);
  expect(result.code).toBe(0);
  // What the agent of the page says, and the row that the model of the page tells the ledger.
  expect(readFileSync(join(out, 'r1', 'run.log'), 'utf8')).toContain('"msg":"step"');
  const db = new Database(join(out, 'swebatch.db'), { readonly: true });
  expect(db.prepare('SELECT model_answered, cost_nano, state FROM model_calls').all()).toEqual([
    { model_answered: 'echo-1', cost_nano: 0, state: 'ok' },
  ]);
  db.close();
});

test('an agent that pushes onto its history leaves a record that holds, and one that throws is told where', async () => {
  const out = tempDir();
  const swebatch = `'${join(REPO, 'dist', 'index.js')}'`;
  const start = `import { DefaultAgent } from ${swebatch};\nclass Mine extends DefaultAgent {\n  async step() {\n    `;
  const end = `;\n    await super.step();\n  }\n}\nexport const createAgent = (parts) => new Mine(parts);\n`;
  writeFileSync(
    module('pushing.mjs'),
    `${start}this.messages.push({ role: 'user', content: 'a hint' })${end}`,
  );
  writeFileSync(module('throwing.mjs'), `${start}throw new RangeError('no way')${end}`);
  const run = (name: string, slice: string) =>
    cli([
      ...[
        'run',
        '--subset',
        DATASET,
        '--slice',
        slice,
        '-o',
        out,
        '--run-id',
        name,
        '-c',
        'demo.yaml',
        '-w',
        '1',
      ],
      ...['-c', `agent.agent_class=${module(`${name}.mjs`)}`, '-m', 'scripted:datasets/demo/replies'],
    ]);
  const pushing = await run('pushing', '0:1');
  expect(pushing.code, pushing.stderr).toBe(0);
  const throwing = await run('throwing', '0:3');
  expect(throwing.stderr).toContain(`your agent ${module('throwing.mjs')} threw at line 4: no way`);
  expect(throwing.stderr).not.toContain('report it');
  expect(throwing.code).toBe(2);
  for (const name of ['pushing', 'throwing']) {
    const verified = await cli(['verify', name, '-o', out]);
    expect(verified.code, verified.stdout + verified.stderr).toBe(0);
  }
  const db = new Database(join(out, 'swebatch.db'), { readonly: true });
  // One instance may be odd, and two are the agent: none of them was tried again.
  expect(
    db.prepare("SELECT exit_reason FROM attempts WHERE exit_reason <> 'submitted'").pluck().all(),
  ).toEqual(['config_invalid', 'config_invalid']);
  expect(db.prepare("SELECT count(*) FROM messages WHERE content = 'a hint'").pluck().get()).toBeGreaterThan(
    1,
  );
  db.close();
});

test('the program of the page runs three instances, graded, and reads what came out', async () => {
  const out = join(tempDir(), 'results');
  writeFileSync(module('program.ts'), example('A program').replaceAll("'results'", JSON.stringify(out)));
  const program = spawn(process.execPath, [module('program.ts')], { cwd: REPO });
  const [said, problems] = await Promise.all([text(program.stdout), text(program.stderr)]);
  expect(problems).toBe('');
  const ids = readFileSync(join(REPO, DATASET), 'utf8')
    .split('\n', 3)
    .map((line) => (JSON.parse(line) as { instance_id: string }).instance_id);
  for (const id of ids) {
    expect(said).toContain(`${id} submitted`);
    expect(said).toMatch(new RegExp(`${id} (resolved|unresolved)`));
  }
  expect(said).toContain('complete { agent: 3 }');
});

test('the log parser of the page reads a log', async () => {
  const parsers = await loadParsers({ 'my-parser': './parser.ts' }, dir);
  expect(parsers).toBeDefined();
  const { parseLog } = (await import(module('parser.ts'))) as { parseLog(log: string): Map<string, string> };
  expect([...parseLog('PASS a\nnoise\nFAIL b c\n')]).toEqual([
    ['a', 'PASSED'],
    ['b c', 'FAILED'],
  ]);
});

describe('a module that cannot be used is named before anything is made', () => {
  test.each([
    [
      'agent.agent_class=./nowhere.ts',
      'agent.agent_class: ./nowhere.ts cannot be loaded: there is no such file',
    ],
    [
      'environment.environment_class=podman',
      'environment.environment_class "podman" is not known: use docker',
    ],
    ['grading.parsers.mine=./nowhere.ts', 'grading.parsers.mine: ./nowhere.ts cannot be loaded'],
  ])('%s', async (spec, text) => {
    const out = join(tempDir(), 'results');
    const more = ['-m', 'scripted:datasets/demo/replies', '--evaluate', '-c', spec];
    const result = await cli(['run', '--subset', DATASET, '-o', out, '--run-id', 'r1', ...more]);
    expect(result).toMatchObject({ code: 2, stderr: expect.stringContaining(text) as string });
    // The name is still free: nothing was written.
    expect((await cli(['ls', '-o', out])).stderr).toContain('no results database');
  });

  test('replies that are not there too, and a run without a model says how to name one', async () => {
    const out = join(tempDir(), 'results');
    const run = (...more: string[]) => cli(['run', '--subset', DATASET, '-o', out, ...more]);
    expect(await run('-m', 'scripted:./absent/replies')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('there are no scripted replies at') as string,
    });
    const unnamed = await run();
    expect(unnamed.code).toBe(2);
    expect(unnamed.stderr).toContain('no model is named; name one with -m MODEL');
    expect(unnamed.stderr).not.toContain('no price');
  });
});
