// Semantics of one command: a fresh shell each time, merged output, exit codes, working directory, environment, input, size.
import { describe, expect, test } from 'vitest';
import type { Environment } from '../../../src/environment/environment.ts';
import type { Suite } from './bench.ts';

export function commandSuite({ bench, shared }: Suite): void {
  describe('commands', () => {
    test.each([
      ['true', 0],
      ['exit 1', 1],
      ['exit 42', 42],
      ['exit 255', 255],
      ['no-such-program-here', 127],
      ['kill -9 $$', 137],
      ['kill -TERM $$', 143],
      ['', 0],
    ])('%s ends with %i [M-35]', async (command, code) => {
      const result = await (await shared()).execute(command);
      expect(result.exitCode).toBe(code);
      expect(result.timedOut).toBe(false);
      expect(result.exceptionInfo).toBe('');
    });

    test('stdout and stderr come merged in the order of writing [M-35]', async () => {
      const command = 'for i in 1 2 3 4 5 6 7 8 9; do echo out$i; echo err$i >&2; done';
      const { output } = await (await shared()).execute(command);
      expect(output).toBe(Array.from({ length: 9 }, (_, i) => `out${i + 1}\nerr${i + 1}\n`).join(''));
    });

    test('no state passes from one command to the next', async () => {
      const env = await shared();
      await env.execute('cd /; export LEFT=1; f() { echo f; }; umask 077; set -e; shopt -s nullglob');
      const { output } = await env.execute('pwd; echo "[$LEFT]"; type f 2>/dev/null; umask; echo $-');
      const lines = output.trim().split('\n');
      expect(lines.slice(0, 3)).toEqual([bench.workTree(), '[]', '0022']);
      expect(lines[3]).not.toContain('e');
    });

    test('files stay from one command to the next [M-35]', async () => {
      const env = await shared();
      await env.execute('echo kept >/tmp/swebatch-conformance-kept');
      expect(
        (await env.execute('cat /tmp/swebatch-conformance-kept; rm /tmp/swebatch-conformance-kept')).output,
      ).toBe('kept\n');
    });

    test('cwd and environment can be set for one command [M-35]', async () => {
      const env = await shared();
      const result = await env.execute('pwd; printf "%s|" "$A" "$B"', {
        cwd: '/tmp',
        env: { A: 'x y', B: 'a\n"b" $c \'d\' é' },
      });
      expect(result.output).toBe(`/tmp\nx y|a\n"b" $c 'd' é|`);
      expect((await env.execute('echo "[$A]"')).output).toBe('[]\n');
    });

    test('a working directory that does not exist is told and the command does not run', async () => {
      const env = await shared();
      const result = await env.execute('echo ran', { cwd: '/no/such/folder' });
      expect(result.exitCode).toBe(126);
      expect(result.output).toBe('');
      expect(result.exceptionInfo).toContain('/no/such/folder does not exist');
    });

    test('the configured environment reaches every command, pagers and editors are quiet, and the user wins [M-35]', async () => {
      const env = await bench.start({ config: { env: { GREETING: 'hi', PAGER: 'more' } } });
      const { output } = await env.execute(
        'echo $GREETING $PAGER $GIT_PAGER $GIT_EDITOR $GIT_TERMINAL_PROMPT $TERM',
      );
      expect(output).toBe('hi more cat true 0 dumb\n');
    });

    test('BASH_ENV is read by each command', async () => {
      const env = await bench.start({ config: { env: { BASH_ENV: '/tmp/swebatch-conformance-bashenv' } } });
      await env.putFile('/tmp/swebatch-conformance-bashenv', 'export FROM_BASH_ENV=yes\n');
      expect((await env.execute('echo "[$FROM_BASH_ENV]"')).output).toBe('[yes]\n');
    });

    test('variables that change bash reach commands, and do not change what runs them', async () => {
      const variables = { TMOUT: '1', FUNCNEST: '1', POSIXLY_CORRECT: 'y', LC_ALL: 'C' };
      const env = await bench.start({ config: { env: variables } });
      const { output, exitCode } = await env.execute(
        'sleep 1.5; echo $TMOUT $FUNCNEST $POSIXLY_CORRECT $LC_ALL; exit 3',
      );
      expect([output, exitCode]).toEqual(['1 1 y C\n', 3]);
      expect((await env.execute('sleep 100', { timeoutS: 0.5 })).timedOut).toBe(true);
      expect((await env.execute('echo alive')).output).toBe('alive\n');
      await env.execute('echo x >> README.md');
      expect((await env.capturePatch()).state).toBe('ok');
    });

    test('another interpreter can be configured', async () => {
      const env = await bench.start({ config: { interpreter: ['python3', '-c'] } });
      const result = await env.execute('import sys; print(sys.version_info[0]); sys.exit(5)');
      expect([result.output, result.exitCode]).toEqual(['3\n', 5]);
      // It reads no shell file, so what is too long for an argument is refused in words.
      const long = await env.execute(`x = '${'x'.repeat(200_000)}'; print('ran')`);
      expect([long.output, long.exitCode]).toEqual(['', 126]);
      expect(long.exceptionInfo).toContain('command is 195 KB; limit 128 KB');
    });

    test('overlapping calls wait for each other', async () => {
      const env = await shared();
      const results = await Promise.all(['a', 'b', 'c'].map((x) => env.execute(`echo ${x}`)));
      expect(results.map((r) => r.output)).toEqual(['a\n', 'b\n', 'c\n']);
    });

    test('files go in and out byte by byte', async () => {
      const env = await shared();
      const bytes = Uint8Array.from({ length: 70_000 }, (_, i) => (i * 7) % 256);
      await env.putFile('/tmp/swebatch-conformance/deep/er/file.bin', bytes, 0o755);
      expect(Buffer.from(await env.getFile('/tmp/swebatch-conformance/deep/er/file.bin')).equals(bytes)).toBe(
        true,
      );
      expect((await env.execute('stat -c %a /tmp/swebatch-conformance/deep/er/file.bin')).output).toBe(
        '755\n',
      );
      await env.execute('ln -sf deep/er/file.bin /tmp/swebatch-conformance/link');
      expect((await env.getFile('/tmp/swebatch-conformance/link')).length).toBe(bytes.length);
      await expect(env.getFile('/tmp/swebatch-conformance/none')).rejects.toThrow(/no .*file|ENOENT/i);
      await env.execute('rm -rf /tmp/swebatch-conformance');
    });
  });

  describe('input [T-28]', () => {
    let own: Promise<Environment> | undefined;
    test.each([
      ['cat', 0],
      ['read x; echo "[$x]"', 0],
      ['python3', 0],
      ['python3 -c "input()"', 1],
      ['git log', 0],
      ['for i in $(seq 40); do git commit -q --allow-empty -m "commit $i"; done; git log | wc -l', 0],
      ['git -c core.editor="$GIT_EDITOR" commit --allow-empty', 1],
      ['git rebase -i HEAD~1 2>&1; git rebase --abort 2>/dev/null; true', 0],
      ['command -v less >/dev/null && less README.md || cat README.md', 0],
      ['tty; [ -t 0 ]', 1],
    ])('%s does not wait', async (command, code) => {
      own ??= bench.start();
      const result = await (await own).execute(command, { timeoutS: 20 });
      const { timedOut, exitCode, exceptionInfo } = result;
      expect({ timedOut, exitCode, exceptionInfo }).toMatchObject({ timedOut: false, exitCode: code });
      // No escape sequences: nobody believes it talks to a terminal.
      expect(result.output).not.toContain('\x1b');
    });
  });

  describe('size of a command [T-31]', () => {
    const heredoc = (bytes: number) => `wc -c <<'END_OF_DATA'\n${'x'.repeat(bytes - 1)}\nEND_OF_DATA\n`;
    const exactly = (bytes: number) => {
      const head = 'echo ok #';
      return head + 'x'.repeat(bytes - head.length);
    };

    test.each([131_070, 131_071, 131_072, 131_073, 300_000])('%i bytes run', async (bytes) => {
      const result = await (await shared()).execute(exactly(bytes));
      expect([result.output, result.exitCode, result.exceptionInfo]).toEqual(['ok\n', 0, '']);
    });

    test('a 300 KB heredoc arrives whole, and the row says how a long command travelled', async () => {
      const result = await (await shared()).execute(heredoc(300_000));
      expect(result.output.trim()).toBe('300000');
      expect(['supervisor-file', 'exec', 'local']).toContain(result.transport);
      expect((await (await shared()).execute('exit 3')).transport).not.toBe('supervisor-file');
    });

    test('every byte but NUL arrives as it is', async () => {
      const all = String.fromCharCode(...Array.from({ length: 127 }, (_, i) => i + 1));
      const command = `cat <<'END_OF_DATA'\n${all}é€😀\u2028\ufeff\nEND_OF_DATA\n`;
      const { raw } = await (await shared()).execute(command);
      expect(Buffer.from(raw).toString()).toBe(`${all}é€😀\u2028\ufeff\n`);
    });

    test('above the cap it is refused in words, and does not run', async () => {
      const result = await (await shared()).execute(heredoc(2.5 * 1024 * 1024));
      expect(result.exitCode).toBe(126);
      expect(result.exceptionInfo).toContain('command is 2.5 MB; limit 1 MB');
      expect(result.output).toBe('');
    });

    test('with a NUL it is refused in words, and does not run', async () => {
      const result = await (await shared()).execute('echo a\0b');
      expect(result.exitCode).toBe(126);
      expect(result.exceptionInfo).toContain('NUL');
    });
  });
}
