// Timeouts, cancellation, limits: whatever the command does, it ends, and nothing of it is left.
import { describe, expect, test } from 'vitest';
import type { Environment } from '../../../src/environment/environment.ts';
import { type Bench, countProcesses, type Suite } from './bench.ts';

/** Far more than a busy machine and a slow engine need to end what runs, far less than what runs would take. */
const SOON_MS = 100_000;

/** `killMs`: how long after its limit a command may be seen, at most. */
export function timeoutSuite(bench: Bench, killMs = SOON_MS): void {
  describe('timeout', () => {
    /** Sleeps of a length that nothing else on the machine has. */
    const unique = () => `98${String(Math.floor(Math.random() * 1e6)).padStart(6, '0')}`;
    /** Of what is killed nothing is left: the next one begins as in a fresh environment. */
    let one: Promise<Environment> | undefined;

    test.each([
      [
        'background, setsid and foreground [T-26]',
        (n: string) => `sleep ${n} & setsid sleep ${n} & sleep ${n}`,
      ],
      [
        'nohup and double fork',
        (n: string) => `(nohup setsid sleep ${n} >/dev/null 2>&1 & ) ; ( (sleep ${n} &) & ) ; sleep ${n}`,
      ],
      [
        'TERM trapped, busy [T-27]',
        (n: string) => `trap '' TERM INT HUP; X=${n}; sh -c "trap '' TERM; while :; do : ${n}; done"`,
      ],
      ['stopped by itself', (n: string) => `sleep ${n} & kill -STOP $$; sleep ${n}`],
      ['forking on and on', (n: string) => `while :; do sleep ${n} & command sleep 0.01; done`],
      [
        'python with its own session',
        (n: string) => `python3 -c "
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp('sleep', ['sleep', '${n}'])
time.sleep(${n})"`,
      ],
    ])('%s: all dead, partial output kept [M-36, M-68]', async (_name, make) => {
      one ??= bench.start();
      const env = await one;
      const n = unique();
      const began = performance.now();
      const result = await env.execute(`echo partial; ${make(n)}`, { timeoutS: 2 });
      expect(performance.now() - began).toBeLessThan(2000 + killMs);
      expect(result.timedOut).toBe(true);
      expect(result.exitCode).toBe(-1);
      expect(result.output).toContain('partial\n');
      expect(result.exceptionInfo).toContain('timed out after 2s');
      expect((await env.execute(countProcesses(n))).output).toBe('0\n');
      expect((await env.execute('echo alive')).output).toBe('alive\n');
    });

    test.skipIf(!bench.can.container)('a process that emptied its environment dies too', async () => {
      const env = await bench.start();
      const n = unique();
      await env.execute(`env -i setsid sleep ${n} & env -i sleep ${n} & sleep ${n}`, { timeoutS: 1 });
      expect((await env.execute(countProcesses(n))).output).toBe('0\n');
    });

    test('background processes of earlier commands live on', async () => {
      const env = await bench.start();
      const n = unique();
      await env.execute(`setsid sleep ${n} >/dev/null 2>&1 &`);
      await env.execute('sleep 100', { timeoutS: 0.5 });
      expect((await env.execute(countProcesses(n))).output).toBe('1\n');
    });

    test('a background child that keeps stdout open does not delay the end', async () => {
      const env = await bench.start();
      const began = performance.now();
      const result = await env.execute('sleep 300 & echo done');
      expect(performance.now() - began).toBeLessThan(SOON_MS);
      expect([result.output, result.exitCode]).toEqual(['done\n', 0]);
    });

    test('the limit of one command can be raised and lowered', async () => {
      const env = await bench.start({ config: { timeout: 1 } });
      expect((await env.execute('sleep 1.5; echo ok', { timeoutS: 20 })).output).toBe('ok\n');
      expect((await env.execute('sleep 20')).timedOut).toBe(true);
    });

    test('an abort kills the command and rejects', async () => {
      const env = await bench.start();
      const n = unique();
      const abort = new AbortController();
      const running = env.execute(`sleep ${n}`, { signal: abort.signal });
      setTimeout(() => abort.abort(new Error('stop now')), 300);
      const began = performance.now();
      await expect(running).rejects.toThrow('stop now');
      expect(performance.now() - began).toBeLessThan(SOON_MS);
      expect((await env.execute(countProcesses(n))).output).toBe('0\n');
      await expect(env.execute('true', { signal: abort.signal })).rejects.toThrow('stop now');
    });

    test.skipIf(!bench.can.container)(
      'killing every shell it can see does not end the environment',
      async () => {
        const env = await bench.start();
        const result = await env.execute(
          // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the shell's
          'for p in /proc/[0-9]*; do p=${p#/proc/}; if [ $p != 1 ] && [ $p != $$ ] && [ "$(cat /proc/$p/comm)" = bash ]; then kill -9 $p; fi; done; echo survived',
          { timeoutS: 20 },
        );
        // Whoever ran the command may be among the dead; then the result says that it is not known.
        if (!result.output.includes('survived')) expect(result.exceptionInfo).toContain('not known');
        expect((await env.execute('echo alive')).output).toBe('alive\n');
      },
    );
  });
}

export function controlSuite({ bench, shared }: Suite): void {
  timeoutSuite(bench);

  describe('limits', () => {
    test.skipIf(!bench.can.limits)(
      'memory: the command is killed, told so, and the environment goes on [T-23]',
      async () => {
        const env = await bench.start({ config: { memory: '128m' } });
        const child = await env.execute('python3 -c "x = bytearray(10**9)"; echo "rc $?"');
        expect(child.output).toContain('rc 137');
        expect(child.oomKilled).toBe(true);
        expect(child.exceptionInfo).toBe('command killed: memory limit 128 MiB reached (rc 0)');
        const whole = await env.execute('exec python3 -c "x = bytearray(10**9)"');
        expect([whole.exitCode, whole.oomKilled]).toEqual([137, true]);
        expect(whole.exceptionInfo).toBe('command killed: memory limit 128 MiB reached (rc 137)');
        const after = await env.execute('echo alive');
        expect([after.output, after.oomKilled, after.exceptionInfo]).toEqual(['alive\n', false, '']);
      },
    );

    test.skipIf(!bench.can.limits)('processes: a fork bomb stays inside and is told [T-32]', async () => {
      const [bombed, other] = await Promise.all([
        bench.start({ config: { pids_limit: 100 } }),
        bench.start(),
      ]);
      const began = performance.now();
      const bomb = bombed.execute(':(){ :|:& };:; sleep 1; wait', { timeoutS: 3 });
      expect((await other.execute('echo ok')).output).toBe('ok\n');
      const result = await bomb;
      expect(result.output).toMatch(/Resource temporarily unavailable|Cannot fork/);
      expect(performance.now() - began).toBeLessThan(SOON_MS);
      expect(await bombed.execute('echo alive', { timeoutS: 20 })).toMatchObject({
        output: 'alive\n',
        exceptionInfo: '',
      });
    });
  });

  describe('limits of earlier commands', () => {
    test.skipIf(!bench.can.limits)(
      'a fork bomb that was left in the background ends with the first command that meets it',
      async () => {
        const env = await bench.start({ config: { pids_limit: 100 } });
        // It holds the output, so that what runs the next command cannot stay on the same stream.
        expect((await env.execute('(sleep 0.3; :(){ :|:& };:) & echo left')).output).toBe('left\n');
        // It meets the bomb when that has grown up, however busy the machine is; looking takes no process.
        const met = await env.execute(
          'until set -- /proc/[0-9]*; (($# > 90)); do :; done; for ((i = 0; i < 40; i++)); do sleep 1 & done; wait',
          { timeoutS: 40 },
        );
        expect(met.exceptionInfo).toContain('every process in the background was killed');
        expect(await env.execute('echo work >> README.md; echo done', { timeoutS: 20 })).toMatchObject({
          output: 'done\n',
          exceptionInfo: '',
        });
        expect(Buffer.from((await env.capturePatch()).patch).toString()).toContain('+work');
      },
    );
  });

  describe('closing', () => {
    test('twice is fine, and afterwards every command is an EnvironmentError', async () => {
      const env = await bench.start();
      await env.close();
      await env.close();
      await expect(env.execute('true')).rejects.toMatchObject({ name: 'EnvironmentError', code: 'died' });
    });

    test('templateVars name what prompts need and no secret', async () => {
      process.env.SWEBATCH_TEST_CANARY = 'canary-9d41aa';
      const vars = (await shared()).templateVars();
      delete process.env.SWEBATCH_TEST_CANARY;
      expect(vars).toMatchObject({ cwd: bench.workTree(), timeout: 60 });
      // The configured environment of commands is theirs to see; that of this process never is.
      expect(JSON.stringify(vars)).not.toContain('canary-9d41aa');
    });
  });
}
