// What goes wrong in a real cluster, and which end an attempt has for it.
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { connectCluster } from '../../src/environment/kubernetes/cluster.ts';
import { clusterConfigSchema } from '../../src/environment/kubernetes/clusterConfig.ts';
import { kubernetes as kind } from '../../src/environment/kubernetes/kubernetes.ts';
import { reapPods } from '../../src/environment/kubernetes/podReaper.ts';
import { currentOwner, LABELS } from '../../src/environment/owner.ts';
import { testCluster } from './testCluster.ts';

const FOLDER = process.env.SWEBATCH_KUBERNETES ?? '';
const SCRIPT = join(import.meta.dirname, '..', '..', 'scripts', 'kubernetes', 'cluster.sh');
const ADMIN = join(FOLDER, 'run', 'admin.kubeconfig');
const kubectl = (...args: string[]): string =>
  execFileSync(join(FOLDER, 'bin', 'kubectl'), ['--kubeconfig', ADMIN, '-n', 'swebatch', ...args], {
    encoding: 'utf8',
    timeout: 60_000,
  });
const applied = (manifest: object): string =>
  execFileSync(
    join(FOLDER, 'bin', 'kubectl'),
    ['--kubeconfig', ADMIN, '-n', 'swebatch', 'apply', '-f', '-'],
    {
      input: JSON.stringify(manifest),
      encoding: 'utf8',
    },
  );
const script = (...args: string[]): string =>
  execFileSync(SCRIPT, args, { encoding: 'utf8', timeout: 120_000 });

const cluster = testCluster();
const pods = () => kubectl('get', 'pods', '-o', 'name').split('\n').filter(Boolean);
afterEach(() => cluster.stop());
afterAll(() => cluster.stop());

describe('a pod that ends while a command runs', () => {
  test('because somebody deletes it is infrastructure, and nothing is left', async () => {
    const env = await cluster.start();
    const running = env.execute('sleep 300', { timeoutS: 200 });
    const ended = expect(running).rejects.toMatchObject({ code: 'died', sub: 'killed', fromWithin: false });
    kubectl('delete', 'pod', env.info.containerId!, '--grace-period=0', '--force');
    await ended;
    await env.close();
    await expect.poll(pods).toEqual([]);
  });

  test('because it wrote more than its limit is its own doing', async () => {
    const env = await cluster.start({ config: { disk: '50m' } });
    const writing = env.execute('dd if=/dev/zero of=/big bs=1M count=200; sleep 300', { timeoutS: 240 });
    await expect(writing).rejects.toMatchObject({ code: 'disk_full', fromWithin: true });
  });

  test('because its lifetime is over is expired', async () => {
    const env = await cluster.start({ config: { container_timeout: 8 } });
    await expect(env.execute('sleep 300', { timeoutS: 200 })).rejects.toMatchObject({
      code: 'died',
      sub: 'expired',
    });
  });

  test('because the API server is started anew: the stream is lost, and so is the pod', async () => {
    const env = await cluster.start();
    const running = env.execute('sleep 300', { timeoutS: 200 });
    const ended = expect(running).rejects.toMatchObject({ code: 'died', sub: 'daemon_lost' });
    script('api', 'stop');
    script('api', 'start');
    await ended;
    await env.close();
    await expect.poll(pods).toEqual([]);
  });
});

describe('a pod that cannot start', () => {
  test('for an image that nobody has says so at once', async () => {
    const began = performance.now();
    const start = cluster.start({ image: 'swebatch-test/not-there:1', config: { pull: 'never' } });
    await expect(start).rejects.toMatchObject({ code: 'image_missing' });
    const pulled = cluster.start({ image: 'bad.invalid/x:1', config: { pull: 'missing', pull_timeout: 5 } });
    await expect(pulled).rejects.toMatchObject({ code: 'image_pull_failed', sub: 'stalled' });
    expect(performance.now() - began).toBeLessThan(120_000);
    expect(pods()).toEqual([]);
  });

  test('for want of room waits, and goes on when there is some', async () => {
    const first = await cluster.start({
      config: { kubernetes: clusterConfigSchema.parse({ cpu_request: '1500m' }) },
    });
    let started = false;
    const second = cluster
      .start({ config: { kubernetes: clusterConfigSchema.parse({ cpu_request: '1500m' }) } })
      .then((env) => {
        started = true;
        return env;
      });
    await expect
      .poll(() => kubectl('get', 'pods', '-o', 'jsonpath={.items[*].status.conditions[0].reason}'))
      .toContain('Unschedulable');
    expect(started).toBe(false);
    await first.close();
    expect((await (await second).execute('echo on')).output).toBe('on\n');
  });

  test('for a quota that is used up waits, and goes on when it is not', async () => {
    const first = await cluster.start();
    applied({
      ...{
        apiVersion: 'v1',
        kind: 'ResourceQuota',
        metadata: { name: 'one' },
        spec: { hard: { pods: '1' } },
      },
    });
    try {
      await expect.poll(() => kubectl('get', 'quota', 'one', '-o', 'jsonpath={.status.used.pods}')).toBe('1');
      const second = cluster.start();
      const state = await Promise.race([
        second.then(() => 'started'),
        new Promise((resolve) => setTimeout(() => resolve('waits'), 3000)),
      ]);
      expect(state).toBe('waits');
      await first.close();
      expect((await (await second).execute('echo on')).output).toBe('on\n');
    } finally {
      kubectl('delete', 'quota', 'one');
    }
  });
});

describe('no network', () => {
  test('holds where the cluster enforces its policy', async () => {
    const env = await cluster.start({ config: { network: 'none' } });
    expect(env.info.notes).toEqual([]);
    const reach =
      'timeout 4 bash -c "exec 3<>/dev/tcp/10.243.0.1/26443" 2>/dev/null && echo reached || echo closed';
    expect((await env.execute(reach)).output).toBe('closed\n');
    const open = await cluster.start({ config: { network: 'bridge' } });
    await expect.poll(async () => (await open.execute(reach)).output).toBe('reached\n');
  });

  test('is refused where the cluster does not, unless that is allowed', async () => {
    script('enforce', 'off');
    try {
      const refused = cluster.start({ config: { network: 'none' } });
      await expect(refused).rejects.toMatchObject({ code: 'start_failed', sub: 'open_network' });
      const allowed = await cluster.start({
        config: {
          network: 'none',
          kubernetes: clusterConfigSchema.parse({ allow_open_network: true, cpu_request: '10m' }),
        },
      });
      expect(allowed.info.notes.join()).toMatch(/does not enforce its network policy: .*10\.243\.0\.1:26443/);
    } finally {
      script('enforce', 'on');
    }
    expect(pods().length).toBeLessThan(2);
  });
});

describe('what stands between a person and the cluster', () => {
  const asking = async (kubeconfig: string, kubernetes: object = {}) => {
    const before = process.env.KUBECONFIG;
    process.env.KUBECONFIG = kubeconfig;
    try {
      const environment = {
        ...{ environment_class: 'kubernetes', network: 'none', user: undefined },
        kubernetes: clusterConfigSchema.parse(kubernetes),
      };
      return await kind.findings!([{ name: 'a', environment } as never]);
    } finally {
      process.env.KUBECONFIG = before;
    }
  };
  const runner = join(FOLDER, 'run', 'runner.kubeconfig');

  test('is named with its fix', async () => {
    expect(await asking(runner)).toMatchObject([{ ok: true }, { ok: true }]);
    expect(await asking(join(FOLDER, 'run', 'stranger.kubeconfig'))).toMatchObject([
      { ok: false, detail: expect.stringContaining('may not create pods') },
    ]);
    expect(await asking(runner, { context: 'nobody' })).toMatchObject([
      { ok: false, detail: expect.stringContaining('has no context "nobody"; it has runner') },
    ]);
    expect(await asking(join(FOLDER, 'no-such-file'))).toMatchObject([{ ok: false }]);
  });
});

test('pods of a process that is dead are removed, those of a live one stay', async () => {
  const env = await cluster.start();
  const owner = { ...currentOwner('dead-run', '1'), pid: 2 ** 22 + 1, pidStart: '1' };
  const orphan = await cluster.start({ request: { owner } });
  const result = await reapPods(await connectCluster(clusterConfigSchema.parse({})), { dryRun: false });
  expect(result.removed.map(({ name }) => name)).toEqual([orphan.info.containerId]);
  expect((await env.execute('echo alive')).output).toBe('alive\n');
  expect(kubectl('get', 'pod', env.info.containerId!, '-o', 'json')).toContain(LABELS.bootId);
});
