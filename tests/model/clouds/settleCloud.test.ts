// What a cloud's name needs before anything starts: variables and packages, each named when it is missing, with exit 2.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { refusedBecause } from '../../../src/model/clouds/cloud.ts';
import { priceSource } from '../../../src/model/prices.ts';
import { settleModel } from '../../../src/model/settleModel.ts';
import { agentProblem } from '../../../src/run/agents/armAgent.ts';
import { cli, tempDir } from '../../support/cli.ts';
import { configOf } from '../harness.ts';

const settle = (model_name: string, env: Record<string, string>, settings: object = {}, litellm = false) =>
  settleModel(configOf({ model_name, ...settings }), { env, litellm });

const AZURE = { AZURE_API_BASE: 'https://mine.openai.azure.com/openai/v1/', AZURE_API_VERSION: 'v1' };
const VERTEX = { GOOGLE_CLOUD_PROJECT: 'p1', CLOUD_ML_REGION: 'europe-west1' };
const CLAUDE = 'bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0';

describe('addresses', () => {
  test.each<[string, Record<string, string>, string, string]>([
    ['azure/gpt-4o', AZURE, 'https://mine.openai.azure.com', 'chat'],
    ['azure/gpt-5.1', AZURE, 'https://mine.openai.azure.com', 'responses'],
    ['azure/gpt-5.1', { ...AZURE, AZURE_API_VERSION: '2024-10-21' }, 'https://mine.openai.azure.com', 'chat'],
    [CLAUDE, { AWS_REGION: 'eu-west-1' }, 'https://bedrock-runtime.eu-west-1.amazonaws.com', 'messages'],
    [
      CLAUDE,
      { AWS_REGION_NAME: 'us-west-2', AWS_REGION: 'eu-west-1' },
      'https://bedrock-runtime.us-west-2.amazonaws.com',
      'messages',
    ],
    [
      'vertex_ai/gemini-2.5-pro',
      VERTEX,
      'https://europe-west1-aiplatform.googleapis.com/v1/projects/p1/locations/europe-west1',
      'gemini',
    ],
    [
      'vertex_ai/claude-opus-4-5@20251101',
      { ...VERTEX, VERTEXAI_LOCATION: 'global' },
      'https://aiplatform.googleapis.com/v1/projects/p1/locations/global',
      'messages',
    ],
  ])('%s with %j', (name, env, base_url, dialect) => {
    const settled = settle(name, env);
    expect(settled).toMatchObject({ ok: true, model: { base_url, dialect } });
    if (!settled.ok) return;
    // The record of a run has it all: it goes on where none of the variables is set.
    const { addressFrom: _, ...recorded } = settled;
    expect(settle(name, {}, settled.model)).toEqual(recorded);
    expect(priceSource(settled.model, new Date())).toMatch(/genai-prices/);
  });

  test('under agent.compat Azure is asked for chat completions', () => {
    expect(settle('azure/gpt-5.1', AZURE, {}, true)).toMatchObject({ ok: true, model: { dialect: 'chat' } });
  });

  test('litellm’s names in model_kwargs count before variables', () => {
    const kwargs = { model_kwargs: { aws_region_name: 'ap-south-1' } };
    expect(settle(CLAUDE, { AWS_REGION: 'eu-west-1' }, kwargs)).toMatchObject({
      model: { base_url: 'https://bedrock-runtime.ap-south-1.amazonaws.com' },
    });
  });
});

describe('what is missing is named, with what to do', () => {
  test.each<[string, Record<string, string>, string]>([
    ['azure/gpt-4o', {}, 'export AZURE_API_BASE=... , or set model.base_url'],
    ['azure/gpt-4o', { AZURE_API_BASE: 'https://x' }, 'export AZURE_API_VERSION='],
    [
      'azure/responses/x',
      { AZURE_API_BASE: 'https://x', AZURE_API_VERSION: '2024-06-01' },
      'set AZURE_API_VERSION to v1',
    ],
    [CLAUDE, {}, 'export AWS_REGION_NAME=... , or set model.model_kwargs.aws_region_name'],
    ['bedrock/meta.llama3-70b-instruct-v1:0', { AWS_REGION: 'x' }, 'only Anthropic'],
    ['vertex_ai/gemini-2.5-pro', {}, 'export VERTEXAI_PROJECT='],
    ['vertex_ai/gemini-2.5-pro', { VERTEXAI_PROJECT: 'p' }, 'export VERTEXAI_LOCATION='],
  ])('%s with %j', (name, env, expected) => {
    const settled = settle(name, env);
    expect(settled.ok ? 'settled' : `${settled.message}; ${settled.fix}`).toContain(expected);
  });

  test('a credential in a configuration is refused, for the record would hold it', () => {
    const settled = settle(CLAUDE, { AWS_REGION: 'x' }, { model_kwargs: { aws_secret_access_key: 'abc' } });
    expect(settled).toMatchObject({
      ok: false,
      message: 'model.model_kwargs.aws_secret_access_key is a credential',
    });
    expect(JSON.stringify(settled)).not.toContain('abc');
  });
});

test('an installed agent, which writes its own requests, is refused at a cloud', async () => {
  const model = configOf({ model_name: CLAUDE });
  const agent = { agent_class: 'command', command: 'my-agent {{task}}' };
  const environment = { environment_class: 'docker' };
  const problem = await agentProblem({ agent, environment, model } as never, {});
  expect(problem?.message).toContain('do not carry the credentials of bedrock');
});

test('a parameter at a cloud is warned of, since clouds follow their makers with a delay', () => {
  const settled = settle('azure/gpt-5', AZURE, { model_kwargs: { temperature: 0 } });
  expect(settled).toMatchObject({ ok: true, warnings: [expect.stringContaining('temperature')] });
});

test.each([
  [
    'Signature expired: 20260101T000000Z is now earlier than 20260101T001500Z',
    20,
    /clock of this machine is 20s ahead/,
  ],
  ['Signature not yet current', -90, /clock of this machine is 1m30s behind/],
  ['Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe.', 0, /clock/],
  ['AADSTS700024: Client assertion is not within its valid time range', 0, /clock/],
  ['The security token included in the request is expired', 0, /^the credentials have expired/],
  ['The security token included in the request is invalid.', 0, null],
] as const)('%s', (said, aheadS, expected) => {
  const date = new Date(Date.UTC(2026, 0, 1)).toUTCString();
  const why = refusedBecause(said, aheadS === 0 ? undefined : date, Date.UTC(2026, 0, 1) + aheadS * 1000);
  if (expected === null) expect(why).toBeNull();
  else expect(why).toMatch(expected);
});

/** Loaded before the program: the packages of the clouds are not there. */
const WITHOUT_PACKAGES = `
import { registerHooks } from 'node:module';
registerHooks({
  resolve(specifier, context, next) {
    if (!/^(@aws-sdk|@smithy|@azure|google-auth-library)/.test(specifier)) return next(specifier, context);
    throw Object.assign(new Error('Cannot find package ' + specifier), { code: 'ERR_MODULE_NOT_FOUND' });
  },
});
`;

test('packages that are not installed: exit 2 with the line that installs them', async () => {
  const root = tempDir('swebatch-clouds-');
  const hook = join(root, 'without.mjs');
  writeFileSync(hook, WITHOUT_PACKAGES);
  const row = {
    instance_id: 'a__a-1',
    repo: 'a/a',
    base_commit: 'a'.repeat(40),
    image: 'none:1',
    problem_statement: 'x',
  };
  const rest = { patch: '', test_patch: '', FAIL_TO_PASS: '[]', PASS_TO_PASS: '[]' };
  writeFileSync(join(root, 'data.jsonl'), `${JSON.stringify({ ...row, ...rest })}\n`);
  const run = (name: string, env: Record<string, string>) =>
    cli(
      [
        'run',
        '--subset',
        join(root, 'data.jsonl'),
        '-o',
        join(root, 'out'),
        '-c',
        'swebench.yaml',
        '-m',
        name,
      ],
      {
        env: { ...env, NODE_OPTIONS: `--import ${hook}` },
      },
    );
  const bedrock = await run(CLAUDE, { AWS_REGION: 'us-east-1' });
  expect(bedrock.code).toBe(2);
  expect(bedrock.stderr).toContain(
    'bedrock/ needs packages that are not installed: @aws-sdk/credential-provider-node',
  );
  expect(bedrock.stderr).toContain(
    'npm install @aws-sdk/credential-provider-node @smithy/signature-v4 @smithy/eventstream-codec',
  );
  const azure = await run('azure/gpt-4o', AZURE);
  expect([azure.code, azure.stderr]).toEqual([2, expect.stringContaining('npm install @azure/identity')]);
  const vertex = await run('vertex_ai/gemini-2.5-pro', VERTEX);
  expect([vertex.code, vertex.stderr]).toEqual([
    2,
    expect.stringContaining('npm install google-auth-library'),
  ]);
});

test('`swebatch models` says what a cloud is asked with, and which variable is missing', async () => {
  const shown = await cli(['models', CLAUDE], { env: { AWS_REGION: 'us-east-1' } });
  expect(shown.code).toBe(0);
  expect(shown.stdout).toMatch(/credentials +AWS's default chain .*, by @aws-sdk\/credential-provider-node/);
  expect(shown.stdout).toMatch(/context +200,000 tokens/);
  const missing = await cli(['models', 'azure/gpt-4o']);
  expect([missing.code, missing.stderr]).toEqual([2, expect.stringContaining('AZURE_API_BASE')]);
});
