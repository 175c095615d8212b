// A wrong configuration is refused by plan, run and doctor alike, in the same words, before anything is made.
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { planRun, type RunOptions, startRun, UserError } from '../../src/index.ts';
import { cli, tempDir } from '../support/cli.ts';

const ROW = {
  instance_id: 'a__a-1',
  repo: 'a/a',
  base_commit: 'a'.repeat(40),
  image: 'swebatch-test/none:1',
  problem_statement: 'x',
  patch: '',
  test_patch: '',
  FAIL_TO_PASS: '[]',
  PASS_TO_PASS: '[]',
};
const folder = tempDir('swebatch-refusals-');
const dataset = join(folder, 'data.jsonl');
writeFileSync(dataset, `${JSON.stringify(ROW)}\n`);

const ENV = { HOME: process.env.HOME, OPENAI_API_KEY: 'sk-test-0123456789' };
const NO_KEY = { HOME: process.env.HOME };
const kwargs = (model_kwargs: object) => ({ model: { model_kwargs } });
const arms = (...models: string[]) => ({
  config: [`arms=${JSON.stringify(models.map((m) => JSON.parse(m)))}`],
});

type Case = readonly [what: string, options: Partial<RunOptions>, text: RegExp, env?: Record<string, string>];

const WRONG: readonly Case[] = [
  [
    'a parameter that leads elsewhere',
    { settings: kwargs({ model: 'x' }) },
    /model_kwargs\.model is not sent/,
  ],
  ['messages of the user', { settings: kwargs({ messages: [] }) }, /model_kwargs\.messages is not sent/],
  ['a stream among the parameters', { config: ['model.model_kwargs.stream=true'] }, /set model\.stream/],
  [
    'an address of another protocol',
    { settings: { model: { base_url: 'ftp://h/v1' } } },
    /not an http\(s\) URL/,
  ],
  [
    'a password in an address',
    { settings: { model: { base_url: 'https://me:hunter2hunter2@h/v1' } } },
    /holds a user and a password/,
  ],
  [
    'a key in the query of an address',
    { settings: { model: { base_url: 'http://127.0.0.1:9/v1?key=q1w2e3r4t5y6' } } },
    /holds a credential \("key"\)/,
  ],
  [
    'a key in the address of a variable',
    {},
    /holds a credential \("api_key"\)/,
    { OPENAI_BASE_URL: 'http://127.0.0.1:9/v1?api_key=q1w2e3r4t5y6' },
  ],
  [
    'a variable whose address is none',
    {},
    /not an http\(s\) URL: "nonsense"/,
    { OPENAI_BASE_URL: 'nonsense' },
  ],
  [
    'a header that HTTP does not take',
    { settings: kwargs({ extra_headers: { 'x y': '1' } }) },
    /the header "x y" has a name or a value/,
  ],
  ['a line break in a header', { settings: kwargs({ extra_headers: { a: 'b\nc' } }) }, /the header "a"/],
  ['a class of models that is not there', { settings: { model: { model_class: './no.ts' } } }, /no\.ts/],
  [
    'a class of models that is no path',
    { settings: { model: { model_class: 'nobody' } } },
    /model_class "nobody"/,
  ],
  [
    'several engines',
    { settings: { environment: { hosts: [{ host: 'ssh://lab1', slots: 8 }] } } },
    /environment\.hosts: a run has one engine.* Kubernetes.*--shard K\/N.*swebatch join/,
  ],
  [
    'a parser that is not there',
    { settings: { grading: { enabled: true, parsers: { p: './no.ts' } } } },
    /no\.ts/,
  ],
  ['a parameter out of range', { settings: kwargs({ temperature: 9 }) }, /temperature/],
  [
    'one arm of two',
    arms(
      '{"name":"a","model":{"model_name":"gpt-4o"}}',
      '{"name":"b","model":{"model_name":"gpt-4o","model_kwargs":{"tools":[]}}}',
    ),
    /model of arm b: model\.model_kwargs\.tools/,
  ],
];

const message = (work: () => Promise<unknown>): Promise<string> =>
  work().then(
    () => 'nothing was refused',
    (error: unknown) => (error instanceof UserError ? error.message : `no UserError: ${String(error)}`),
  );

describe('refused alike', () => {
  test.each(WRONG.map(([what, options, text, more = {}]) => [what, options, text, more] as const))(
    '%s',
    async (_what, wrong, text, more) => {
      const results = join(tempDir('swebatch-refusals-'), 'out');
      const options: RunOptions = {
        results,
        name: 'r',
        dataset: { subset: dataset },
        models: ['gpt-4o'],
        ...wrong,
      };
      const env = { ...ENV, ...more };
      const given = { ...options, env, cwd: folder };
      const words = await message(() => startRun(given));
      expect(words).toMatch(text);
      expect(await message(() => planRun(given))).toBe(words);
      expect(existsSync(results)).toBe(false);
    },
  );

  test('what is only missing here is no fault of the configuration: a plan is made, and says it', async () => {
    const results = join(tempDir('swebatch-refusals-'), 'out');
    const options: RunOptions = { results, name: 'r', dataset: { subset: dataset }, models: ['gpt-4o'] };
    const given = { ...options, env: { ...NO_KEY, DOCKER_HOST: 'tcp://127.0.0.1:1' }, cwd: folder };
    const { problems } = await planRun(given);
    expect(problems).toEqual([expect.stringContaining('$OPENAI_API_KEY is not set')]);
    expect(await message(() => startRun(given))).toContain(problems[0]);
    expect(existsSync(results)).toBe(false);
  });

  test('an endpoint over https without a key is refused before a row is made', async () => {
    const results = join(tempDir('swebatch-refusals-'), 'out');
    const options: RunOptions = { results, name: 'r', dataset: { subset: dataset }, models: ['m'] };
    const model = { base_url: 'https://h.example/v1', prices: 'free' };
    const given = { ...options, settings: { model }, env: NO_KEY, cwd: folder };
    expect(await message(() => startRun(given))).toMatch(/no API key for h\.example/);
    expect(existsSync(results)).toBe(false);
  });
});

test('a plan says the address that a variable names', async () => {
  const results = join(tempDir('swebatch-refusals-'), 'out');
  const options: RunOptions = { results, name: 'r', dataset: { subset: dataset }, models: ['gpt-4o'] };
  const env = { ...ENV, OPENAI_BASE_URL: 'http://127.0.0.1:9/v1', DOCKER_HOST: 'tcp://127.0.0.1:1' };
  const { arms, warnings } = await planRun({ ...options, env, cwd: folder });
  expect(arms).toMatchObject([{ address: 'http://127.0.0.1:9/v1', addressFrom: 'OPENAI_BASE_URL' }]);
  expect(warnings).toContain('arm gpt-4o asks http://127.0.0.1:9/v1, the address in $OPENAI_BASE_URL');
});

test('the three verbs: exit 2, the same words, nothing made', async () => {
  const out = join(tempDir('swebatch-refusals-'), 'out');
  const wrong = ['-m', 'gpt-4o', '-c', 'model.model_kwargs.model=x', '-o', out];
  const run = ['run', '--subset', dataset, ...wrong];
  const [ran, planned, doctored] = await Promise.all(
    [run, [...run, '--dry-run'], ['doctor', ...wrong]].map((args) => cli(args, { env: ENV as never })),
  );
  expect([ran!.code, planned!.code, doctored!.code]).toEqual([2, 2, 2]);
  const words = 'model.model_kwargs.model is not sent: set model.model_name';
  for (const { stdout, stderr } of [ran!, planned!, doctored!]) expect(stdout + stderr).toContain(words);
  expect(existsSync(out) ? readdirSync(out) : []).toEqual([]);
});
