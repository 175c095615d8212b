// Images, clocks and waits that go wrong (T-25, T-39, T-55, the watchdog), through the whole program.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { cli, REPO } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';
import { derivedImage } from '../support/dockerEnvironment.ts';
import { random } from './random.ts';
import {
  type Bench,
  bash,
  expectOthersGood,
  expectSound,
  faultBench,
  GOOD,
  IMAGE,
  SUBMIT,
} from './support.ts';

const docker = await dockerAvailable();
let bench: Bench;
afterEach(() => bench?.close());

describe.skipIf(!docker)('environments', () => {
  test('T-25 a lifetime shorter than the agent may take is refused before anything starts', async () => {
    bench = await faultBench({
      agent: { wall_time_limit_seconds: 7200 },
      environment: { container_timeout: '1h' },
    });
    const result = await bench.run(bench.id);
    expect(result.code).toBe(2);
    expect(result.stderr).toContain(
      'environment.container_timeout (1h) is shorter than agent.wall_time_limit_seconds (7200 s)',
    );
    expect(bench.server.requests.length).toBe(0);
  });

  test('T-25 a container whose lifetime ends is env_died (expired), tried again, and never a failure of the model', async () => {
    bench = await faultBench({
      scripts: { 'a__a-1': [bash('sleep 50'), ...GOOD] },
      // Long enough for the others on a busy machine.
      environment: { container_timeout: '20s', timeout: 60 },
    });
    const result = await bench.run(bench.id);
    expect(result.code).toBe(3);
    expect(bench.trials(bench.id)[0]).toMatchObject({ exit_reason: 'env_died', exit_class: 'infra' });
    const attempts = bench.query<{ detail: string; text: string }>(
      `SELECT exit_detail AS detail, error_message AS text FROM attempts WHERE exit_reason = 'env_died'`,
    );
    expect(attempts).toHaveLength(2);
    for (const { detail, text } of attempts) {
      expect(detail).toBe('expired');
      expect(text).toContain('its lifetime of 20 s is over; raise environment.container_timeout');
    }
    // One call an attempt: none is made once the container is gone.
    expect(bench.server.count('a__a-1')).toBe(2);
    expectOthersGood(bench, bench.id);
    await expectSound(bench, bench.id, 4, [result]);
  });

  test('T-39 images whose Python is another one pause the run after three, with one sentence, and end it incomplete', async () => {
    const ids = [1, 2, 3, 4, 5, 6].map((n) => `a__a-${n}`);
    const imageOf = (id: string) => `swebatch-test/probe-${process.pid}-${id}:1`;
    for (const id of ids) execFileSync('docker', ['tag', IMAGE, imageOf(id)]);
    try {
      bench = await faultBench({
        ids,
        row: (id) => ({ repo: 'pallets/flask', image: imageOf(id) }),
        config: {
          retry: { attempts: 3, backoff_s: 0 },
          breaker: { consecutive: 0, fraction: 0, empty_patches: 0, probe_after_s: 0, max_probes: 1 },
        },
      });
      const result = await bench.run(bench.id, ['-w', '1']);
      expect(result.code).toBe(3);
      expect(result.stderr).toMatch(
        /paused: python package "flask" not importable in 3\/3 images; one instance probes/,
      );
      expect(result.stderr.match(/: paused|paused:/g)).toHaveLength(1);
      // Three, and the one that probes; the others are not tried.
      const ended = bench.trials(bench.id).filter((t) => t.exit_reason !== null);
      expect(ended).toHaveLength(4);
      // The next container would be from the same image.
      expect(bench.query('SELECT count(*) AS n FROM attempts')).toEqual([{ n: 4 }]);
      for (const trial of ended)
        expect(trial).toMatchObject({ exit_reason: 'env_start_failed', exit_class: 'infra' });
      const [first] = bench.query<{ text: string; detail: string }>(
        'SELECT error_message AS text, exit_detail AS detail FROM attempts ORDER BY id',
      );
      expect(first!.detail).toBe('wrong_env');
      expect(first!.text).toMatch(
        /^python package "flask" not importable in swebatch-test\/probe-\S+ .*environment\.probe to off$/s,
      );
      expect(bench.server.requests.length).toBe(0);
      await expectSound(bench, bench.id, 6, [result]);
    } finally {
      for (const id of ids) execFileSync('docker', ['rmi', imageOf(id)], { stdio: 'ignore' });
    }
  });

  const PROFILE = `
mkdir -p /opt/testbed/bin /opt/testbed/lib/flask
touch /opt/testbed/lib/flask/__init__.py
printf '#!/bin/sh\\nPYTHONPATH=/opt/testbed/lib exec python3 "$@"\\n' >/opt/testbed/bin/python
chmod 755 /opt/testbed/bin/python
printf 'export PATH=/opt/testbed/bin:$PATH\\n' >/etc/profile.d/testbed.sh
`;
  test('T-39 images whose environment comes with a login shell: the first one ends the run, with the keys that help', async () => {
    const image = await derivedImage(PROFILE);
    const rows = { row: () => ({ repo: 'pallets/flask', image }) };
    bench = await faultBench({ ...rows, config: { workers: 1, retry: { attempts: 3, backoff_s: 0 } } });
    const result = await bench.run(bench.id, ['-w', '1']);
    expect(result.code).toBe(2);
    expect(result.stderr).toContain('is there in a login shell only, and commands run by "bash -c"');
    expect(result.stderr).toContain('set environment.interpreter to [bash, -lc]');
    expect(result.stderr).toContain('agent.compat (mini-swe-agent-1 or mini-swe-agent-2) does that');
    expect(bench.query('SELECT exit_reason, exit_detail FROM attempts')).toEqual([
      { exit_reason: 'config_invalid', exit_detail: 'login_shell' },
    ]);
    expect(bench.server.requests.length).toBe(0);
    await bench.close();

    bench = await faultBench({ ...rows, environment: { interpreter: ['bash', '-lc'] } });
    expect((await bench.run(bench.id)).code).toBe(0);
    expectOthersGood(bench, bench.id, []);
  });

  test('a user that the images do not have: the first one ends the run, before the model is asked', async () => {
    bench = await faultBench({
      environment: { user: 'nobody-at-all' },
      config: { workers: 1, retry: { attempts: 3, backoff_s: 0 } },
    });
    const result = await bench.run(bench.id, ['-w', '1']);
    expect(result.code).toBe(2);
    expect(result.stderr).toContain('environment.user is "nobody-at-all": name one that the images have');
    expect(bench.query('SELECT exit_reason, exit_detail FROM attempts')).toEqual([
      { exit_reason: 'config_invalid', exit_detail: 'refused_option' },
    ]);
    expect(bench.server.requests.length).toBe(0);
  });

  test('an agent that committed its work and submits nothing: the line of its end, the report and show say what is left', async () => {
    bench = await faultBench({
      inTrees: true,
      ids: ['a__a-1', 'a__a-2'],
      scripts: {
        'a__a-1': [
          bash(
            `sed -i 's/Hello/Hi/' src/greet.py && git -c user.name=a -c user.email=a@example.com commit -qam done`,
          ),
          SUBMIT,
        ],
      },
    });
    const result = await bench.run(bench.id);
    expect(result.stderr).toMatch(
      /a__a-1 submitted · .* · patch 0 B \(it submitted nothing; its work tree has changes of \d+ B\)/,
    );
    expect(result.stderr).not.toMatch(/a__a-2 submitted .*submitted nothing/);
    expect(bench.preds(bench.id)['a__a-1']!.model_patch).toBe('');
    const on = ['-o', bench.root];
    const report = await cli(['report', bench.id, ...on]);
    expect(report.stdout).toContain('Submitted nothing, with changes in the work tree');
    const shown = await cli(['show', bench.id, 'a__a-1', ...on]);
    expect(shown.stdout).toMatch(/note: it submitted nothing, and its work tree has changes of \d+ bytes/);
  });

  test('T-39 the right environment is asked once an attempt, in a phase of its own, and the agent goes on', async () => {
    bench = await faultBench({
      environment: {
        probe: 'json',
        startup_command: 'ln -s /usr/bin/python3 /usr/local/bin/python',
      },
    });
    const result = await bench.run(bench.id);
    expect(result.code).toBe(0);
    expect(bench.query(`SELECT count(*) AS n FROM phases WHERE name = 'probe'`)).toEqual([{ n: 4 }]);
    expectOthersGood(bench, bench.id, []);
    await expectSound(bench, bench.id, 4, [result]);
  });
});

describe.skipIf(!docker)('time', () => {
  const shifted = (ms: number, file: string) => ({
    NODE_OPTIONS: `--import=${join(REPO, 'tests/faults/clockJump.mjs')}`,
    CLOCK_JUMP_MS: String(ms),
    CLOCK_JUMP_AT: file,
  });

  test.each([3_600_000, -3_600_000])(
    'T-55 the clock of the machine jumps by %i ms in the middle: nothing times out, nothing counts',
    async (jump) => {
      bench = await faultBench({
        agent: { wall_time_limit_seconds: 120 },
        environment: { container_timeout: '30m' },
      });
      const file = join(bench.root, 'jump');
      const running = bench.start(bench.id, [], shifted(jump, file));
      // A clock that is off before the run begins is another case: the engine is refused.
      await bench.server.waitForRequests(1 + Math.floor(random() * 6));
      writeFileSync(file, '');
      const result = await running.done;
      expect(result.stderr).toContain('clock jumped');
      expect(result.code).toBe(0);
      const [times] = bench.query<{ longest: number; shortest: number }>(
        'SELECT max(elapsed_ms) AS longest, min(elapsed_ms) AS shortest FROM attempts',
      );
      expect(times!.longest).toBeLessThan(120_000);
      expect(times!.shortest).toBeGreaterThanOrEqual(0);
      expect(bench.query('SELECT 1 FROM phases WHERE duration_ms < 0 OR duration_ms > 120000')).toEqual([]);
      expect(bench.server.requests.length).toBe(4 * 3);
      expectOthersGood(bench, bench.id, []);
      await expectSound(bench, bench.id, 4, [result]);
    },
  );

  test('T-55 waiting for a slot counts against nobody, and is recorded as such', async () => {
    const ids = [1, 2, 3, 4, 5, 6, 7].map((n) => `a__a-${n}`);
    bench = await faultBench({
      inTrees: true,
      ids,
      scripts: Object.fromEntries(ids.map((id) => [id, [bash('sleep 2'), ...GOOD]])),
      config: { workers: 1 },
      // Less than what the last one waits for its turn.
      agent: { wall_time_limit_seconds: 10 },
    });
    const result = await bench.run(bench.id, ['-w', '1']);
    expect(result.code).toBe(0);
    const waits = bench.query<{ waited: number; offset: number }>(
      `SELECT duration_ms AS waited, offset_ms AS offset FROM phases WHERE name = 'queue' ORDER BY duration_ms`,
    );
    expect(waits).toHaveLength(7);
    expect(waits[6]!.waited).toBeGreaterThan(10_000);
    expect(waits.every((w) => w.offset === -w.waited)).toBe(true);
    expectOthersGood(bench, bench.id, []);
    await expectSound(bench, bench.id, 7, [result]);
  });

  test('T-55 an answer after the deadline changes nothing: the call ended as aborted and was asked once more', async () => {
    bench = await faultBench({
      inTrees: true,
      scripts: {
        'a__a-1': [
          { content: GOOD[0] as string, before: [{ content: bash('touch late'), delayMs: 3_000 }] },
          bash('sleep 3; ls'),
          ...GOOD.slice(1),
        ],
      },
      model: { first_byte_timeout_s: 1 },
    });
    const result = await bench.run(bench.id);
    expect(result.code).toBe(0);
    expect(bench.server.count('a__a-1')).toBe(5);
    expect(
      bench
        .query<{ state: string }>('SELECT state FROM model_calls WHERE step = 1 AND try = 0')
        .map((r) => r.state)
        .sort(),
    ).toEqual(['aborted', 'ok', 'ok', 'ok']);
    expect(bench.query(`SELECT 1 FROM commands WHERE command LIKE '%touch late%'`)).toEqual([]);
    expectOthersGood(bench, bench.id, []);
    await expectSound(bench, bench.id, 4, [result]);
  });

  test('the watchdog: a wait without progress ends as stalled with its phase, every wait has its phase and time [T-63]', async () => {
    bench = await faultBench({
      scripts: { 'a__a-1': [bash('echo work >> README.md'), { hang: true }] },
      model: { first_byte_timeout_s: 0, total_timeout_s: 0, idle_timeout_s: 0 },
      config: { stall: { model_s: 2 } },
    });
    const result = await bench.run(bench.id);
    expect(result.code).toBe(3);
    const stalled = bench.query<{ detail: string; text: string; patch: string }>(
      `SELECT exit_detail AS detail, error_message AS text, CAST(captured_patch AS TEXT) AS patch
       FROM attempts WHERE exit_reason = 'stalled'`,
    );
    expect(stalled).toHaveLength(2);
    for (const attempt of stalled) {
      expect(attempt).toMatchObject({ detail: 'model', text: 'no progress in phase "model" for 2 s' });
      expect(attempt.patch).toContain('+work');
    }
    expect(result.stderr).toContain('a__a-1 stalled (model)');
    const names = bench.query<{ name: string }>('SELECT DISTINCT name FROM phases').map((r) => r.name);
    expect(names).toEqual(
      expect.arrayContaining(['queue', 'pull', 'start', 'model', 'exec', 'capture', 'stop']),
    );
    expect(bench.query('SELECT 1 FROM phases WHERE duration_ms IS NULL')).toEqual([]);
    // The phases of an attempt are its whole time, without holes: each begins when the one before it ends.
    const sums = bench.query<{ hole: number }>(
      `SELECT abs(a.elapsed_ms - sum(p.duration_ms)) AS hole FROM attempts a JOIN phases p ON p.attempt_id = a.id AND p.seq >= 0 GROUP BY a.id`,
    );
    for (const { hole } of sums) expect(hole).toBeLessThan(20);
    expectOthersGood(bench, bench.id);
    await expectSound(bench, bench.id, 4, [result]);
  });
});
