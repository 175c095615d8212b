// Keys in headers and parameters: they are used, and stand nowhere. The run has no container, so that every byte can be searched.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  addressWithReferences,
  literalsInAddress,
  meansCredential,
  referencesIn,
  takeCredentialsOut,
  withReferences,
} from '../../src/model/namedCredentials.ts';
import { resolveConfig } from '../../src/run/plan/resolveConfig.ts';
import { cli, startCli, tempDir } from '../support/cli.ts';
import { startRawServer } from '../support/rawServer.ts';
import { localRun } from './localRun.ts';

const SECRET = 'Zq7-header-canary+9vLw/Xk41';
const OTHER = 'body-canary-51TmR8wq02';

describe('names', () => {
  test.each([
    ...[
      'api-key',
      'x-api-key',
      'X-Goog-Api-Key',
      'Authorization',
      'proxy-authorization',
      'Cookie',
      'apiKey',
      'token',
    ],
    ...[
      'access_token',
      'x-auth-token',
      'clientSecret',
      'password',
      'Ocp-Apim-Subscription-Key',
      'helicone-auth',
      'key',
    ],
    ...['x-portkey-virtual-key', 'x-amz-security-token', 'aws_secret_access_key'],
  ])('%s means a credential', (name) => expect(meansCredential(name)).toBe(true));

  test.each([
    ...[
      'max_tokens',
      'max_completion_tokens',
      'eos_token',
      'stop_token_ids',
      'prompt_cache_key',
      'seed',
      'x-request-id',
    ],
    ...['author', 'tokenizer', 'logit_bias', 'user', 'metadata', 'anthropic-beta', 'keyword', 'max_token'],
  ])('%s does not', (name) => expect(meansCredential(name)).toBe(false));
});

const shell = (name: string): string => ['$', '{', name, '}'].join('');

describe('references', () => {
  const kwargs = {
    stop: ['$HOME', shell('x')],
    extra_headers: { 'x-team': '$TEAM', authorization: 'Bearer env:TOKEN', a: 'env:A', b: shell('B') },
    extra_body: { nested: [{ api_key: '$K', note: '$NOTE' }], project: 'os.environ/P' },
  };
  const values: Record<string, string> = { TEAM: 't', TOKEN: SECRET, A: '1', B: '2', K: OTHER, P: 'p' };

  test('are read where they mean something, and nowhere else', () => {
    expect(referencesIn(kwargs).map(({ name }) => name)).toEqual(['TEAM', 'TOKEN', 'A', 'B', 'K', 'P']);
    const { kwargs: sent, secrets } = withReferences(kwargs, (name) => values[name]);
    expect(sent).toEqual({
      stop: ['$HOME', shell('x')],
      extra_headers: { 'x-team': 't', authorization: `Bearer ${SECRET}`, a: '1', b: '2' },
      extra_body: { nested: [{ api_key: OTHER, note: '$NOTE' }], project: 'p' },
    });
    expect(secrets).toEqual(expect.arrayContaining([SECRET, OTHER]));
    expect(() => withReferences(kwargs, () => undefined)).toThrow(
      'extra_headers.x-team is in $TEAM, which is not set',
    );
  });

  test('take the place of what stands in a configuration', () => {
    const given = {
      temperature: 0,
      extra_headers: { 'api-key': SECRET, 'x-team': 'a' },
      extra_body: { token: OTHER },
    };
    expect(takeCredentialsOut(given, '_2')).toEqual({
      kwargs: {
        temperature: 0,
        extra_headers: { 'api-key': 'env:CONFIGURED_EXTRA_HEADERS_API_KEY_2', 'x-team': 'a' },
        extra_body: { token: 'env:CONFIGURED_EXTRA_BODY_TOKEN_2' },
      },
      keys: { CONFIGURED_EXTRA_HEADERS_API_KEY_2: SECRET, CONFIGURED_EXTRA_BODY_TOKEN_2: OTHER },
      paths: {
        CONFIGURED_EXTRA_HEADERS_API_KEY_2: 'extra_headers.api-key',
        CONFIGURED_EXTRA_BODY_TOKEN_2: 'extra_body.token',
      },
    });
    expect(takeCredentialsOut(kwargs, '').kwargs).toEqual(kwargs);
  });

  test('the hash of a configuration does not depend on the value, and stays where there is none', () => {
    const hash = (more: object) =>
      resolveConfig(
        { models: ['gpt-4o'], settings: { model: { model_kwargs: more } } },
        { cwd: '.', env: {} },
      ).hash;
    const headers = (value: string) => hash({ extra_headers: { 'api-key': value } });
    expect(headers(SECRET)).toBe(headers(OTHER));
    expect(headers(SECRET)).not.toBe(hash({}));
    expect(hash({ extra_headers: { 'x-team': 'a' } })).not.toBe(hash({ extra_headers: { 'x-team': 'b' } }));
  });
});

const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile());

/** In any of the forms in which a text is usually written. */
const forms = (text: string): Buffer[] =>
  [
    text,
    JSON.stringify(text).slice(1, -1),
    encodeURIComponent(text),
    Buffer.from(text).toString('base64').slice(0, 20),
  ].map((form) => Buffer.from(form));

function expectNowhere(folder: string, ...said: string[]): void {
  for (const secret of [SECRET, OTHER])
    for (const form of forms(secret)) {
      for (const path of filesIn(folder))
        expect([path, readFileSync(path).includes(form)]).toEqual([path, false]);
      for (const text of said) expect(text).not.toContain(form.toString());
    }
}

test('a literal key is sent, stands in no file, no text and no export, and a resume asks for it again', async () => {
  const root = tempDir('swebatch-headers-');
  const body = (text: string) => ({
    id: 'c',
    model: 'm',
    choices: [{ message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 1 },
  });
  const echo = `the header was ${SECRET}, the token ${OTHER}`;
  const refused = {
    status: 401,
    body: JSON.stringify({ error: { message: `bad ${echo}`, code: 'invalid_api_key' } }),
  };
  await using server = await startRawServer([
    { status: 200, body: JSON.stringify(body(`${echo}\n\n\`\`\`bash\necho hi\n\`\`\``)) },
    refused,
  ]);
  const dataset = join(root, 'data.jsonl');
  const row = {
    instance_id: 'a__a-1',
    repo: 'a/a',
    base_commit: 'a'.repeat(40),
    problem_statement: 'x',
    patch: '',
  };
  writeFileSync(
    dataset,
    `${JSON.stringify({ ...row, test_patch: '', FAIL_TO_PASS: '[]', PASS_TO_PASS: '[]' })}\n`,
  );
  const tree = join(root, 'tree');
  mkdirSync(tree);
  execFileSync('git', ['init', '-q'], { cwd: tree });
  const out = join(root, 'out');
  const run = ['run', '--subset', dataset, '-o', out, '--run-id', 'r', '-m', 'm'];
  const config = [
    ...[
      `model.base_url=${server.url}`,
      'model.prices="free"',
      'environment.environment_class=local',
      `environment.cwd=${tree}`,
    ],
    `model.model_kwargs.extra_headers={"api-key": "${SECRET}"}`,
    `model.model_kwargs.extra_body={"auth": {"token": "${OTHER}"}, "project": "env:PROJECT"}`,
  ].flatMap((spec) => ['-c', spec]);
  const env = { PROJECT: 'alpha-project-1' };
  const first = await cli([...run, ...config], { env });
  expect(first.code).toBe(2);
  expect(server.requests[0]).toMatchObject({ headers: { 'api-key': SECRET } });
  expect(server.requests[0]!.body).toMatchObject({
    auth: { token: OTHER },
    project: 'alpha-project-1',
  });
  const exported = await cli(['export', 'r', 'config', '-o', out], { env });
  const shown = await cli(['show', 'r', '-o', out, '--json'], { env });
  expectNowhere(out, first.stdout, first.stderr, exported.stdout, exported.stderr, shown.stdout);
  expect(exported.stdout).toContain('env:CONFIGURED_EXTRA_HEADERS_API_KEY');
  const resumed = await cli(['resume', 'r', '-o', out], { env });
  expect(resumed.code).toBe(2);
  expect(resumed.stderr).toContain(
    'extra_headers.api-key is in $CONFIGURED_EXTRA_HEADERS_API_KEY, which is not set',
  );
  expect(resumed.stderr).toContain('env:NAME');
  const keys = { CONFIGURED_EXTRA_HEADERS_API_KEY: SECRET, CONFIGURED_EXTRA_BODY_AUTH_TOKEN: OTHER };
  const again = await cli(['resume', 'r', '-o', out], { env: { ...env, ...keys } });
  expect(again.stderr).toContain('authentication failed (401)');
  expect(server.requests.at(-1)).toMatchObject({ headers: { 'api-key': SECRET } });
  expectNowhere(out, again.stdout, again.stderr);
});

test('a run that kill -9 ends in mid-call leaves no key in any file, its unmerged log included, nor does what follows', async () => {
  const reply = (text: string) => ({
    body: JSON.stringify({
      id: 'c',
      model: 'm',
      choices: [{ message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1, completion_tokens: 1 },
    }),
  });
  const echo = `the header was ${SECRET}, the token ${OTHER}\n\n\`\`\`bash\necho "${SECRET}"\n\`\`\``;
  const submit = '```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```';
  await using server = await startRawServer([
    reply(echo),
    { body: '', hang: true },
    reply(echo),
    reply(submit),
  ]);
  const { out, args } = localRun({
    model: {
      ...{ model_name: 'm', base_url: server.url },
      model_kwargs: {
        extra_headers: { 'api-key': SECRET, 'x-team': 'env:TEAM_KEY' },
        extra_body: { auth: { token: OTHER } },
      },
    },
  });
  const env = { TEAM_KEY: 'team-canary-88Zq1w0', SWEBATCH_DEBUG: '1' };
  const running = startCli(args, { env });
  await server.waitForRequests(2);
  running.process.kill('SIGKILL');
  const killed = await running.done;
  expect(killed.signal).toBe('SIGKILL');
  expect(statSync(join(out, 'swebatch.db-wal')).size).toBeGreaterThan(0);
  const team = (...said: string[]) => {
    for (const path of filesIn(out))
      expect([path, readFileSync(path).includes(env.TEAM_KEY)]).toEqual([path, false]);
    for (const text of said) expect(text).not.toContain(env.TEAM_KEY);
  };
  expectNowhere(out, killed.stdout, killed.stderr);
  team(killed.stdout, killed.stderr);
  const verbs = [
    ['export', 'r', 'config'],
    ['show', 'r', '--manifest'],
    ['show', 'r', 'a__a-1'],
    ['verify', 'r'],
  ];
  for (const verb of verbs) {
    const { stdout, stderr } = await cli([...verb, '-o', out], { env });
    expectNowhere(out, stdout, stderr);
    team(stdout, stderr);
  }
  const keys = { CONFIGURED_EXTRA_HEADERS_API_KEY: SECRET, CONFIGURED_EXTRA_BODY_AUTH_TOKEN: OTHER };
  const resumed = await cli(['resume', 'r', '-o', out], { env: { ...env, ...keys } });
  expect(resumed.code, resumed.stderr).toBe(0);
  expect(server.requests.at(-1)).toMatchObject({ headers: { 'api-key': SECRET, 'x-team': env.TEAM_KEY } });
  expect(filesIn(out).map((path) => path.slice(out.length + 1))).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/backup/),
      'r/run.json',
      expect.stringMatching(/traj\.json$/),
    ]),
  );
  expectNowhere(out, resumed.stdout, resumed.stderr);
  team(resumed.stdout, resumed.stderr);
});

test('an address refers to the variable of its key, and the value is a secret of the request', () => {
  const address = 'http://h/v1?key=env:DOOR&api-version=2024';
  expect(literalsInAddress(address)).toEqual([]);
  expect(literalsInAddress('http://h/v1?apiKey=abc&v=1')).toEqual([{ name: 'apiKey', value: 'abc' }]);
  expect(addressWithReferences(address, () => 'a b&c')).toEqual({
    address: 'http://h/v1?key=a+b%26c&api-version=2024',
    secrets: ['a b&c'],
  });
  expect(() => addressWithReferences(address, () => undefined)).toThrow(
    'model.base_url takes "key" from $DOOR, which is not set',
  );
});
