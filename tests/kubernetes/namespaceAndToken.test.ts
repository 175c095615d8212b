// Runs whose namespace or whose token is taken away in the middle: infrastructure that says what to do, and `resume` completes them.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { openStore } from '../../src/store/open.ts';
import { runByName } from '../../src/store/records/runs.ts';
import { trialLines } from '../../src/store/records/trials.ts';
import { rawRow } from '../dataset/rows.ts';
import { baseCommit, SUBMITS, says } from '../support/baseRuns.ts';
import { cli, REPO, startCli, tempDir } from '../support/cli.ts';
import { BASE_IMAGE } from '../support/dockerEnvironment.ts';
import { kubectl, podNames } from './clusterTools.ts';

const IDS = ['x__x-1', 'x__x-2', 'x__x-3'];

/** Three instances whose agents wait in their pods until `go` is in the work tree, or for as long as given. */
async function bench(kubeconfig: string, waitS: number) {
  const dir = tempDir('cluster-run-');
  const commit = await baseCommit();
  const rows = IDS.map((id) => JSON.stringify(rawRow(id, { image: BASE_IMAGE, base_commit: commit })));
  writeFileSync(join(dir, 'd.jsonl'), rows.join('\n'));
  const replies = [says(`echo hi > new.txt; sleep ${waitS}`), SUBMITS];
  mkdirSync(join(dir, 'model'));
  for (const id of IDS) writeFileSync(join(dir, 'model', `${id}.json`), JSON.stringify({ replies }));
  const env = { KUBECONFIG: kubeconfig, XDG_STATE_HOME: dir };
  const set = (...pairs: string[]) => pairs.flatMap((pair) => ['-c', pair]);
  const args = [
    ...[
      'run',
      '--subset',
      join(dir, 'd.jsonl'),
      '-m',
      `scripted:${join(dir, 'model')}`,
      '-o',
      join(dir, 'out'),
    ],
    ...['--run-id', 'r1', '-w', '2', '--progress', 'plain'],
    ...set('environment.environment_class=kubernetes', 'environment.pull=never', 'environment.memory=512m'),
    ...set('environment.kubernetes.cpu_request=10m', 'environment.kubernetes.memory_request=16Mi'),
    ...set('environment.kubernetes.allow_open_network=true', 'run.retry.backoff_s=0'),
  ];
  return {
    start: () => startCli(args, { env }),
    resume: (more: Record<string, string> = {}) =>
      cli(['resume', 'r1', '-o', join(dir, 'out'), '--retry', 'infra', '--progress', 'plain'], {
        env: { ...env, ...more },
      }),
    ends() {
      const store = openStore(join(dir, 'out', 'swebatch.db'), { readonly: true });
      try {
        return trialLines(store, runByName(store, 'r1')!.id).map((line) => line.exit_reason);
      } finally {
        store.close();
      }
    },
    errors() {
      const store = openStore(join(dir, 'out', 'swebatch.db'), { readonly: true });
      try {
        return store
          .prepare('SELECT exit_reason, error_message FROM attempts WHERE exit_class = ? ORDER BY id')
          .all('infra') as { exit_reason: string; error_message: string }[];
      } finally {
        store.close();
      }
    },
  };
}

const runnerConfig = (): string => process.env.KUBECONFIG ?? '';
const twoWork = () =>
  expect
    .poll(
      () => kubectl('get', 'pods', '--field-selector=status.phase=Running', '-o', 'name').split('\n').length,
    )
    .toBeGreaterThan(2);
/** The command itself is seen, not only its pod. */
const sleeping = () =>
  expect
    .poll(
      () =>
        podNames().filter((pod) => {
          try {
            return kubectl('exec', pod, '-c', 'main', '--', 'sh', '-c', 'cat /proc/[0-9]*/cmdline').includes(
              'sleep',
            );
          } catch {
            return false;
          }
        }).length,
    )
    .toBeGreaterThanOrEqual(1);

describe('a run in a cluster', () => {
  test('whose namespace is deleted ends as infrastructure, names it, and is completed by resume when it is there again', async () => {
    const run = await bench(runnerConfig(), 25);
    const running = run.start();
    await twoWork();
    await sleeping();
    kubectl('delete', 'namespace', 'swebatch', '--wait=true');
    const done = await running.done;
    console.log('namespace:', done.code, JSON.stringify(run.errors(), null, 1));
    expect(done.code).not.toBe(0);
    expect(run.ends().filter((reason) => reason === 'submitted')).toEqual([]);
    expect(done.stderr + JSON.stringify(run.errors())).toMatch(/make (?:the namespace|it) again/);

    kubectl('apply', '-f', join(REPO, 'docs/kubernetes/setup'));
    kubectl('create', 'rolebinding', 'runner', '--role=swebatch', '--user=runner');
    await expect
      .poll(() => kubectl('get', 'serviceaccounts', '-o', 'name'))
      .toContain('serviceaccount/default');
    const again = await run.resume();
    expect(again.code, again.stderr).toBe(0);
    expect(run.ends()).toEqual(IDS.map(() => 'submitted'));
    await expect.poll(podNames).toEqual([]);
  });

  /** A kubeconfig of the ServiceAccount's own token, which the cluster keeps in a secret. */
  function accountConfig(user: (token: string) => object): { path: string; secret: string } {
    const secret = kubectl('get', 'serviceaccount', 'swebatch', '-o', 'jsonpath={.secrets[0].name}').trim();
    const token = Buffer.from(
      kubectl('get', 'secret', secret, '-o', 'jsonpath={.data.token}'),
      'base64',
    ).toString();
    const config = parse(readFileSync(runnerConfig(), 'utf8')) as { users: { user: object }[] };
    config.users[0]!.user = user(token);
    const path = join(tempDir('kubeconfig-'), 'config');
    writeFileSync(path, stringify(config));
    return { path, secret };
  }

  test('whose token is no longer taken says to log in again, and is completed by resume with another', async () => {
    const { path, secret } = accountConfig((token) => ({ token }));
    const run = await bench(path, 25);
    const running = run.start();
    await twoWork();
    await sleeping();
    kubectl('delete', 'secret', secret);
    const done = await running.done;
    console.log('token:', done.code, JSON.stringify(run.errors(), null, 1));
    expect(done.code).not.toBe(0);
    expect(done.stderr + JSON.stringify(run.errors())).toMatch(/log in (?:to the cluster )?again/);

    await expect
      .poll(() => kubectl('get', 'serviceaccount', 'swebatch', '-o', 'jsonpath={.secrets[0].name}'))
      .not.toBe('');
    const again = await run.resume({ KUBECONFIG: accountConfig((token) => ({ token })).path });
    expect(again.code, again.stderr).toBe(0);
    expect(run.ends()).toEqual(IDS.map(() => 'submitted'));
  });

  test('whose token is in a file reads it', async () => {
    const folder = tempDir('token-');
    const { path } = accountConfig((token) => {
      writeFileSync(join(folder, 'token'), token);
      return { tokenFile: join(folder, 'token') };
    });
    const run = await bench(path, 1);
    const done = await run.start().done;
    expect(done.code, done.stderr).toBe(0);
    expect(run.ends()).toEqual(IDS.map(() => 'submitted'));
  });
});
