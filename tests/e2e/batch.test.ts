// What mini-swe-agent's batch tests ask of a batch, of the real program: slots change nothing, a broken agent stops nobody, each
// trial begins and ends once on the display, whatever the locale.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { cli, tempDir } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';

const docker = await dockerAvailable();
const run = (out: string, id: string, ...more: string[]) =>
  cli([
    ...['run', '--subset', 'datasets/demo/demo.jsonl', '--model', 'scripted:datasets/demo/replies'],
    ...['--slice', '0:3', '-c', 'agent.step_limit=15', '-o', out, '--run-id', id, ...more],
  ]);
const read = (...path: string[]) =>
  JSON.parse(readFileSync(join(...path), 'utf8')) as Record<string, Record<string, unknown>>;

describe.skipIf(!docker)('a batch', () => {
  test('with one and with two slots gives the same predictions and the same messages [M-55]', async () => {
    const out = tempDir();
    expect((await run(out, 'one', '-w', '1')).code).toBe(0);
    expect((await run(out, 'two', '-w', '2')).code).toBe(0);
    const preds = read(out, 'one', 'preds.json');
    expect(Object.keys(preds)).toHaveLength(3);
    expect(read(out, 'two', 'preds.json')).toEqual(preds);
    const contents = (id: string, instance: string) =>
      (
        read(out, id, 'trajectories', instance, `${instance}.traj.json`).messages as unknown as {
          role: string;
          content: string;
        }[]
      ).map(({ role, content }) => [role, content.replaceAll(/\d+\.\d+s\b/g, '?s')]);
    for (const instance of Object.keys(preds))
      expect(contents('two', instance)).toEqual(contents('one', instance));
  });

  test.each([1, 2])(
    'an agent that breaks is told with its class in the trajectory, and the others go on: %i slots [M-52, M-53]',
    async (slots) => {
      const out = tempDir();
      const result = await run(
        out,
        'r',
        ...['-w', String(slots), '--progress', 'json', '--emit-empty'],
        ...['-c', 'agent.agent_class=tests/agent/fixtures/failingAgent.mjs'],
        ...['-c', 'run.retry.attempts=1', '-c', 'run.breaker.consecutive=0'],
      );
      const broken = 'swebatch__cronwheel-23';
      const { info, instance_id } = read(out, 'r', 'trajectories', broken, `${broken}.traj.json`);
      expect(instance_id).toBe(broken);
      expect(info).toMatchObject({
        exit_status: 'EnvironmentError',
        exception_str: expect.stringContaining('nobody foresaw this') as string,
      });
      const preds = read(out, 'r', 'preds.json');
      expect(preds[broken]!.model_patch).toBe('');
      expect(Object.values(preds).filter((p) => p.model_patch !== '')).toHaveLength(2);
      expect(result.code).toBe(3);
      expect(result.stderr).toMatch(
        /\n {2}env_start_failed 1: swebatch__cronwheel-23: .*nobody foresaw this/,
      );
      // Each trial begins once and ends once on the display.
      const events = result.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as { type: string; trial?: { instanceId: string } });
      const ids = (type: string) =>
        events
          .filter((e) => e.type === type)
          .map((e) => e.trial!.instanceId)
          .sort();
      expect(ids('trial_started')).toEqual(Object.keys(preds).sort());
      expect(ids('trial_ended')).toEqual(Object.keys(preds).sort());
    },
  );
});

test('a configuration is UTF-8 under the C locale too [M-41]', async () => {
  const out = tempDir();
  const config = join(out, 'c.yaml');
  writeFileSync(config, 'model: {model_name: "scripted:größe-日本"}\n');
  const { code, stdout } = await cli(
    ['run', '--subset', 'datasets/demo/demo.jsonl', '-c', config, '-o', out, '--dry-run', '--json'],
    { env: { LC_ALL: 'C', LANG: 'C' } },
  );
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ arms: [{ model: 'scripted:größe-日本' }] });
  expect(existsSync(join(out, 'swebatch.db'))).toBe(false);
});
