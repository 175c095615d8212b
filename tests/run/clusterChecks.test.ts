// What stands between a person and a cluster is told before anything is made or paid. The API server here only answers from notes; a real one
// is asked in tests/kubernetes.
import { existsSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { environmentFindings } from '../../src/environment/environments.ts';
import { clusterConfigSchema } from '../../src/environment/kubernetes/clusterConfig.ts';
import { cli, tempDir } from '../support/cli.ts';

const folder = tempDir('swebatch-cluster-');
const kubeconfig = join(folder, 'kubeconfig');
const asked: string[] = [];
/** What the account may do, by "verb resource". */
let may: (right: string) => boolean = () => true;
let expired = false;
let server: Server;

const CLOSING = {
  metadata: { name: 'closed' },
  spec: { podSelector: { matchLabels: { 'swebatch/network': 'none' } }, policyTypes: ['Ingress', 'Egress'] },
};

beforeAll(async () => {
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    asked.push(`${request.method} ${request.url}`);
    const json = (status: number, body: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (expired) return json(401, { kind: 'Status', status: 'Failure', reason: 'Unauthorized', code: 401 });
    if (/^\/version\/?$/.test(request.url!)) return json(200, { gitVersion: 'v1.30.1' });
    if (/\/networkpolicies(\?|$)/.test(request.url!)) return json(200, { items: [CLOSING] });
    if (chunks.length === 0)
      return json(404, { kind: 'Status', status: 'Failure', reason: 'NotFound', code: 404 });
    const { spec } = JSON.parse(Buffer.concat(chunks).toString());
    const { verb, resource, subresource } = spec.resourceAttributes;
    const allowed = may(`${verb} ${resource}${subresource ? `/${subresource}` : ''}`);
    return json(201, { spec, status: { allowed } });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as AddressInfo;
  const config = {
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'night' },
    clusters: [
      { name: 'c', cluster: { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true } },
    ],
    users: [{ name: 'u', user: { token: 'not-a-secret' } }],
    contexts: [{ name: 'night', context: { cluster: 'c', user: 'u', namespace: 'evals' } }],
  };
  writeFileSync(kubeconfig, JSON.stringify(config));
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

async function findings(kubernetes: object = {}, path = kubeconfig) {
  const before = process.env.KUBECONFIG;
  process.env.KUBECONFIG = path;
  try {
    const environment = {
      ...{ environment_class: 'kubernetes', network: 'none', user: undefined },
      kubernetes: clusterConfigSchema.parse(kubernetes),
    };
    return await environmentFindings([{ name: 'a', environment } as never]);
  } finally {
    if (before === undefined) delete process.env.KUBECONFIG;
    else process.env.KUBECONFIG = before;
  }
}

describe('a cluster', () => {
  test('that answers and gives the rights is good', async () => {
    expect(await findings()).toMatchObject([
      { ok: true, detail: expect.stringMatching(/^v1\.30\.1, .*namespace evals/) },
      { ok: true, detail: expect.stringContaining('closed by policy closed') },
    ]);
  });

  test('whose account lacks rights is refused, with the rights and the fix', async () => {
    may = (right) => !['create pods', 'get pods/exec'].includes(right);
    expect(await findings()).toEqual([
      {
        ...{ what: 'Kubernetes context night', ok: false },
        detail: expect.stringMatching(/these credentials may not create pods, get pods\/exec$/),
        fix: expect.stringContaining('give the account the role'),
      },
    ]);
    may = () => true;
  });

  test('whose token has expired is refused with what to do', async () => {
    expired = true;
    expect(await findings()).toMatchObject([
      { ok: false, fix: expect.stringContaining('log in to the cluster again') },
    ]);
    expired = false;
  });

  test.each([
    ['a file that is not there', () => join(folder, 'none'), {}, /kubeconfig|no cluster is known/],
    ['a file that is no kubeconfig', () => written('broken', '{]'), {}, /the kubeconfig cannot be read/],
    [
      'a context that it does not have',
      () => kubeconfig,
      { context: 'day' },
      /has no context "day"; it has night/,
    ],
    ['a server that does not answer', () => written('dead', deadConfig()), {}, /127\.0\.0\.1:1/],
  ])('%s', async (_what, path, kubernetes, words) => {
    const [found] = await findings(kubernetes, path());
    expect(found).toMatchObject({
      ok: false,
      detail: expect.stringMatching(words),
      fix: expect.stringContaining('kubeconfig'),
    });
  });
});

function written(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}
const deadConfig = () =>
  JSON.stringify({
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'x' },
    clusters: [{ name: 'c', cluster: { server: 'http://127.0.0.1:1', 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'u', user: {} }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
  });

test('run ends with 2 where rights are missing, and has made nothing', async () => {
  may = () => false;
  asked.length = 0;
  const row = {
    ...{ instance_id: 'a__a-1', repo: 'a/a', base_commit: 'a'.repeat(40), image: 'swebatch-test/none:1' },
    ...{ problem_statement: 'x', patch: '', test_patch: '', FAIL_TO_PASS: '[]', PASS_TO_PASS: '[]' },
  };
  const subset = written('data.jsonl', `${JSON.stringify(row)}\n`);
  const out = join(folder, 'out');
  const { code, stderr } = await cli(
    ['run', '--subset', subset, '-o', out, '-m', 'gpt-4o', '-c', 'environment.environment_class=kubernetes'],
    { cwd: folder, env: { OPENAI_API_KEY: 'sk-test-0123456789', KUBECONFIG: kubeconfig } },
  );
  expect(code).toBe(2);
  expect(stderr).toContain(
    'these credentials may not create pods, get pods, list pods, delete pods, get pods/exec',
  );
  expect(existsSync(out)).toBe(false);
  expect(asked.filter((one) => !/GET \/version|selfsubjectaccessreviews$/.test(one))).toEqual([]);
});
