// An endpoint is asked before a run: a dead port, a wrong key and a model that nobody serves are told at once, without a paid call.
import { existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { startRun } from '../../src/index.ts';
import { findingsOf } from '../../src/run/plan/checks.ts';
import { planFacts } from '../../src/run/plan/planFacts.ts';
import { resolveConfig } from '../../src/run/plan/resolveConfig.ts';
import { cli, tempDir } from '../support/cli.ts';
import { jsonReply, type RawReply, startRawServer } from '../support/rawServer.ts';

const KEY = 'sk-test-0123456789abcdef';
const list = (...ids: string[]) => jsonReply({ object: 'list', data: ids.map((id) => ({ id })) });
const NOTHING = jsonReply({ error: { message: 'no such page' } }, 404);

/** A port that was free a moment ago, with nobody behind it. */
async function deadPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function findingsFor(model: Record<string, unknown>, env: Record<string, string>) {
  const caller = { env, cwd: process.cwd() };
  return findingsOf('endpoints', 'doctor', planFacts(resolveConfig({ settings: { model } }, caller), caller));
}

async function asked(replies: readonly RawReply[], settings: Record<string, unknown> = {}) {
  await using server = await startRawServer(replies);
  const model = { model_name: 'm', base_url: `${server.url}/v1`, ...settings };
  const [finding] = await findingsFor(model, { OPENAI_API_KEY: KEY, ANTHROPIC_API_KEY: KEY });
  return { ...finding!, paths: server.requests.map(({ path }) => path), requests: server.requests };
}

describe('what an endpoint answers', () => {
  test.each<[string, readonly RawReply[], boolean, RegExp]>([
    ['a list with the model', [list('x', 'm')], true, /serves m$/],
    ['a list without it', [list('x', 'y'), NOTHING], false, /does not serve "m"/],
    [
      'a list without it, and a name that stands for another',
      [list('x'), jsonReply({ id: 'x' })],
      true,
      /knows m/,
    ],
    ['no list', [NOTHING], true, /has no list of models/],
    ['a page', [{ status: 200, body: '<html>' }], true, /has no list/],
    [
      'a refused key',
      [jsonReply({ error: { message: `bad ${KEY}` } }, 401)],
      false,
      /does not take the key \(401\)/,
    ],
    ['a fault', [jsonReply({ error: { message: `sorry ${KEY}` } }, 503)], false, /fault \(503\)/],
  ])('%s', async (_what, replies, ok, text) => {
    const finding = await asked(replies);
    expect(finding).toMatchObject({ ok, detail: expect.stringMatching(text) as string });
    expect(finding.paths[0]).toBe('/v1/models');
    expect(`${finding.detail} ${finding.fix}`).not.toContain(KEY);
    expect(finding.requests[0]!.headers.authorization).toBe(`Bearer ${KEY}`);
  });

  test('each dialect asks where its list is', async () => {
    const claude = await asked([list('claude-x')], { model_name: 'anthropic/claude-x', dialect: 'messages' });
    expect([claude.ok, claude.paths]).toEqual([true, ['/v1/models']]);
    const gemini = await asked([jsonReply({ models: [{ name: 'models/gemini-x' }] })], {
      model_name: 'gemini/gemini-x',
      dialect: 'gemini',
    });
    expect([gemini.ok, gemini.paths]).toEqual([true, ['/v1/models']]);
  });

  test('a header that refers to a variable is sent with its value', async () => {
    const kwargs = { extra_headers: { 'api-key': 'env:OPENAI_API_KEY' } };
    const finding = await asked([list('m')], { model_kwargs: kwargs });
    expect(finding.requests[0]!.headers['api-key']).toBe(KEY);
  });

  test('the makers’ own addresses are asked only on demand', async () => {
    expect(await findingsFor({ model_name: 'gpt-4o' }, {})).toEqual([]);
  });
});

const ROW = {
  ...{ instance_id: 'a__a-1', repo: 'a/a', base_commit: 'a'.repeat(40), problem_statement: 'x', patch: '' },
  ...{ test_patch: '', FAIL_TO_PASS: '[]', PASS_TO_PASS: '[]' },
};

test('where nobody listens a run ends at once, and makes nothing; doctor and a plan that asks say so too', async () => {
  const root = tempDir('swebatch-endpoint-');
  const dataset = join(root, 'data.jsonl');
  writeFileSync(dataset, `${JSON.stringify(ROW)}\n`);
  const base_url = `http://127.0.0.1:${await deadPort()}/v1`;
  const results = join(root, 'out');
  const settings = { model: { base_url, prices: 'free' }, environment: { environment_class: 'local' } };
  const options = { results, name: 'r', dataset: { subset: dataset }, models: ['m'], settings };
  const words = `nobody listens at ${new URL(base_url).host} (connection refused); start the server`;
  await expect(startRun({ ...options, env: {}, cwd: root })).rejects.toThrow(words);
  expect(existsSync(results)).toBe(false);
  const config = [`model.base_url=${base_url}`, 'model.prices="free"', 'environment.environment_class=local'];
  const given = ['-m', 'm', '-o', results, ...config.flatMap((spec) => ['-c', spec])];
  const [doctor, plan] = await Promise.all([
    cli(['doctor', ...given]),
    cli(['run', '--subset', dataset, ...given, '--dry-run', '--online']),
  ]);
  expect([doctor.code, plan.code]).toEqual([2, 2]);
  expect(doctor.stdout).toMatch(/FAIL endpoint of arm m: .*ECONNREFUSED.*fix: start the server/s);
  expect(plan.stderr).toMatch(/endpoint of arm m: .*start the server/);
});
