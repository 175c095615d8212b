// `clean` looks in every place that the record names: the engine and clusters. The API server here answers from notes.
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { currentOwner, LABELS, ownerLabels } from '../../src/environment/owner.ts';
import { cli, tempDir } from '../support/cli.ts';
import { addRun, openFixture } from '../viewer/fixture.ts';

const dir = tempDir();
const kubeconfig = join(dir, 'kubeconfig');
const deleted: string[] = [];
let listed = 0;

const pod = (name: string, pid: number, pidStart: string) => ({
  metadata: {
    name,
    annotations: {
      ...ownerLabels(currentOwner('night', '1.1'), 'a__a-1', new Date(0), name),
      ...{ [LABELS.pid]: String(pid), [LABELS.pidStart]: pidStart },
    },
  },
});

const server = createServer((request, response) => {
  const json = (body: object) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  const path = request.url!.split('?')[0]!;
  if (request.method === 'DELETE') {
    deleted.push(path);
    return json({ kind: 'Status', status: 'Success' });
  }
  listed += 1;
  const own = currentOwner('night', '1.1');
  return json({ items: [pod('left', 2 ** 22 + 1, '1'), pod('alive', process.pid, own.pidStart)] });
});

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const cluster = { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true };
  const config = {
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'night' },
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user: { token: 'not-a-secret' } }],
    contexts: [{ name: 'night', context: { cluster: 'c', user: 'u', namespace: 'evals' } }],
  };
  writeFileSync(kubeconfig, JSON.stringify(config));
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

/** A results root with a run of each of these environments. */
function record(name: string, ...environments: readonly object[]): string {
  const root = join(dir, name);
  mkdirSync(root);
  const store = openFixture(root);
  for (const [i, environment] of environments.entries()) {
    const run = `r${i}`;
    addRun(store, { name: run, instances: 1, steps: 1 });
    store
      .prepare('UPDATE arms SET config = ? WHERE run_id = (SELECT id FROM runs WHERE name = ?)')
      .run(JSON.stringify({ agent: {}, model: {}, environment }), run);
  }
  store.close();
  return root;
}

const nowhere = { DOCKER_HOST: 'tcp://127.0.0.1:1', KUBECONFIG: kubeconfig };
const clean = (root: string, ...more: string[]) =>
  cli(['clean', '-o', root, ...more], { cwd: dir, env: nowhere });
const inCluster = { environment_class: 'kubernetes', kubernetes: {} };

test('pods that a dead process left are shown, and removed, also where no engine is; of a namespace that two runs name once', async () => {
  const root = record('pods', inCluster, { ...inCluster, kubernetes: { context: 'night' } });
  const shown = await clean(root, '--dry-run');
  expect(shown.stdout).toMatch(/left +namespace.* +night +a__a-1 .* yes/);
  expect([deleted, listed]).toEqual([[], 1]);
  const done = await clean(root, '--json');
  expect(deleted).toEqual(['/api/v1/namespaces/evals/pods/left']);
  expect(JSON.parse(done.stdout).elsewhere).toMatchObject([
    {
      ...{ what: 'pod', place: expect.stringMatching(/^namespace evals of http:/) },
      ...{ removed: [{ name: 'left', run: 'night' }], kept: [{ name: 'alive' }] },
    },
  ]);
  expect(done.code, done.stderr).toBe(0);
  expect(done.stderr).toContain('1 pod(s) of live or foreign owners were left alone');
});

test('a cluster that does not answer is told, with exit code 3', async () => {
  const away = { ...inCluster, kubernetes: { context: 'gone' } };
  const { code, stderr } = await clean(record('silent', away));
  expect(code, stderr).toBe(3);
  expect(stderr).toMatch(/context gone, its namespace does not answer.*has no context "gone"/);
});

test('where the record needs the default engine, its silence is a mistake to correct', async () => {
  const { code, stderr } = await clean(record('here', { environment_class: 'docker', hosts: [] }));
  expect(code).toBe(2);
  expect(stderr).toContain('Docker does not answer');
});
